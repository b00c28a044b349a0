"""Wait for an effect of another process, no longer than a test may take."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 90.0  # for a busy machine; a waiting test goes on at once


def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds; fails after DEADLINE_SECONDS."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)
