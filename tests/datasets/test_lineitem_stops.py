"""Building lineitem: it refuses too little disk or memory at once, and leaves no half-made file if it stops."""

import signal
import subprocess
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Thread

import psutil
import pytest

from harness.datasets import lineitem
from harness.datasets.lineitem import Layout
from tests.commands import one_line
from tests.datasets.user_files import ensure
from tests.disks import small_disk
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.long]

TINY = Layout(0.001, 1, 0, 1)
SCALE, PARTS = 0.01, 3
Memory = namedtuple("Memory", "available")
ENSURE = """
import pathlib, sys
from harness.datasets import lineitem
layouts = [lineitem.Layout(0.9, 3, 0, 3)]
lineitem.ensure_all(pathlib.Path(sys.argv[1]), layouts, lambda text: print(text, flush=True))
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_build_never_takes_more_disk_than_announced(tmp_path):
    asked = [Layout(SCALE, PARTS, 0, 3), Layout(SCALE, PARTS, 2, 1), Layout(SCALE, PARTS, 0, 2, 4_096)]
    announced, taken, done = lineitem.needed_bytes(tmp_path, asked), [0], Event()

    def look():
        while not done.wait(0.005):
            with suppress(FileNotFoundError):  # a file that is just being removed
                taken.append(sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()))

    with ThreadPoolExecutor() as pool:
        looking = pool.submit(look)
        lineitem.ensure_all(tmp_path, asked, print)
        done.set()
        looking.result()
    assert announced / 2 < max(taken) < announced
    assert lineitem.needed_bytes(tmp_path, asked) == lineitem.needed_memory(tmp_path, asked) == 0


def test_the_announced_bytes_hold_for_every_size_of_row_group(tmp_path):
    layouts = [Layout(0.05, 1, 0, 1, size) for size in (2_048, 4_096, 20_480, 61_440, 300_000)]
    for layout, file in lineitem.ensure_all(tmp_path, layouts, print).items():
        assert file.bytes < layout.most_bytes


def test_a_disk_that_is_too_small_is_refused_before_anything_is_made(tmp_path):
    asked = [Layout(10_000_000, 10_000_000, 0, 10_000, 4_096)] * 2
    with one_line(r"lineitem: \d+\.\d GB of disk needed, \d") as caught:
        lineitem.require_disk(tmp_path / "not" / "made" / "lineitem", asked)
    assert "make room, or choose a smaller SIZE" in str(caught.value)
    assert names(tmp_path) == []


def test_a_disk_and_memory_that_are_large_enough_are_not_refused(tmp_path):
    lineitem.require_disk(tmp_path, [Layout(0.01, 1, 0, 1)])
    lineitem.require_memory(tmp_path, [Layout(0.01, 1, 0, 1)])


def test_too_little_memory_is_refused_unless_everything_is_there(tmp_path, monkeypatch):
    ensure(tmp_path, TINY)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(3_900_000_000))
    lineitem.require_memory(tmp_path, [TINY, Layout(0.1, 1, 0, 1)])
    with one_line(r"4.0 GB of memory needed, 3.9 GB available; choose a smaller"):
        lineitem.require_memory(tmp_path, [TINY, Layout(24, 24, 3, 2)])
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(0))
    lineitem.require_memory(tmp_path, [TINY])


def test_a_disk_that_fills_up_is_one_line_and_leaves_nothing_behind(tmp_path):
    with small_disk(tmp_path, "18m") as folder:  # space for the generator and 1.6 MB more
        with one_line(r"cannot build lineitem in .*No space left on device"):
            ensure(folder, Layout(0.1, 1, 0, 1))
        assert [path.name for path in folder.rglob("*")] == ["parts"]


def test_a_file_in_the_place_of_the_folder_is_one_line_that_names_it(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with one_line(str(tmp_path / "file")):
        ensure(tmp_path / "file" / "lineitem", TINY)


def has_ended(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE  # where no process waits for the end of orphans
    except psutil.NoSuchProcess:
        return True


def builders_of_this_process():
    children = psutil.Process().children()
    return [child for child in children if "harness.datasets.lineitem.builder" in child.cmdline()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_build_leaves_only_partial_files_which_the_next_build_removes(tmp_path, number):
    command = (sys.executable, "-c", ENSURE, str(tmp_path))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout.readline() == "building lineitem part 1 of 3\n"
        until(lambda: list(tmp_path.glob("*.partial-*")))
        builders = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
    assert builders
    until(lambda: all(map(has_ended, builders)))
    left = [path.name for path in (*tmp_path.iterdir(), *(tmp_path / "parts").iterdir()) if path.name != "parts"]
    assert left
    assert all(".partial-" in name for name in left)
    (tmp_path / "parts" / "x.parquet.partial-1").touch()
    ensure(tmp_path, TINY)
    assert names(tmp_path) == sorted([TINY.file_name, TINY.file_name.replace(".parquet", ".json")])


def test_a_builder_that_is_killed_is_one_line_and_leaves_no_file(tmp_path):
    def kill_the_builder():
        until(builders_of_this_process)
        builders_of_this_process()[0].kill()

    killer = Thread(target=kill_the_builder)
    killer.start()
    with one_line(r"ended without an answer \(code -9; .* 4 GB of memory"):
        ensure(tmp_path, Layout(0.9, 1, 0, 1))
    killer.join()
    assert not list(tmp_path.rglob("*.parquet*"))
