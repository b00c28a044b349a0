"""Clock, CPU, peak memory, and stolen CPU time, around one call; independent of transports and systems.

The worker wraps the call in a `Stopwatch`. The parent samples the worker's memory from outside every 50 ms, as the
published scan benchmark does. Sampling therefore takes neither the interpreter lock nor CPU of the call. The kernel's
own high-water mark, reset just before the clock starts, covers the peaks between samples.
"""

import ctypes
import gc
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import psutil

from harness.worker.lines import Message

SAMPLE_SECONDS = 0.05
_WAIT_SECONDS = 0.5
_Read = TypeVar("_Read")
_LINUX = sys.platform == "linux"
_CPUCLOCK_SCHED = 2  # clock_getcpuclockid(3): a process's clock id combines its inverted id and this


@dataclass(frozen=True)
class Memory(Message):
    """Resident memory in bytes; the split and the high-water mark are None if the system does not report them."""

    rss: int
    anon: int | None = None
    file: int | None = None
    high_water: int | None = None


@dataclass(frozen=True)
class StopwatchReport(Message):
    """A stopwatch's readings around a call, which lasted from `started_ns` to `ended_ns` of the monotonic clock.

    The clock counts nanoseconds and is the same in every process of a machine. `high_water` is the kernel's mark of
    resident memory in bytes. It and the stolen CPU time are None if the system does not report them.
    """

    seconds: float
    cpu_user_seconds: float
    cpu_system_seconds: float
    steal_seconds: float | None
    throttled_seconds: float | None
    started_ns: int
    ended_ns: int
    before: Memory
    after: Memory
    high_water: int | None


@dataclass(frozen=True)
class Sample:
    """Memory and CPU time so far of another process, at one time of the monotonic clock."""

    at_ns: int
    memory: Memory
    cpu_seconds: float | None = None


def read_memory(pid: int | None = None) -> Memory:
    """Return the memory of a process (default: this one). Raises ProcessLookupError if it is gone."""
    pid = pid or os.getpid()
    if not _LINUX:
        return _elsewhere(pid, lambda process: Memory(process.memory_info().rss))
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        raise ProcessLookupError(f"no process {pid}") from None
    sizes = {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith(" kB")}
    if "VmRSS" not in sizes:  # a zombie has no memory
        raise ProcessLookupError(f"process {pid} has ended")
    return Memory(sizes["VmRSS"], sizes["RssAnon"] + sizes["RssShmem"], sizes["RssFile"], sizes["VmHWM"])


def _elsewhere(pid: int, read: Callable[[psutil.Process], _Read]) -> _Read:
    """Return psutil's facts about a process. Raises ProcessLookupError if it is gone."""
    try:
        return read(psutil.Process(pid))
    except psutil.NoSuchProcess:
        raise ProcessLookupError(f"no process {pid}") from None


def read_cpu_seconds(pid: int) -> float:
    """Return the user and system CPU time of a process with all its threads so far.

    Raises ProcessLookupError if it is gone.
    """
    if not _LINUX:
        return _elsewhere(pid, lambda process: sum(process.cpu_times()[:2]))
    # /proc/PID/stat counts hundredths of a second, a fifth of a sampling interval; this clock counts nanoseconds.
    try:
        return time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)
    except OSError:
        raise ProcessLookupError(f"no process {pid}") from None


def read_steal_seconds(stat: Path = Path("/proc/stat")) -> float | None:
    """Return how long, summed over cores, this machine had work while the host ran other machines, so far.

    None if the system does not report it. Steps are 0.01 s (USER_HZ): see "steal" in proc_stat(5).
    """
    try:
        name, *ticks = stat.read_text().partition("\n")[0].split()
    except OSError:
        return None
    return int(ticks[7]) / os.sysconf("SC_CLK_TCK") if name == "cpu" and len(ticks) > 7 else None


def read_throttled_seconds(
    groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> float | None:
    """Return how long a CPU limit has stopped this process's control group so far; None without one.

    Supports groups of version 1 and 2, and a container that sees only its own group as the root.
    """
    try:
        lines = [line.split(":", 2) for line in groups.read_text().splitlines()]
    except OSError:
        return None
    for _, controllers, path in lines:
        if "cpu" in controllers.split(",") or not controllers:
            folder = root / controllers
            for stat in (folder / path.lstrip("/") / "cpu.stat", folder / "cpu.stat"):
                if (seconds := _throttled(stat)) is not None:
                    return seconds
    return None


def _throttled(stat: Path) -> float | None:
    try:
        facts = dict(line.split() for line in stat.read_text().splitlines())
    except OSError:
        return None
    for name, a_second in (("throttled_usec", 1e6), ("throttled_time", 1e9)):
        if name in facts:
            return int(facts[name]) / a_second
    return None


def cores_used(report: StopwatchReport, samples: list[Sample]) -> list[tuple[float, float]]:
    """Return the cores that a call kept busy between samples: seconds since its start, and cores.

    A call with fewer than two samples has none.
    """
    inside = [
        (sample.at_ns, sample.cpu_seconds)
        for sample in samples
        if sample.cpu_seconds is not None and report.started_ns <= sample.at_ns <= report.ended_ns
    ]
    return [
        ((at - report.started_ns) / 1e9, (cpu - cpu_before) / ((at - before) / 1e9))
        for (before, cpu_before), (at, cpu) in pairwise(inside)
    ]


def reset_high_water() -> bool:
    """Reset this process's kernel high-water mark to its present size; False if that is not possible."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def release_unused_memory() -> None:
    """Return to the system the freed memory that the allocators still hold.

    Otherwise a call could reuse memory from loading its data, and its own peak would not be seen. This reaches the C
    library's allocator (glibc) and Arrow's. Memory in other libraries' allocators stays.
    """
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def wait_for_other_threads() -> None:
    """Wait until no other thread of this process runs, at most half a second; only on Linux.

    numpy's import starts the threads of OpenBLAS, and each keeps a core busy for 0.02 to 0.06 s before it sleeps. If
    the warm-up call of a transport imports numpy, its measured call would be charged with the rest of that time.
    """
    end = time.monotonic() + _WAIT_SECONDS
    while _another_thread_runs() and time.monotonic() < end:
        time.sleep(0.001)


def _another_thread_runs() -> bool:
    own = str(threading.get_native_id())
    for stat in Path("/proc/self/task").glob("*/stat"):  # none elsewhere
        try:
            state = stat.read_text().rpartition(")")[2].split()[0]
        except OSError:  # it has ended
            continue
        if state == "R" and stat.parent.name != own:
            return True
    return False


def _taken() -> tuple[float | None, ...]:
    return read_steal_seconds(), read_throttled_seconds()


def _since(after: float | None, before: float | None) -> float | None:
    # Rounded, because a difference of two large floats is not exact below a nanosecond.
    return None if after is None or before is None else max(0.0, round(after - before, 9))


class Stopwatch:
    """Measures the body of a `with` block; only the body runs between the two clock readings.

    `begin` is called when all but the clock is ready. Slow preparation is done by then, so several processes can start
    at the same time.
    """

    def __init__(self, begin: Callable[[], None] = lambda: None) -> None:
        self._begin = begin

    def __enter__(self) -> "Stopwatch":
        gc.collect()
        wait_for_other_threads()
        self._begin()
        self._taken = _taken()
        self._mark_is_ours = reset_high_water()
        self.before = read_memory()
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self.started_ns = time.monotonic_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended_ns = time.monotonic_ns()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.after = read_memory()
        self._taken = tuple(map(_since, _taken(), self._taken))
        self.cpu_user_seconds = usage.ru_utime - self._usage.ru_utime
        self.cpu_system_seconds = usage.ru_stime - self._usage.ru_stime

    @property
    def seconds(self) -> float:
        """Wall seconds of the body."""
        return (self.ended_ns - self.started_ns) / 1e9

    def report(self) -> StopwatchReport:
        """Return all readings for the parent."""
        return StopwatchReport(
            seconds=self.seconds,
            cpu_user_seconds=self.cpu_user_seconds,
            cpu_system_seconds=self.cpu_system_seconds,
            steal_seconds=self._taken[0],
            throttled_seconds=self._taken[1],
            started_ns=self.started_ns,
            ended_ns=self.ended_ns,
            before=self.before,
            after=self.after,
            high_water=self.after.high_water if self._mark_is_ours else None,
        )


def peaks_above_start(report: StopwatchReport, samples: list[Sample]) -> tuple[int, int | None, int | None]:
    """Return the peaks of (RSS, anonymous, file-backed) bytes above the start of the call.

    Only `samples` inside the call count. The RSS peak is the larger of samples and high-water mark. A call that only
    releases memory has a peak of 0, its own start.
    """
    before = report.before
    inside = [sample.memory for sample in samples if report.started_ns <= sample.at_ns <= report.ended_ns]
    seen = [before, report.after, *inside]
    rss = max([memory.rss for memory in seen] + ([report.high_water] if report.high_water else []))
    if before.anon is None or before.file is None:
        return rss - before.rss, None, None
    anon = max(memory.anon or 0 for memory in seen) - before.anon
    file = max(memory.file or 0 for memory in seen) - before.file
    return rss - before.rss, anon, file
