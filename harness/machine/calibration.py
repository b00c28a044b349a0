"""How fast this machine is now: a fixed job of two seconds for its processor, memory, disk and loopback.

Earlier figures are kept, so that a run can say how much slower than its best the machine was. No ratio of a report
depends on them.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

SECONDS = 0.5  # of each of the four parts
_FILE = "calibration.json"
_BLOCK = 8 << 20

Rates = dict[str, float]  # how often a second: hashes, copies, synced writes, round trips


def calibrate(folder: Path, seconds: float = SECONDS) -> tuple[Rates, Rates]:
    """Measure the machine, with the disk of a folder; return the rates of now, and the best that the folder knows.

    Raises OSError where the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    now = {"cpu": _cpu(seconds), "memory": _memory(seconds)}
    now |= {"disk": _disk(folder, seconds), "loopback": _loopback(seconds)}
    best = {name: max(rate, _known(folder).get(name, 0.0)) for name, rate in now.items()}
    (folder / _FILE).write_text(json.dumps(best), encoding="utf-8")
    return now, best


def slower(now: Rates, best: Rates) -> dict[str, float]:
    """Return how many times as long each part takes as at its best."""
    return {name: best[name] / rate for name, rate in now.items()}


def contention() -> float:
    """Return how many times as long as on an idle machine this thread has taken so far; 1 where Linux does not tell."""
    try:
        worked, waited, _ = map(int, Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split())
    except OSError:
        return 1.0
    return (worked + waited) / worked if worked else 1.0


def _known(folder: Path) -> Rates:
    with suppress(OSError, ValueError):
        return {str(name): float(rate) for name, rate in json.loads((folder / _FILE).read_text("utf-8")).items()}
    return {}


def _rate(work: Callable[[], object], seconds: float) -> float:
    count, started = 0, time.perf_counter()
    while (taken := time.perf_counter() - started) < seconds or not count:
        work()
        count += 1
    return count / taken


def _cpu(seconds: float) -> float:
    block = bytes(1_000)  # so short that hashlib keeps the interpreter lock
    return _rate(lambda: hashlib.sha256(block).digest(), seconds)


def _memory(seconds: float) -> float:
    source, target = bytes(_BLOCK), bytearray(_BLOCK)

    def copy() -> None:
        target[:] = source

    return _rate(copy, seconds)


def _disk(folder: Path, seconds: float) -> float:
    block = os.urandom(1 << 20)
    with tempfile.TemporaryFile(dir=folder) as file:

        def write() -> None:
            file.seek(0)
            file.write(block)
            file.flush()
            os.fsync(file.fileno())

        return _rate(write, seconds)


def _loopback(seconds: float) -> float:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        answering = threading.Thread(target=_answer, args=(server,), daemon=True)
        answering.start()
        with closing(socket.create_connection(server.getsockname())) as asking:
            asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def round_trip() -> None:
                asking.sendall(b"?")
                asking.recv(1)

            found = _rate(round_trip, seconds)
        answering.join()
    return found


def _answer(server: socket.socket) -> None:
    with closing(server.accept()[0]) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while one.recv(1):
            one.sendall(b"!")
