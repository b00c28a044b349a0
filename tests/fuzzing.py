"""How many made-up files and frames a test tries: a third every day, many times as many at night."""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("LAB_FUZZ_TIMES", "1"))


def examples(count: int) -> settings:
    """Try so many examples, every day a third; whatever one takes, and one fixture serves them all."""
    return settings(
        max_examples=count * TIMES if TIMES > 1 else -(-count // 3), suppress_health_check=list(HealthCheck)
    )
