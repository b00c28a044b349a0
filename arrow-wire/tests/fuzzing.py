"""How many made-up arrays a test of the compiled library tries: a third every day, many times as many at night.

Hypothesis keeps the failures that it finds in `.hypothesis/`, and tries them first the next time. A night keeps that
folder for the next one (.github/workflows/nightly.yml). A test has its past failures as `@example`.
"""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("LAB_FUZZ_TIMES", "1"))


def examples(count: int) -> settings:
    """Try so many examples, every day a third. Each may take any time, and one fixture serves them all."""
    return settings(
        max_examples=count * TIMES if TIMES > 1 else -(-count // 3), suppress_health_check=list(HealthCheck)
    )
