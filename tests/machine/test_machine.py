"""What this machine has left is known before anything starts; too little of it is one line with both figures."""

from collections import namedtuple
from functools import partial
from pathlib import Path

import psutil
import pytest

from harness.machine import inventory
from harness.model import LabError

Usage = namedtuple("Usage", "total used free")
Memory = namedtuple("Memory", "total available")


@pytest.fixture
def left(monkeypatch):
    """Leave 2.5 GB of disk and 3 GB of memory on this machine; returns the folders whose disk was asked for."""
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
        (partial(inventory.require_disk, Path("/tmp")), 2_500_000_000, "2.5 GB of free disk in /tmp"),
        (lambda needed, todo: inventory.require_memory(needed, "rows", todo), 3 * 10**9, "3.0 GB of available memory"),
    ],
)
def test_enough_is_enough_to_the_byte_and_too_little_is_one_line_with_both_figures(left, require, has, said):
    require(has, "or choose a smaller SIZE")
    with pytest.raises(LabError, match=f"expected {said}, found {said[:6]}; .*choose a smaller SIZE") as caught:
        require(has + 1, "or choose a smaller SIZE")
    assert "\n" not in str(caught.value)


def test_the_disk_of_a_folder_that_is_not_made_yet_is_the_one_it_will_lie_on(left, tmp_path):
    with pytest.raises(LabError, match=f"in {tmp_path}/results/run, found"):
        inventory.require_disk(tmp_path / "results" / "run", 10**12, "")
    assert left == [tmp_path]


def test_small_amounts_are_said_in_megabytes(left, tmp_path, monkeypatch):
    monkeypatch.setattr(inventory.shutil, "disk_usage", lambda _: Usage(0, 0, 3_100_000))
    with pytest.raises(LabError, match=r"expected 7\.0 MB of free disk in .*, found 3\.1 MB"):
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
