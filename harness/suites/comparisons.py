"""What a suite wants to be said of its runs: which points or transports of an experiment are set against each other."""

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from harness.model import Value

_ENTRIES = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_ENTRIES)
class Comparison:
    """Two points of an experiment whose times are set against each other: parameters with their values.

    `title` reads as the beginning of "... took 7 % longer"; `published` is what the author found, in a few words.
    """

    title: str
    experiment: str
    one: dict[str, Value]
    other: dict[str, Value]
    published: str = ""

    def __post_init__(self) -> None:
        if not self.one or self.one.keys() != self.other.keys() or self.one == self.other:
            raise ValueError("expected one and other with the same parameters, not all equal")


@dataclass(frozen=True, config=_ENTRIES)
class Sweep:
    """A parameter of an experiment, of whose values the fastest is set against all others.

    `figure` is `seconds`, or a name in the column `details`; of rates (`..._per_s`) the largest is the fastest.
    """

    experiment: str
    parameter: str
    figure: str = "seconds"


@dataclass(frozen=True, config=_ENTRIES)
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
