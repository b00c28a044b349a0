"""The number of cores that this process may use, and of connections that are worth it."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def number_of_connections() -> int:
    """Return how many connections are worth it: one for each core that this process may use, 2 to 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(max(min([cores, *_limits()]), 2), 8)


def _limits() -> Iterator[int]:
    """Yield the limits, in cores, of this process's control group (v2) and of its parents.

    A container has such a limit, but sees all cores of the machine: https://docs.kernel.org/admin-guide/cgroup-v2.html
    """
    with suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next((_GROUPS / line[4:] for line in lines if line.startswith("0::/")), _GROUPS)
        for group in (own, *own.parents):
            with suppress(OSError, ValueError):  # the root has no such file; "max" is no limit
                quota, period = map(int, (group / "cpu.max").read_text().split())
                yield math.ceil(quota / period)
