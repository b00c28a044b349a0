"""A signed Debian archive on loopback, laid out as pg_parquet's own: one archive root a release, <root>/<codename>."""

import gzip
import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Key:
    """A signing key in a separate GnuPG folder."""

    home: Path
    fingerprint: str

    def gpg(self, *arguments: str, given: str = "") -> str:
        """Run gpg with this key's folder; return its output."""
        command = ("gpg", "--homedir", str(self.home), "--batch", "--yes", "--pinentry-mode", "loopback", *arguments)
        return subprocess.run(command, input=given, check=True, capture_output=True, text=True).stdout


def new_key(home: Path) -> Key:
    """Make a key without a passphrase."""
    home.mkdir(mode=0o700)
    key = Key(home, "")
    key.gpg("--passphrase", "", "--quick-generate-key", "archive of a test", "ed25519", "sign", "never")
    lines = key.gpg("--list-keys", "--with-colons").splitlines()
    return Key(home, next(line.split(":")[9] for line in lines if line.startswith("fpr:")))


def of_this_machine(name: str) -> str:
    """Return a value of /etc/os-release, as the script reads it."""
    text = Path("/etc/os-release").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)[name].strip('"')


def architecture() -> str:
    """Return Debian's name of this machine's processor."""
    return subprocess.run(("dpkg", "--print-architecture"), capture_output=True, text=True, check=True).stdout.strip()


def package(pool: Path, version: str, *files: str) -> Path:
    """Build a package of pg_parquet for Postgres 18, with these files, which are empty."""
    tree = pool / f"tree-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / "DEBIAN/control").write_text(
        f"Package: postgresql-18-pg-parquet\nVersion: {version}\nArchitecture: {architecture()}\n"
        "Maintainer: Nobody <nobody@example.org>\nDescription: for a test\n"
    )
    file = pool / f"postgresql-18-pg-parquet_{version}_{architecture()}.deb"
    subprocess.run(("dpkg-deb", "--root-owner-group", "--build", str(tree), str(file)), check=True, capture_output=True)
    return file


def archive(root: Path, codename: str, versions: list[str], key: Key) -> None:
    """Lay out dists/ and pool/ of a release under `root`, and sign them."""
    pool = root / "pool/main/p/pg-parquet"
    index = root / f"dists/{codename}/main/binary-{architecture()}"
    pool.mkdir(parents=True)
    index.mkdir(parents=True)
    entries = []
    for version in versions:
        file = package(pool, version)
        control = subprocess.run(("dpkg-deb", "--field", str(file)), capture_output=True, text=True, check=True).stdout
        content = file.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        entries.append(f"{control}Filename: {file.relative_to(root)}\nSize: {len(content)}\nSHA256: {digest}\n")
    packages = "\n".join(entries).encode()
    files = {"Packages": packages, "Packages.gz": gzip.compress(packages)}
    listed = ""
    for name, content in files.items():
        (index / name).write_bytes(content)
        listed += f" {hashlib.sha256(content).hexdigest()} {len(content)} main/binary-{architecture()}/{name}\n"
    release = (
        f"Origin: test\nSuite: {codename}\nCodename: {codename}\nComponents: main\nArchitectures: {architecture()}\n"
        f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n{listed}"
    )
    (root / f"dists/{codename}/InRelease").write_text(key.gpg("--clearsign", given=release))
