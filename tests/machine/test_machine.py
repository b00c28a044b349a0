"""The machine's free resources are known, a mark finds processes and their connections, and memory is limited."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections import namedtuple
from functools import partial
from pathlib import Path

import psutil
import pytest

from harness.machine import inventory, marked, memory_limit, page_cache
from harness.machine.calibration import calibrate, contention, slower
from harness.machine.inventory import filesystem
from harness.machine.marked import VARIABLE, Connection, Connections
from harness.machine.memory_limit import MemoryLimit
from harness.model import LabError
from tests.commands import one_line
from tests.disks import small_disk
from tests.waiting import until

Usage = namedtuple("Usage", "total used free")
Memory = namedtuple("Memory", "total available")


@pytest.fixture
def left(monkeypatch):
    """Pretend that this machine has 2.5 GB of disk and 3 GB of memory; return the folders whose disk was queried."""
    asked = []

    def disk_usage(folder):
        asked.append(Path(folder))
        return Usage(10**15, 0, 2_500_000_000)

    monkeypatch.setattr(inventory.shutil, "disk_usage", disk_usage)
    monkeypatch.setattr(inventory.psutil, "virtual_memory", lambda: Memory(10**15, 3_000_000_000))
    return asked


@pytest.mark.parametrize(
    ("require", "has", "said"),
    [
        (partial(inventory.require_disk, Path("/tmp")), 2_500_000_000, "2.5 GB of disk needed, 2.5 GB free"),
        (
            lambda needed, todo: inventory.require_memory(needed, "rows", todo),
            3 * 10**9,
            "3.0 GB of memory needed, 3.0 GB available",
        ),
    ],
)
def test_enough_is_enough_to_the_byte_and_too_little_is_one_line_with_both_figures(left, require, has, said):
    require(has, "or choose a smaller SIZE")
    with one_line(f"{said}; .*choose a smaller SIZE"):
        require(has + 1, "or choose a smaller SIZE")


def test_the_disk_of_a_folder_that_is_not_made_yet_is_the_one_it_will_lie_on(left, tmp_path):
    with pytest.raises(LabError, match=f"^{tmp_path}/results/run: .* needed, "):
        inventory.require_disk(tmp_path / "results" / "run", 10**12, "")
    assert left == [tmp_path]


def test_small_amounts_are_said_in_megabytes(left, tmp_path, monkeypatch):
    monkeypatch.setattr(inventory.shutil, "disk_usage", lambda _: Usage(0, 0, 3_100_000))
    with pytest.raises(LabError, match=r"7\.0 MB of disk needed, 3\.1 MB free"):
        inventory.require_disk(tmp_path, 7_000_000, "")


def group(folder, limit, used, **parts):
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text("".join(f"{name} {size}\n" for name, size in parts.items()))
    return folder


@pytest.mark.parametrize(
    ("limit", "used", "parts", "available"),
    [
        ("max", 1_000, {}, 3_000_000_000),
        (2_000_000_000, 500_000_000, {"anon": 500_000_000}, 1_500_000_000),
        (2_000_000_000, 1_900_000_000, {"inactive_file": 1_000_000_000, "active_file": 400_000_000}, 1_500_000_000),
        (8_000_000_000, 0, {}, 3_000_000_000),
    ],
    ids=["no limit", "used by processes", "page cache can be given up", "more than the machine has"],
)
def test_a_container_has_what_its_limit_leaves_at_most_what_the_machine_has(
    left, tmp_path, limit, used, parts, available
):
    assert inventory.available_memory(tmp_path) == 3_000_000_000  # without a control group
    assert inventory.available_memory(group(tmp_path, limit, used, **parts)) == available


def test_a_machine_says_what_it_is():
    found = inventory.describe_machine()
    assert found["memory_bytes"] == psutil.virtual_memory().total
    assert found["cores"] >= 1
    assert all(found[name] for name in ("host", "system", "kernel", "architecture"))


def test_the_filesystem_of_a_folder_is_that_of_its_nearest_mount(monkeypatch, tmp_path):
    Part = namedtuple("Part", "mountpoint fstype device", defaults=("none",))
    parts = [Part("/", "ext4"), Part(str(tmp_path), "xfs"), Part(str(tmp_path / "other"), "nfs")]
    monkeypatch.setattr(inventory.psutil, "disk_partitions", lambda all: parts)
    assert inventory.filesystem(tmp_path / "deep" / "er") == "xfs"
    assert inventory.filesystem(Path("/elsewhere")) == "ext4"
    monkeypatch.setattr(inventory.psutil, "disk_partitions", lambda all: [])
    assert inventory.filesystem(tmp_path) == ""


@pytest.mark.parametrize(
    ("options", "expected"),
    [("rw\ndelalloc\ndata=ordered\n", "ext4"), ("rw\ndelalloc\n", "ext4 without a journal"), (None, "ext4")],
    ids=["with a journal", "without", "not told"],
)
def test_an_ext4_without_a_journal_says_so(monkeypatch, tmp_path, options, expected):
    Part = namedtuple("Part", "mountpoint fstype device")
    monkeypatch.setattr(inventory.psutil, "disk_partitions", lambda all: [Part("/", "ext4", "/dev/vda7")])
    if options is not None:
        (tmp_path / "vda7").mkdir()
        (tmp_path / "vda7" / "options").write_text(options)
    assert inventory.filesystem(Path("/data"), tmp_path) == expected


# A process that leaves its session and its parent, as daemons do, and says which it is.
LEAVING = """
import os, subprocess, sys
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
child = subprocess.Popen(sleep, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(child.pid, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the environment of processes is read from /proc")
@pytest.mark.process
def test_a_process_that_left_its_parent_is_found_and_ended():
    done = subprocess.run(
        [sys.executable, "-c", LEAVING],
        env={**os.environ, marked.VARIABLE: "of-a-test"},
        capture_output=True,
        text=True,
    )
    pid = int(done.stdout)
    assert marked.processes("of-a-test") == [pid]
    assert marked.processes("of-a-test-2") == []
    assert marked.end("of-a-test") == [pid]
    until(lambda: not psutil.pid_exists(pid))
    assert marked.processes("of-a-test") == []


@pytest.mark.skipif(sys.platform != "linux", reason="the environment of processes is read from /proc")
def test_memory_that_two_processes_share_is_counted_once():
    usage = marked.Usage()
    usage.look([os.getpid()])
    alone = usage.peak_rss_bytes
    assert alone > 10_000_000
    usage.look([2**22 + 1])  # no process has this id
    assert (usage.peak_rss_bytes, usage.processes) == (alone, 1)


TAKE = """
import sys
from harness.machine import memory_limit
memory_limit.enter(memory_limit.MemoryLimit(int(sys.argv[1]), sys.argv[2]))
taken = bytearray(int(sys.argv[3]))
for place in range(0, len(taken), 4096):
    taken[place] = 1
"""


def take(limit: MemoryLimit, size: int) -> int:
    arguments = (str(limit.bytes), limit.group, str(size))
    return subprocess.run([sys.executable, "-c", TAKE, *arguments], capture_output=True).returncode


@pytest.mark.process
@pytest.mark.alone  # the kernel ends a process, which another test would take for a lack of memory
def test_a_process_above_the_limit_is_ended_and_one_below_is_not():
    limit = memory_limit.make(60_000_000)
    try:
        assert memory_limit.limited_by() == ("control group" if limit.group else "RLIMIT_DATA")
        assert take(limit, 10_000_000) == 0
        assert take(limit, 200_000_000) != 0
    finally:
        memory_limit.remove(limit)
    assert not (limit.group and os.path.exists(limit.group))


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere RLIMIT_DATA does not count what is mapped")
def test_without_control_groups_the_limit_is_that_of_the_data_of_a_process():
    limit = MemoryLimit(60_000_000)
    assert take(limit, 10_000_000) == 0
    assert take(limit, 200_000_000) == 1  # MemoryError


CONNECTED = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    print(connection.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_connected_processes_with_the_mark_are_reported():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        marked, another = Connections("one", {port}), Connections("one", {port}, ["-c"])
        assert marked.now() == []
        for mark in ("one", "two"):
            started = subprocess.Popen(
                [sys.executable, "-c", CONNECTED, str(port)],
                env={VARIABLE: mark},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            with started:
                assert started.stdout
                assert started.stdin
                own = int(started.stdout.readline())
                assert marked.now() == ([Connection(own, started.pid, False)] if mark == "one" else [])
                assert another.now() == []
                accepted, _ = server.accept()
                with accepted:
                    accepted.sendall(b"an answer")
                    assert [one.unread for one in marked.now()] == ([True] if mark == "one" else [])
                    started.stdin.close()
        assert marked.now() == []


def test_each_part_has_a_rate_and_the_best_of_several_is_kept(tmp_path):
    now, best = calibrate(tmp_path, 0.01)
    assert set(now) == {"cpu", "memory", "disk", "loopback"}
    assert all(rate > 0 for rate in now.values())
    assert now == best
    (tmp_path / "calibration.json").write_text(json.dumps(dict.fromkeys(now, 1000000000000.0)))
    again, best = calibrate(tmp_path, 0.01)
    assert set(best.values()) == {1e12}
    assert slower(again, best)["cpu"] == pytest.approx(1e12 / again["cpu"])


def test_a_damaged_file_is_made_anew(tmp_path):
    (tmp_path / "calibration.json").write_text("{")
    now, best = calibrate(tmp_path / "new", 0.01)
    assert now == best
    assert calibrate(tmp_path, 0.01)[1].keys() == now.keys()


def test_a_thread_takes_no_less_time_than_on_an_idle_machine():
    assert contention() >= 1


MEGABYTE = 1 << 20
SIZE = 64 * MEGABYTE + 1_000  # the last page is not full


@pytest.fixture
def on_disk(tmp_path):
    """A newly written file of 64 MB, on a file system that can evict it."""
    if filesystem(tmp_path) in ("tmpfs", "ramfs"):
        pytest.skip(f"{tmp_path} is in memory")
    path = tmp_path / "file"
    path.write_bytes(os.urandom(MEGABYTE) * 64 + bytes(1_000))
    return path


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the page cache is Linux's")
def test_a_file_that_was_just_written_is_forgotten_when_dropped(on_disk):
    assert page_cache.resident_share(on_disk) > 0.9
    page_cache.drop([on_disk])
    assert page_cache.resident_share(on_disk) < 0.01


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the page cache is Linux's")
def test_warming_and_dropping_take_all_files(on_disk, tmp_path):
    other = tmp_path / "other"
    shutil.copyfile(on_disk, other)
    page_cache.drop([on_disk, other])
    assert max(map(page_cache.resident_share, (on_disk, other))) < 0.01
    page_cache.warm([on_disk, other])
    # While other tests run, the kernel may want a page for something else.
    assert min(map(page_cache.resident_share, (on_disk, other))) > 0.98


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the page cache is Linux's")
def test_looking_brings_no_page_in(on_disk):
    page_cache.drop([on_disk])
    first = page_cache.resident_share(on_disk)
    assert [page_cache.resident_share(on_disk) for _ in range(3)] == [first] * 3


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the page cache is Linux's")
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


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the page cache is Linux's")
def test_dropping_loses_no_byte(on_disk):
    content = on_disk.read_bytes()
    with on_disk.open("r+b") as file:
        file.write(b"changed")
    page_cache.drop([on_disk])
    assert on_disk.read_bytes() == b"changed" + content[7:]
    assert on_disk.stat().st_size == SIZE


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the page cache is Linux's")
def test_a_file_on_tmpfs_stays_and_the_share_says_so(tmp_path):
    with small_disk(tmp_path, "4m") as folder:
        path = folder / "file"
        path.write_bytes(bytes(MEGABYTE))
        page_cache.drop([path])
        assert page_cache.resident_share(path) == 1.0


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the page cache is Linux's")
@pytest.mark.parametrize("content", [b"few", b""])
def test_a_file_smaller_than_a_page_is_wholly_there(tmp_path, content):
    path = tmp_path / "small"
    path.write_bytes(content)
    page_cache.warm([path])
    assert page_cache.resident_share(path) == 1.0


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the page cache is Linux's")
@pytest.mark.parametrize("ask", [lambda path: page_cache.drop([path]), page_cache.resident_share])
def test_another_system_is_refused_in_one_line(on_disk, monkeypatch, ask):
    monkeypatch.setattr(sys, "platform", "darwin")
    with one_line(r"only Linux can .*, and this is darwin"):
        ask(on_disk)
