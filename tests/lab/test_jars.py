"""Jars for Spark: only those with the right hash, downloaded once a machine, and one line without a network."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from harness.lab import jars
from harness.model import LabError
from tests import serving

CONTENT = b"classes"
JAR = jars.Jar("org.example", "driver", "1.0", hashlib.sha256(CONTENT).hexdigest())
NOBODY = "http://127.0.0.1:9/maven2"  # a port that nothing listens on


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """The place of the jar in the repository of these tests."""
    path = tmp_path / "repository" / JAR.path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def repository(tmp_path: Path, served: Path) -> Iterator[str]:
    """The address of a repository."""
    with serving.served(tmp_path / "repository") as address:
        yield f"{address}/"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Instead of that of PySpark's own jars."""
    path = tmp_path / "jars"
    path.mkdir()
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_a_jar_is_fetched_once_and_then_comes_from_the_cache(
    repository: str, served: Path, cache: Path, folder: Path
) -> None:
    assert jars.install([JAR], folder, cache, repository) == [folder / "driver-1.0.jar"]
    assert (folder / "driver-1.0.jar").read_bytes() == CONTENT
    served.unlink()
    assert jars.install([JAR], folder, cache, repository) == []
    (folder / "driver-1.0.jar").unlink()
    assert jars.install([JAR], folder, cache, NOBODY) == [folder / "driver-1.0.jar"]
    assert names(folder) == names(cache) == ["driver-1.0.jar"]


def test_what_its_hash_does_not_vouch_for_is_refused_and_not_kept(
    repository: str, served: Path, cache: Path, folder: Path
) -> None:
    served.write_bytes(b"something else")
    with pytest.raises(LabError, match=r"driver-1\.0\.jar: its SHA-256 is \w+ \(14 bytes\) instead of \w+"):
        jars.install([JAR], folder, cache, repository)
    assert names(folder) == names(cache) == []


def test_a_jar_that_was_changed_since_is_put_back(repository: str, cache: Path, folder: Path) -> None:
    for place in (cache, folder):
        place.mkdir(exist_ok=True)
        (place / "driver-1.0.jar").write_bytes(b"half a dow")
    jars.install([JAR], folder, cache, repository)
    assert (folder / "driver-1.0.jar").read_bytes() == (cache / "driver-1.0.jar").read_bytes() == CONTENT


@pytest.mark.parametrize("address", [NOBODY, "no address", ""])
def test_without_a_repository_that_has_it_a_jar_is_one_line_that_names_the_setting(
    address: str, repository: str, served: Path, cache: Path, folder: Path
) -> None:
    served.unlink()
    with pytest.raises(LabError, match=r"^no driver-1\.0\.jar: [^\n]+; see LAB_MAVEN_REPOSITORY$"):
        jars.install([JAR], folder, cache, address or repository)
    assert names(folder) == names(cache) == []


def test_jars_that_are_missing_are_a_reason_with_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "place", lambda: folder)
    assert jars.missing([JAR]) == "PySpark has no driver-1.0.jar: python -m harness.lab.jars"
    (folder / "driver-1.0.jar").write_bytes(CONTENT)
    assert jars.missing([JAR]) is None


def of_spark(folder: Path, constants: bytes) -> None:
    """Write Spark's jar with the addresses of its package repositories: strings between other bytes, as compiled."""
    with ZipFile(folder / "spark-common-utils_2.13-4.3.0.jar", "w", ZIP_DEFLATED) as jar:
        jar.writestr("org/apache/spark/util/MavenUtils$.class", b"\xca\xfe\xba\xbe" + constants)


def test_the_repository_is_the_default_of_spark_itself(folder: Path) -> None:
    of_spark(folder, b"\x01\x00\x1ehttps://maven.example/maven2/\x0a\x01\x00\x09https://packages.example/\x01")
    assert jars.default_repository(folder) == "https://maven.example/maven2/"


@pytest.mark.parametrize("constants", [None, b"\x01nothing\x01"])
def test_a_spark_that_names_no_repository_is_one_line_with_the_setting(folder: Path, constants: bytes | None) -> None:
    if constants is not None:
        of_spark(folder, constants)
    with pytest.raises(LabError, match=r"names no Maven repository; set LAB_MAVEN_REPOSITORY$"):
        jars.default_repository(folder)
