"""Programs compiled from Go, and jars: once on a machine, even if several processes ask at the same time."""

import contextlib
import fcntl
import hashlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from zipfile import ZIP_DEFLATED, ZipFile

import psutil
import pytest

from harness.lab import go_programs, jars
from harness.model import LabError
from tests import serving
from tests.programs import executable
from tests.waiting import until

GO = """
echo "$@" >>"$(dirname $0)/log"
touch "$GOBIN/minio"
chmod +x "$GOBIN/minio"
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make a shell script the compiler."""

    def make(script: str) -> None:
        executable(tmp_path / "go", f"#!/bin/sh\n{script}")
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return make


def test_two_that_ask_at_once_get_one_program_that_was_compiled_once(
    go: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(GO)
    asked, real = [Event(), Event()], fcntl.flock

    def flock(file: object, how: int) -> None:
        next(event for event in asked if not event.is_set()).set()
        assert all(event.wait(60) for event in asked), "the other one did not ask for the lock"
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: go_programs.program(go_programs.MINIO, tmp_path / "cache", print), range(2)))
    assert len(set(paths)) == 1
    (compiled,) = (tmp_path / "log").read_text().splitlines()
    assert f"{go_programs.MINIO.package}@{go_programs.MINIO.version}" in compiled


def test_a_user_who_waits_for_a_compiler_reads_what_is_compiled_and_for_how_long(
    go: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(GO.replace("touch", "sleep 0.5\ntouch"))
    monkeypatch.setattr(go_programs, "_TELL_SECONDS", 0.1)
    said: list[str] = []
    go_programs.program(go_programs.MINIO, tmp_path / "cache", said.append, ["elt.duckdb.transform", "b", "c"])
    first, *others = said
    assert first == "compiling minio (once, some minutes) for elt.duckdb.transform and 2 more"
    assert others
    assert set(others) <= {"compiling minio: 0 s so far", "compiling minio: 1 s so far"}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sleep 300", "compiling it took more than 0 s"),
        ("echo first >&2\necho 'the last reason' >&2\nexit 1", "could not be compiled: the last reason$"),
    ],
)
def test_a_compiler_that_takes_too_long_or_fails_is_a_reason_in_one_line(
    go: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    go(script)
    monkeypatch.setattr(go_programs, "_TELL_SECONDS", 0.1)
    if "sleep" in script:
        monkeypatch.setattr(go_programs, "_COMPILE_SECONDS", 0.3)
    with pytest.raises(go_programs.NotThere, match=rf"^no minio: .*{said}"):
        go_programs.program(go_programs.MINIO, tmp_path / "cache", print)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["minio.lock"]  # other processes may wait for it


SLOW_GO = """
sleep 300 &
echo $! >"$(dirname $0)/pids"
wait
"""
COMPILE = """
import pathlib, sys
from harness.lab import go_programs
go_programs.program(go_programs.MINIO, pathlib.Path(sys.argv[1]), print)
"""


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_compilers_too_and_leaves_no_folder(
    go: Callable[[str], None], tmp_path: Path, number: signal.Signals
) -> None:
    go(SLOW_GO)
    pids, cache = tmp_path / "pids", tmp_path / "cache"
    asking = subprocess.Popen((sys.executable, "-c", COMPILE, str(cache)), stderr=subprocess.DEVNULL)
    until(lambda: pids.exists() and pids.read_text().strip())
    asking.send_signal(number)
    assert asking.wait(60) != 0
    with contextlib.suppress(psutil.NoSuchProcess):
        compiler = psutil.Process(int(pids.read_text()))
        until(lambda: compiler.status() == psutil.STATUS_ZOMBIE)  # it may wait long for its parent
    assert [path.name for path in cache.iterdir()] == ["minio.lock"]


def test_what_a_killed_compilation_has_left_is_gone_after_the_next(go: Callable[[str], None], tmp_path: Path) -> None:
    go(GO)
    (tmp_path / "cache" / "minio-abc.compiling").mkdir(parents=True)
    path = go_programs.program(go_programs.MINIO, tmp_path / "cache", print)
    assert {one.name for one in (tmp_path / "cache").iterdir()} == {path.name, "minio.lock"}


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
