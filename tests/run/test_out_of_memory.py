"""A run in which the kernel ends a process for lack of memory."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model import Status

pytestmark = pytest.mark.process


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group whose processes may have 200 MB of memory together."""
    root = Path("/sys/fs/cgroup/memory" if Path("/sys/fs/cgroup/memory").is_dir() else "/sys/fs/cgroup")
    group, limit = root / f"lab-test-{os.getpid()}", "memory.limit_in_bytes" if root.name == "memory" else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text("200000000")
    except OSError as error:
        pytest.skip(f"this user may not make a control group with a limit of memory: {error}")
    yield group
    group.rmdir()


KEY = ("made.up.greedy", "growing", "files=1; page_cache=warm", 2)


@pytest.mark.alone  # otherwise the lab would blame other failures on the machine, too
@pytest.mark.parametrize(
    ("excused", "status", "said"),
    [
        (set(), Status.AGAIN, "; the worker was killed by SIGKILL"),
        ({KEY}, Status.KILLED, ", for the second time"),
    ],
)
def test_the_kernel_excuses_a_run_that_it_ends_for_memory_once(perform, small_group, excused, status, said):
    row, _ = perform("greedy", excused=excused, folder=small_group)
    assert row.status is status
    assert row.error.startswith(f"the kernel ended a process for want of memory during this run{said}")
