"""Build the Postgres image against a signed repository on this machine, laid out as pg_parquet's own and in wrong ways.

Usage: PYTHONPATH=tests/compose python3 .ci/pg_parquet_repository.py WORK CODENAME
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import archive

# What a step of a build says, not the step's own text.
LINE = re.compile(r"#\d+ [\d.]+ (pg_parquet: .*)")


def build(repository: str, key: str, fingerprint: str, *options: str) -> tuple[int, list[str]]:
    """Build the image, or with these options a stage of it; return the exit code and the lines about pg_parquet."""
    arguments = {
        "PG_PARQUET_REPOSITORY": repository,
        "PG_PARQUET_KEY": key,
        "PG_PARQUET_FINGERPRINT": fingerprint,
        "PG_PARQUET_VERSION": "0.5.1",
    }
    command = ["docker", "build", "--no-cache", "--network", "host", "--progress", "plain"]
    command += ["--output", "type=cacheonly"]  # leaves no image without a name
    command += ["--file", "images/postgres/Dockerfile", *options]
    for name, value in arguments.items():
        command += ["--build-arg", f"{name}={value}"]
    ended = subprocess.run([*command, "."], capture_output=True, text=True)
    said = [match[1] for line in ended.stderr.splitlines() if (match := LINE.match(line))]
    return ended.returncode, [line for line in said if not line.startswith("pg_parquet: using")]


def trial(name: str, expected: str, fatal: bool, *arguments: str) -> None:
    """Expect one outcome of a build; print its line."""
    code, said = build(*arguments)
    found = " / ".join(said)
    if (code != 0) is not fatal or not re.search(expected, found):
        sys.exit(
            f"{name}: expected {'a refusal' if fatal else 'an image'} and {expected!r}, found {code} and {found!r}"
        )
    print(f"trial: {name}: {found[:150] or 'nothing is said'}")


def main() -> None:
    """Try upstream's layout, then what may be wrong with a repository."""
    work, codename = Path(sys.argv[1]), sys.argv[2]
    work.mkdir()
    key, other = archive.new_key(work / "key"), archive.new_key(work / "other")
    served = work / "served"
    for name, versions in (("apt/pgsql", ["0.5.1-1PIGSTY~" + codename]), ("newer", ["0.6.0-1PIGSTY~" + codename])):
        archive.archive(served / name / codename, codename, versions, key)
    archive.archive(served / "short", codename, ["0.5.1-1PIGSTY~" + codename], key)
    archive.archive(served / "changed" / codename, codename, ["0.5.1-1PIGSTY~" + codename], key)
    for file in (served / "changed").rglob("*.deb"):
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    (served / "key").write_text(key.gpg("--armor", "--export"))
    (served / "other").write_text(other.gpg("--armor", "--export"))
    fetched = ("--target", "packages")
    with archive.served(served) as url:
        signed = (f"{url}/key", key.fingerprint, *fetched)
        trial("laid out as upstream", r"0\.5\.1-1PIGSTY", False, f"{url}/apt/pgsql", *signed)
        trial("without the release's folder", "not in this image", False, f"{url}/short", *signed)
        trial("without the version", r"has no version 0\.5\.1", False, f"{url}/newer", *signed)
        trial("moved", "not in this image", False, f"{url}/nowhere", *signed)
        trial("signed by another key", "do not trust", True, f"{url}/apt/pgsql", f"{url}/other", *signed[1:])
        trial("a package that was changed", "do not trust", True, f"{url}/changed", *signed)
    nowhere = ("http://127.0.0.1:9/apt", "http://127.0.0.1:9/key", key.fingerprint)
    trial("unreachable", "not in this image", False, *nowhere, *fetched)
    for name, expected, files in (
        ("a package at hand", "^$", ["usr/lib/postgresql/18/lib/pg_parquet.so"]),
        ("a package at hand without it", "not in this image: no package of", []),
    ):
        file = archive.package(work / name, "0.5.1-1", *files)
        at_hand = Path("images/postgres/packages") / file.name
        shutil.copy(file, at_hand)
        trial(name, expected, False, *nowhere)
        at_hand.unlink()


if __name__ == "__main__":
    main()
