"""The jars with which Spark connects to databases, from a Maven repository: `python -m harness.lab.jars`, once.

They are stored in the lab's cache and copied next to PySpark's own jars. The driver finds them there, and so do
executors that run from the same environment. Jars that Spark has itself are excluded, above all zstd-jni: two versions
of it in one process do not work.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

from harness import settings
from harness.lab.packages import not_installed
from harness.model import LabError

COMMAND = "python -m harness.lab.jars"
_ANSWER_SECONDS = 60
_SETTING = "LAB_MAVEN_REPOSITORY"
# Spark's compiled class with the addresses of its default repositories.
_DEFAULTS = "org/apache/spark/util/MavenUtils$.class"


@dataclass(frozen=True)
class Jar:
    """A jar of a Maven repository by its coordinates, and the SHA-256 of the only accepted content."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Its path below a repository's address."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.file}"


def locked() -> list[Jar]:
    """Return the jars of the lock file: coordinates and a hash per line."""
    lines = Path(__file__).with_name("jars.lock").read_text(encoding="utf-8").splitlines()
    pinned = [line.replace(" sha256:", ":").split(":") for line in lines if not line.startswith("#")]
    return [Jar(group, name, version, sha256) for group, name, version, sha256 in pinned]


def place() -> Path | None:
    """Return the folder of PySpark's own jars; None without PySpark."""
    spec = find_spec("pyspark")
    return Path(spec.origin).parent / "jars" if spec and spec.origin else None


def default_repository(folder: Path) -> str:
    """Return the default Maven repository of these jars' Spark. Raises LabError if it names none."""
    for file in sorted(folder.glob("spark-common-utils_*.jar")):
        with ZipFile(file) as jar, suppress(KeyError):
            if found := re.search(rb"https://[\w.-]+/maven2/", jar.read(_DEFAULTS)):
                return found[0].decode()
    raise LabError(f"the Spark of {folder} names no Maven repository; set {_SETTING}")


def missing(wanted: Iterable[Jar]) -> str | None:
    """Return which jars PySpark lacks, and the command that adds them, as a reason, or None."""
    folder = place()
    if folder is None or not (absent := [jar.file for jar in wanted if not (folder / jar.file).is_file()]):
        return None
    return f"PySpark has no {', '.join(absent)}: {COMMAND}"


def install(wanted: Iterable[Jar], folder: Path, cache: Path, repository: str) -> list[Path]:
    """Put jars into a folder, from the cache or otherwise the repository; return those that were missing.

    Raises LabError: not reachable, wrong content, no permission to write.
    """
    added = []
    for jar in wanted:
        target = folder / jar.file
        if _is(jar, target):
            continue
        try:
            if not _is(jar, cache / jar.file):
                cache.mkdir(parents=True, exist_ok=True)
                _write(cache / jar.file, _fetched(jar, repository))
            _write(target, (cache / jar.file).read_bytes())
        except (OSError, HTTPException, ValueError) as error:
            raise LabError(f"no {jar.file}: {getattr(error, 'reason', None) or error}; see {_SETTING}") from None
        added.append(target)
    return added


def _is(jar: Jar, path: Path) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256


def _fetched(jar: Jar, repository: str) -> bytes:
    """Download a jar. Raises LabError if its content does not match its hash."""
    with urlopen(f"{repository.rstrip('/')}/{jar.path}", timeout=_ANSWER_SECONDS) as answer:
        content: bytes = answer.read()
    if (found := hashlib.sha256(content).hexdigest()) != jar.sha256:
        raise LabError(
            f"{jar.file}: its SHA-256 is {found} ({len(content)} bytes) instead of {jar.sha256}, so it was discarded; "
            f"check the repository in {_SETTING}"
        )
    return content


def _write(path: Path, content: bytes) -> None:
    """Write a file that gets its name only when it is complete."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def main() -> None:
    """Install the jars and print which were added; on failure print the reason and return status 2."""
    try:
        folder = place()
        if folder is None:
            raise LabError(not_installed(["pyspark"]) or "PySpark has no folder of jars; install it again")
        chosen = settings.load()
        repository = chosen.maven_repository or default_repository(folder)
        added = install(locked(), folder, chosen.cache_dir / "jars", repository)
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    sys.stdout.write("".join(f"{path}\n" for path in added) or "all jars are there\n")


if __name__ == "__main__":
    main()
