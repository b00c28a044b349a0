"""The times of the parts of one call, if a client can separate them. Standard library only.

A transport uses `with phase("encode"):` around a part of its work. The names: `encode` (frame to bytes), `send`
(bytes until the server has accepted them), `receive` (query until all bytes are here), `decode` (bytes to frame).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS: dict[str, float] = {}


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Add the wall time of a part of the call to the phase of this name; overlapping phases both count it."""
    started = time.perf_counter()
    try:
        yield
    finally:
        _SECONDS[name] = _SECONDS.get(name, 0.0) + time.perf_counter() - started


def forget_phases() -> None:
    """Reset: a warm-up's phases are not part of the measured call."""
    _SECONDS.clear()


def phase_seconds() -> dict[str, float]:
    """Return the seconds of every phase since `forget_phases`, in the order in which they first ended."""
    return dict(_SECONDS)
