"""How many made-up files and frames a test tries: a third every day, many times as many at night.

LAB_FUZZ_TIMES=100 .venv/bin/pytest tests/datasets/test_odd_csv.py tests/datasets/test_odd_columns.py tries 12,000 and
more of each kind, as .github/workflows/nightly.yml does.
"""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("LAB_FUZZ_TIMES", "1"))


def examples(count: int) -> settings:
    """Try so many examples, every day a third; whatever one takes, and one fixture serves them all."""
    return settings(
        max_examples=count * TIMES if TIMES > 1 else -(-count // 3), suppress_health_check=list(HealthCheck)
    )
