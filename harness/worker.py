"""The child process of one run: connect, warm up, measure one call, print one JSON line.

The job comes as one line of JSON on standard input, so that no password stands in a process list. The answer goes to
the original standard output; what a client prints goes to standard error.
"""

import asyncio
import importlib
import json
import os
import sys
import threading
import time
import traceback
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from harness import registry
from harness.canonical import NotConvertible, canonicalise, library_of, load_frame
from harness.measure import Stopwatch
from harness.model import Direction, SharedFolder, Status, Transport

WARMUP_ROWS = 1_000


def main() -> None:
    """Run one job and leave at once: interpreter teardown of large libraries is nobody's measurement."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    try:
        answer = run(job)
    except registry.Unsupported as error:
        answer = {"status": Status.UNSUPPORTED, "error": str(error)}
    except Exception as error:
        traceback.print_exc()
        answer = {"status": Status.ERROR, "error": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
    sys.stderr.flush()
    os._exit(0)


def _leave_with_the_parent() -> None:
    """End this process when the parent is gone: then the other end of standard input closes."""
    sys.stdin.read()
    os._exit(1)


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Execute a job and return the answer: status, connect_seconds, the stopwatch's report, converted columns.

    A read leaves its canonical frame at `job["result"]` for the parent to verify.
    """
    entry = registry.one(job["transport"])
    for module in entry.requires:
        importlib.import_module(module)
    if entry.direction is Direction.WRITE:
        frame = load_frame(job["dataset"], entry.frame, job["kinds"])
        calls: list[tuple[Any, ...]] = [(frame.head(WARMUP_ROWS), job["warmup_table"]), (frame, job["table"])]
    else:
        calls = [(job["warmup_table"],), (job["table"],)]
    stopwatch, connect_seconds, returned = _measure(entry, job, calls)
    answer = {"status": Status.OK, "connect_seconds": connect_seconds, "report": stopwatch.report(), "converted": {}}
    if entry.direction is Direction.READ:
        answer |= _hand_over(returned, entry.frame, job)
    return answer


def _measure(entry: Transport, job: dict[str, Any], calls: list[tuple[Any, ...]]) -> tuple[Stopwatch, float, Any]:
    io = (SharedFolder(**job["io"]),) if "shared_io" in entry.needs else ()
    connecting = registry.connect_of(entry)(job["uri"], *io)
    if entry.style == "async":
        return asyncio.run(_measure_async(entry, connecting, calls))
    return _measure_sync(entry, connecting, calls)


def _measure_sync(
    entry: Transport, connecting: AbstractContextManager[Any], calls: list[tuple[Any, ...]]
) -> tuple[Stopwatch, float, Any]:
    warmup, measured = calls
    started = time.perf_counter()
    with connecting as connection:
        connect_seconds = time.perf_counter() - started
        entry.function(connection, *warmup)
        with Stopwatch() as stopwatch:
            returned = entry.function(connection, *measured)
    return stopwatch, connect_seconds, returned


async def _measure_async(
    entry: Transport, connecting: AbstractAsyncContextManager[Any], calls: list[tuple[Any, ...]]
) -> tuple[Stopwatch, float, Any]:
    warmup, measured = calls
    started = time.perf_counter()
    async with connecting as connection:
        connect_seconds = time.perf_counter() - started
        await entry.function(connection, *warmup)
        with Stopwatch() as stopwatch:
            returned = await entry.function(connection, *measured)
    return stopwatch, connect_seconds, returned


def _hand_over(returned: Any, library: str, job: dict[str, Any]) -> dict[str, Any]:
    try:
        if (found := library_of(returned)) != library:  # the way to the library it names would not have been timed
            return {"status": Status.ERROR, "error": f"expected a {library} DataFrame, found one of {found}"}
        frame, converted = canonicalise(returned, job["kinds"])
    except NotConvertible as error:
        return {"status": Status.MISMATCH, "error": str(error)}
    frame.write_ipc(job["result"])
    return {"converted": converted}


if __name__ == "__main__":
    main()
