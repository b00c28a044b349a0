"""images/postgres/fetch-pg-parquet against a signed archive with the layout of the real one."""

import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

import archive
import pytest

from harness.settings import ROOT
from tests import serving
from tests.programs import executable

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(shutil.which, ("apt-get", "curl", "dpkg-deb", "gpg"))),
        reason="needs Debian's apt-get, curl and gpg",
    ),
]
# Upstream's own suffixes; ~trixie in a real one.
FIRST, AGAIN, RENAMED = ("0.5.1-1PIGSTY~test", "0.5.1-2PIGSTY~test", "0.5.1-1PGSTY~test")


@dataclass
class Repository:
    """The script's variables, and the folder it fills."""

    url: str
    folder: Path
    packages: Path
    key: archive.Key

    @property
    def codename(self):
        return archive.of_this_machine("VERSION_CODENAME")

    @property
    def root(self):
        return self.folder / "apt/pgsql" / self.codename

    @property
    def signed(self):
        return self.root / f"dists/{self.codename}/InRelease"

    def publish(self, *versions):
        archive.archive(self.root, self.codename, list(versions), self.key)

    def fetch(self, **changed):
        told = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "PACKAGES": str(self.packages),
            "PG_MAJOR": "18",
            "PG_PARQUET_REPOSITORY": f"{self.url}/apt/pgsql",
            "PG_PARQUET_KEY": f"{self.url}/key",
            "PG_PARQUET_FINGERPRINT": self.key.fingerprint,
            "PG_PARQUET_VERSION": "0.5.1",
        }
        script = ROOT / "images/postgres/fetch-pg-parquet"
        return subprocess.run(("bash", script), env=told | changed, capture_output=True, text=True)

    def found(self):
        return sorted(path.name for path in self.packages.iterdir())


@pytest.fixture
def repository(tmp_path):
    key = archive.new_key(tmp_path / "gnupg")
    served, packages = tmp_path / "served", tmp_path / "packages"
    served.mkdir()
    packages.mkdir()
    (served / "key").write_text(key.gpg("--armor", "--export"))
    with serving.served(served) as url:
        yield Repository(url, served, packages, key)


def goes_without(done, repository, why):
    """One line that says why, a build that goes on, and no package."""
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pg_parquet: not in this image: ")
    assert len(done.stdout.splitlines()) == 1
    assert why in done.stdout
    assert repository.found() == []


def ends_the_build(done, repository):
    assert done.returncode == 1
    assert "do not trust" in done.stderr
    assert repository.found() == []


@pytest.mark.parametrize(
    ("versions", "taken"),
    [
        ([FIRST], FIRST),
        ([RENAMED], RENAMED),
        (
            [FIRST, AGAIN, "0.5.10-1PIGSTY~test", "0.6.0-1PIGSTY~test"],
            AGAIN,
        ),  # the later of two builds
    ],
)
def test_the_package_comes_from_the_archive_of_the_release(repository, versions, taken):
    repository.publish(*versions)
    done = repository.fetch()
    assert done.returncode == 0, done.stderr
    assert repository.found() == [f"postgresql-18-pg-parquet_{taken}_{archive.architecture()}.deb"]


MOVED = "<html>This site has moved</html>"


def of_another_version(repository):
    shutil.rmtree(repository.folder / "apt")
    repository.publish("0.6.0-1PIGSTY~test")


def by_another_key(repository):
    shutil.rmtree(repository.folder / "apt")
    known, repository.key = repository.key, archive.new_key(repository.folder.parent / "other")
    repository.publish(FIRST)
    repository.key = known


def without_signature(repository):
    text = repository.signed.read_text()
    body = text.split("\n\n", 1)[1].split("-----BEGIN PGP SIGNATURE")[0]
    repository.signed.with_name("Release").write_text(body)
    repository.signed.unlink()


def with_another_byte(repository):
    file = next((repository.root / "pool").rglob("*.deb"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda repository: repository.root.rename(repository.folder / "elsewhere"), "does not have a Release file"),
        (of_another_version, "no version 0.5.1 for Postgres 18"),
        (lambda repository: (repository.folder / "key").write_text(MOVED), "is no key"),
        (lambda repository: repository.signed.write_text(MOVED), "is no archive"),
    ],
)
def test_an_archive_that_has_moved_or_lacks_the_version_leaves_an_image_without(repository, change, why):
    repository.publish(FIRST)
    change(repository)
    goes_without(repository.fetch(), repository, why)


def test_a_repository_that_is_not_reached_leaves_an_image_without(repository):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    goes_without(repository.fetch(PG_PARQUET_KEY=f"{url}/key"), repository, "curl: (7)")
    goes_without(repository.fetch(PG_PARQUET_REPOSITORY=url), repository, "no archive at")


@pytest.mark.parametrize("change", [by_another_key, without_signature, with_another_byte])
def test_an_archive_or_a_package_that_is_not_what_was_signed_ends_the_build(repository, change):
    repository.publish(FIRST)
    change(repository)
    ends_the_build(repository.fetch(), repository)


def test_another_key_than_the_known_one_ends_the_build(repository, tmp_path):
    repository.publish(FIRST)
    other = archive.new_key(tmp_path / "other")
    (repository.folder / "key").write_text(other.gpg("--armor", "--export"))
    ends_the_build(repository.fetch(), repository)


def test_a_package_at_hand_needs_no_repository(repository):
    (repository.packages / "postgresql-18-pg-parquet_0.5.1_all.deb").touch()
    done = repository.fetch(PG_PARQUET_REPOSITORY="http://127.0.0.1:1")
    assert done.returncode == 0
    assert "using the packages" in done.stdout


def test_a_ca_bundle_is_trusted_next_to_whom_the_system_trusts(repository, tmp_path):
    """A substitute for curl records its arguments; the archive itself comes over plain HTTP."""
    executable(
        tmp_path / "bin/curl",
        "#!/usr/bin/env bash\n"
        f'while [ $# -gt 0 ]; do if [ "$1" = --cacert ]; then cat "$2" >{tmp_path}/trusted; fi; shift; done; exit 7\n',
    )
    (tmp_path / "bundle").write_text("the proxy's")
    path = f"{tmp_path}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    goes_without(repository.fetch(PATH=path, CA_BUNDLE=f"{tmp_path}/bundle"), repository, "no key at")
    system = Path("/etc/ssl/certs/ca-certificates.crt").read_text()
    assert (tmp_path / "trusted").read_text() == f"the proxy's\n{system}"
