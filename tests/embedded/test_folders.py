"""Folders of embedded labs: their locks, also where a home is on NFS, and what of whom is removed."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from harness.embedded import folders
from harness.embedded.keeper import LOCK
from harness.systems.clickhouse.gateway import engine
from harness.systems.clickhouse.gateway.errors import ClickHouseError

FLOCK = fcntl.flock


def as_on_nfs(file: int, how: int) -> None:
    """What flock(2) says of NFS: to exclude others, the descriptor must be for writing."""
    number = file if isinstance(file, int) else file.fileno()
    if how & fcntl.LOCK_EX and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    FLOCK(file, how)


def made(root: Path, released: list[Path] | None = None) -> tuple[Path, int]:
    return folders.new_lab_folder(root, (released if released is not None else []).append, ())


def test_a_home_on_nfs_keeps_neighbours_and_removes_left_overs(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    released: list[Path] = []
    living, lock = made(tmp_path)
    left, other = made(tmp_path)
    os.close(other)  # as the kernel does when its lab is gone
    newest, third = made(tmp_path, released)
    assert released == [left]
    assert {path.name for path in tmp_path.glob("lab-*")} == {living.name, newest.name}
    for file in (lock, third):
        os.close(file)


def test_the_lock_is_the_labs_own(tmp_path):
    folder, lock = made(tmp_path)
    assert (folder / LOCK).stat().st_mode & 0o777 == 0o600
    os.close(lock)


def test_data_of_clickhouse_on_nfs_are_seen_to_be_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    (tmp_path / "status").write_text("PID: 1")
    engine._check_unused(tmp_path)
    with (tmp_path / "status").open("r+b") as held:
        FLOCK(held, fcntl.LOCK_EX)
        with pytest.raises(ClickHouseError, match="in use by another process"):
            engine._check_unused(tmp_path)


def left_after(root: Path) -> tuple[list[Path], list[str]]:
    """Make a lab's folder in a root; return what was released before, and the names that are left of others."""
    released: list[Path] = []
    folder, lock = made(root, released)
    os.close(lock)
    return released, sorted(path.name for path in root.iterdir() if path not in (folder, root / LOCK))


@pytest.mark.parametrize(("other", "released", "left"), [(0, ["lab-left"], []), (1, [], ["lab-left"])])
def test_what_this_user_left_is_released_and_removed_and_what_another_left_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: int, released: list[str], left: list[str]
) -> None:
    (tmp_path / "lab-left").mkdir()
    user = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: user + other)
    assert left_after(tmp_path) == ([tmp_path / name for name in released], left)


def test_a_link_is_no_folder_of_a_lab(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "lab-link").symlink_to(tmp_path / "elsewhere")
    assert left_after(tmp_path) == ([], ["elsewhere", "lab-link"])
