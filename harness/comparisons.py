"""What a suite wants to be said of its runs: which points or transports of an experiment are set against each other."""

from dataclasses import dataclass
from typing import Any

from harness.model import Value


@dataclass(frozen=True)
class Comparison:
    """Two points of an experiment whose times are set against each other: parameters with their values.

    `title` reads as the beginning of "... took 7 % longer"; `published` is what the author found, in a few words.
    """

    title: str
    experiment: str
    one: dict[str, Value]
    other: dict[str, Value]
    published: str = ""


@dataclass(frozen=True)
class Sweep:
    """A parameter of an experiment, of whose values the fastest is set against all others.

    `figure` is `seconds`, or a name in the column `details`; of rates (`..._per_s`) the largest is the fastest.
    """

    experiment: str
    parameter: str
    figure: str = "seconds"


@dataclass(frozen=True)
class Versus:
    """Two transports (by id) of an experiment, set against each other at the same parameters.

    `title` reads as the beginning of "... took 7 % longer". `figure` is that of the first, `against_figure` (where
    it is another) that of the second; see `Sweep`.
    """

    title: str
    experiment: str
    transport: str
    against: str
    figure: str = "seconds"
    against_figure: str = ""


AnyComparison = Comparison | Sweep | Versus


def comparison(entries: dict[str, Any]) -> AnyComparison:
    """Return what the entries of one [[comparisons]] say. Raises TypeError or ValueError for what is none."""
    if "parameter" in entries:
        return Sweep(**entries)
    if "transport" in entries:
        return Versus(**entries)
    found = Comparison(**entries)
    if not found.one or found.one.keys() != found.other.keys() or found.one == found.other:
        raise ValueError(f'comparison "{found.title}": expected one and other with the same parameters, not all equal')
    return found
