"""What transports were called before: so that old results, globs and suites still mean the same ones.

`renamed.csv` has an id of the past and the id of today in every line; nothing is ever taken out of it.
"""

import csv
from functools import cache
from pathlib import Path


@cache
def ids() -> dict[str, str]:
    """Return today's id by every id of the past."""
    with Path(__file__).with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        return {line["before"]: line["now"] for line in csv.DictReader(file)}


@cache
def _before() -> dict[str, tuple[str, ...]]:
    before: dict[str, tuple[str, ...]] = {}
    for old, new in ids().items():
        before[new] = (*before.get(new, ()), old)
    return before


def current(transport: str) -> str:
    """Return the id that a transport has today, given the one it has or had."""
    return ids().get(transport, transport)


def former(transport: str) -> tuple[str, ...]:
    """Return the ids that a transport of today had before."""
    return _before().get(transport, ())
