"""The child process of one run: connect, warm up, measure one call, answer.

The job arrives as one line of JSON on standard input, so that no password appears in a process list. The command's
arguments may name the transport in advance. The process then imports its modules before it takes the job. Events, the
last of them with the answer, go to the original standard output. Output of clients goes to standard error. After a job
with `stays` another may follow. This saves another import of the clients if the lab does not measure.
"""

import ctypes
import gc
import importlib
import io
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import BinaryIO, cast

from harness import registry
from harness.machine.marked import VARIABLE
from harness.model import Connection, Frame, Status, Transport, Value
from harness.registry import load
from harness.worker.contracts.calls import Calls, Contract
from harness.worker.lines import line, made
from harness.worker.measure import Stopwatch, release_unused_memory
from harness.worker.messages import ANSWERED, CALLED, PAUSED, Answer, AnyJob, Failed, Measured, Numbers
from harness.worker.meters import Meters

_Measured = tuple[Stopwatch, float, Frame]  # a stopwatch's readings, the seconds to connect, and the result
_PR_SET_PDEATHSIG = 1  # prctl(2); the thread that started this process waits for it


def main(ahead: Sequence[str] = ()) -> None:
    """Run a job, or several, and exit at once: the teardown of large libraries is not part of any measurement.

    `ahead` may be a contract, a transport and its module, to prepare before the job arrives.
    """
    _belong_to_the_parent()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # clients' output reaches the log even after a kill
    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs,), daemon=True).start()
    if ahead:
        _get_ready(*ahead)
    stays, imported = True, 0
    while stays:
        answer = _answer(jobs.get(), partial(_say, answers, CALLED), partial(_pause, answers, jobs))
        _say(answers, ANSWERED, answer)
        stays = answer.stays
        if stays and len(sys.modules) > imported:
            imported = len(sys.modules)
            gc.collect()  # otherwise present garbage would stay as well
            gc.freeze()  # imported objects stay, and scanning them would take most of the time of a small job
    sys.stderr.flush()
    os._exit(0)


def _say(answers: BinaryIO, name: str, answer: Answer | Failed | None = None) -> None:
    answers.write(line({"event": name, "answer": answer}))
    answers.flush()


def _pause(answers: BinaryIO, jobs: "queue.SimpleQueue[str]") -> None:
    _say(answers, PAUSED)
    jobs.get()


def _belong_to_the_parent() -> None:
    """Leave interrupts to the parent, regardless of clients' handlers, and end with it even while stopped."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _receive(jobs: queue.SimpleQueue[str]) -> None:
    """Receive jobs, and end this process when the parent is gone: standard input then closes."""
    for text in sys.stdin:
        jobs.put(text)
    os._exit(1)


def _get_ready(contract: str, transport: str, module: str) -> None:
    """Import the job's modules in advance; an import that fails here fails again with the job, which reports it."""
    with suppress(BaseException):
        _import(registry.one(transport, module), _contract(contract))


def _contract(name: str) -> Contract:
    return cast(Contract, importlib.import_module(f"harness.worker.contracts.{name}"))


def _import(entry: Transport, contract: Contract) -> None:
    for module in (*entry.requires, *getattr(contract, "IMPORTS", {}).get((entry.operation, entry.frame), ())):
        load(module)


def _answer(text: str, called: Callable[[], None], paused: Callable[[], None]) -> Answer | Failed:
    """Run a job and return its answer, even after an error; it also says whether this process stays for another job."""
    stays = False
    try:
        asked = json.loads(text)
        contract = _contract(asked["contract"])
        job = made(contract.JOB, asked["job"])
        stays = job.stays
        return replace(run(contract, job, called, paused), stays=stays)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        if registry.is_unsupported(error):
            return Failed(Status.UNSUPPORTED, str(error), stays)
        traceback.print_exc()
        # A Rust client's panic is not an Exception, and leaves the client in an unknown state.
        return Failed(Status.ERROR, f"{type(error).__name__}: {error}", stays and isinstance(error, Exception))


def run(
    contract: Contract,
    job: AnyJob,
    called: Callable[[], None] = lambda: None,
    paused: Callable[[], None] = lambda: None,
) -> Answer | Failed:
    """Execute a job and return the answer; the contract defines its own fields and the object stored at `job.result`.

    `called` is called after the timing: nothing that follows is timed. `paused` returns when this process may continue;
    see `Job`.

    Raises every exception of the transport.
    """
    entry = registry.one(job.transport, job.module)
    if job.mark:
        os.environ[VARIABLE] = job.mark
    _import(entry, contract)
    calls = contract.calls(entry, job)
    meters = Meters(job.server_pids or [], job.mark)
    if not job.stays:  # memory is not measured in a process with several jobs
        release_unused_memory()
    stopwatch, connect_seconds, returned = _result(_measured(entry, calls, meters, job, paused), entry.style)
    called()
    details: Numbers = {f"{name}_seconds": round(seconds, 6) for name, seconds in registry.phase_seconds().items()}
    if job.server_pids is not None:
        details |= meters.details()
    return contract.hand_over(entry, returned, job, Measured(connect_seconds, stopwatch.report(), details))


def _result(measured: Coroutine[None, None, _Measured], style: str) -> _Measured:
    """Run a measurement: in an event loop, or without one if the transport is sync and so never waits.

    The task must not return the result. asyncio.run installs a SIGINT handler, for which Python prints the handler, its
    task and the task's result. polars 2.1 panics when it prints a frame with a date after the year 262143.
    """
    results: list[_Measured] = []

    async def keep() -> None:
        results.append(await measured)

    if style == "async":
        import asyncio  # most clients do not need it

        asyncio.run(keep())
    else:
        with suppress(StopIteration):
            keep().send(None)
    return results[0]


async def _measured(
    entry: Transport, calls: Calls, meters: Meters, job: AnyJob, pause: Callable[[], None]
) -> _Measured:
    """Connect, warm up, and measure one call."""
    connect, call, waits = registry.connect_of(entry), entry.function, entry.style == "async"

    async def opened(stack: AsyncExitStack, arguments: Sequence[object]) -> Connection:
        context = connect(*arguments)
        return await stack.enter_async_context(context) if waits else stack.enter_context(context)

    async def result(connection: Connection, arguments: Sequence[object], named: Mapping[str, Value]) -> Frame:
        returned = call(connection, *arguments, **named)
        return await returned if waits else returned

    if calls.connect_warmup is not None and calls.warmup is not None:
        async with AsyncExitStack() as stack:
            await result(await opened(stack, calls.connect_warmup), calls.warmup, calls.warmup_named)
    started = time.perf_counter()
    async with AsyncExitStack() as stack:
        connection = await opened(stack, calls.connect)
        connect_seconds = time.perf_counter() - started
        if calls.connect_warmup is None and calls.warmup is not None:
            await result(connection, calls.warmup, calls.warmup_named)
        for _ in range(job.call - 1):
            await result(connection, calls.measured, calls.measured_named)
            pause()
        registry.forget_phases()
        with meters, Stopwatch(pause if job.together else lambda: None) as stopwatch:
            returned = call(connection, *calls.measured, **calls.measured_named)
            if waits:
                returned = await returned
        if calls.following is not None:
            returned = [returned, *[await result(connection, each, {}) for each in calls.following]]
    return stopwatch, connect_seconds, returned
