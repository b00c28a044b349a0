"""A limit of memory ends who needs more, and leaves nothing behind."""

import os
import subprocess
import sys

import pytest

from harness.machine import memory_limit
from harness.machine.memory_limit import MemoryLimit

pytestmark = pytest.mark.process

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


@pytest.mark.alone  # the kernel ends a process: whoever runs beside would take it for a want of memory
def test_who_takes_more_is_ended_and_who_takes_less_is_not():
    limit = memory_limit.make(60_000_000)
    try:
        assert memory_limit.limited_by() == ("control group" if limit.group else "RLIMIT_DATA")
        assert take(limit, 10_000_000) == 0
        assert take(limit, 200_000_000) != 0
    finally:
        memory_limit.remove(limit)
    assert not (limit.group and os.path.exists(limit.group))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere RLIMIT_DATA does not count what is mapped")
def test_without_control_groups_the_limit_is_that_of_the_data_of_a_process():
    limit = MemoryLimit(60_000_000)
    assert take(limit, 10_000_000) == 0
    assert take(limit, 200_000_000) == 1  # MemoryError
