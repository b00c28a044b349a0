"""Files with a manifest: reused if they are as recorded, else made again, and nothing half-made stays."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.datasets import manifest
from harness.model import Facts
from tests.commands import one_line

OF = {"name": "numbers", "version": 1, "scale": 0.5}


def build(folder: Path, of: Facts = OF) -> list[int]:
    """Return the numbers of the files that are made."""
    paths, done, said = [(folder / "files" / f"{number}.bin",) for number in range(3)], list[int](), list[str]()

    def make(number: int) -> None:
        done.append(number)
        with manifest.complete(*paths[number]) as partial:
            partial.write_bytes(bytes([number]) * 1_000)

    known = manifest.ensure(folder, of, paths, make, said.append, lambda: {"answer": 42})
    assert known["answer"] == 42
    assert said == ([f"building {len(done)} of 3 files of numbers in {folder.name}/"] if done else [])
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert build(tmp_path) == [0, 1, 2]
    return tmp_path


def truncate_and_keep_the_time(path: Path) -> None:
    stat = path.stat()
    os.truncate(path, 900)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: os.truncate(path, 900),
        lambda path: path.write_bytes(b""),
        Path.unlink,
        lambda path: path.write_bytes(os.urandom(1_000)),
        lambda path: path.write_bytes(b"\x01" * 500 + b"\x03" + b"\x01" * 499),
        truncate_and_keep_the_time,
    ],
    ids=["truncated", "empty", "gone", "garbage", "one bit", "truncated, with its old time"],
)
def test_a_damaged_file_alone_is_made_again(folder: Path, damage: Callable[[Path], object]) -> None:
    path = folder / "files" / "1.bin"
    damage(path)
    assert build(folder) == [1]
    assert path.read_bytes() == b"\x01" * 1_000
    assert build(folder) == []


def test_a_file_with_another_time_and_the_same_bytes_is_reused_and_gets_its_time_back(folder: Path) -> None:
    path = folder / "files" / "1.bin"
    before = path.stat()
    os.utime(path, ns=(1, 1))
    assert build(folder) == []
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("text", [b"", b'{"of": {', b"\xff\xfe\x00", b"null", b"[]", b"7", b"{}", b'{"digest": ""}'])
def test_a_torn_manifest_is_not_believed(folder: Path, text: bytes) -> None:
    good = (folder / manifest.NAME).read_bytes()
    (folder / manifest.NAME).write_bytes(text)
    assert build(folder) == [0, 1, 2]
    assert json.loads((folder / manifest.NAME).read_bytes()).keys() == json.loads(good).keys()


def test_a_manifest_with_a_missing_or_changed_field_is_not_believed(folder: Path) -> None:
    path = folder / manifest.NAME
    known = json.loads(path.read_text())
    assert known.keys() == {"of", "answer", "files", "digest"}
    for field in known:
        for wrong in ({name: value for name, value in known.items() if name != field}, known | {field: None}):
            path.write_text(json.dumps(wrong))
            assert manifest.read(path, OF) == {}
    path.write_text(json.dumps(known))
    assert manifest.read(path, OF) == {name: value for name, value in known.items() if name != "digest"}


def test_files_of_another_definition_are_made_again(folder: Path) -> None:
    assert build(folder, OF | {"version": 2}) == [0, 1, 2]
    assert build(folder, OF | {"version": 2}) == []


def test_what_a_killed_build_left_is_removed(folder: Path) -> None:
    left = folder / "files" / "7.bin.partial-1"
    left.write_text("half")
    assert build(folder) == []
    assert not left.exists()


@pytest.mark.parametrize("failure", [RuntimeError("the builder broke"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
def test_what_raises_leaves_no_file_behind(tmp_path: Path, failure: BaseException) -> None:
    def fails() -> None:
        with manifest.complete(tmp_path / "a.bin") as partial:
            partial.write_bytes(b"half")
            raise failure

    with pytest.raises(type(failure)):
        fails()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with one_line(rf"cannot build numbers in {tmp_path}/file: "):
        build(tmp_path / "file")
