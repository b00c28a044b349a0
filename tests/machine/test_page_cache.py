"""The page cache: files are loaded, evicted and examined, and examining changes nothing."""

import os
import shutil
import sys

import pytest

from harness.machine import page_cache
from harness.machine.inventory import filesystem
from tests.commands import one_line
from tests.disks import small_disk

MEGABYTE = 1 << 20
SIZE = 64 * MEGABYTE + 1_000  # the last page is not full

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(sys.platform != "linux", reason="the page cache is Linux's"),
]


@pytest.fixture
def on_disk(tmp_path):
    """A newly written file of 64 MB, on a file system that can evict it."""
    if filesystem(tmp_path) in ("tmpfs", "ramfs"):
        pytest.skip(f"{tmp_path} is in memory")
    path = tmp_path / "file"
    path.write_bytes(os.urandom(MEGABYTE) * 64 + bytes(1_000))
    return path


def test_a_file_that_was_just_written_is_forgotten_when_dropped(on_disk):
    assert page_cache.resident_share(on_disk) > 0.9
    page_cache.drop([on_disk])
    assert page_cache.resident_share(on_disk) < 0.01


def test_warming_and_dropping_take_all_files(on_disk, tmp_path):
    other = tmp_path / "other"
    shutil.copyfile(on_disk, other)
    page_cache.drop([on_disk, other])
    assert max(map(page_cache.resident_share, (on_disk, other))) < 0.01
    page_cache.warm([on_disk, other])
    # While other tests run, the kernel may want a page for something else.
    assert min(map(page_cache.resident_share, (on_disk, other))) > 0.98


def test_looking_brings_no_page_in(on_disk):
    page_cache.drop([on_disk])
    first = page_cache.resident_share(on_disk)
    assert [page_cache.resident_share(on_disk) for _ in range(3)] == [first] * 3


@pytest.mark.long
@pytest.mark.parametrize("window", [MEGABYTE, 16 * MEGABYTE, 256 * MEGABYTE])
def test_the_share_is_that_of_the_pages_that_were_read(on_disk, monkeypatch, window):
    monkeypatch.setattr(page_cache, "_WINDOW_BYTES", window)
    page_cache.drop([on_disk])
    with on_disk.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
        for megabyte in (*range(8, 20), *range(60, 64)):
            os.pread(file.fileno(), MEGABYTE, megabyte * MEGABYTE)
    assert page_cache.resident_share(on_disk) == pytest.approx(0.25, abs=0.01)


def test_dropping_loses_no_byte(on_disk):
    content = on_disk.read_bytes()
    with on_disk.open("r+b") as file:
        file.write(b"changed")
    page_cache.drop([on_disk])
    assert on_disk.read_bytes() == b"changed" + content[7:]
    assert on_disk.stat().st_size == SIZE


def test_a_file_on_tmpfs_stays_and_the_share_says_so(tmp_path):
    with small_disk(tmp_path, "4m") as folder:
        path = folder / "file"
        path.write_bytes(bytes(MEGABYTE))
        page_cache.drop([path])
        assert page_cache.resident_share(path) == 1.0


@pytest.mark.parametrize("content", [b"few", b""])
def test_a_file_smaller_than_a_page_is_wholly_there(tmp_path, content):
    path = tmp_path / "small"
    path.write_bytes(content)
    page_cache.warm([path])
    assert page_cache.resident_share(path) == 1.0


@pytest.mark.parametrize("ask", [lambda path: page_cache.drop([path]), page_cache.resident_share])
def test_another_system_is_refused_in_one_line(on_disk, monkeypatch, ask):
    monkeypatch.setattr(sys, "platform", "darwin")
    with one_line(r"only Linux can .*, and this is darwin"):
        ask(on_disk)
