"""A suite's comparisons in its report: which points or transports of an experiment are compared."""

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from harness.model import Value

_ENTRIES = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_ENTRIES)
class Comparison:
    """Two points of an experiment whose times are compared: parameters with their values.

    `title` reads as the beginning of "... took 7 % longer". `published` is the author's result, in a few words.
    """

    title: str
    experiment: str
    one: dict[str, Value]
    other: dict[str, Value]
    published: str = ""

    def __post_init__(self) -> None:
        if not self.one or self.one.keys() != self.other.keys() or self.one == self.other:
            raise ValueError("one and other need the same parameters, at least one with another value")


@dataclass(frozen=True, config=_ENTRIES)
class Sweep:
    """A parameter of an experiment whose fastest value is compared with each other value.

    `figure` is `seconds`, or a name in the column `details`. For rates (`..._per_s`) the largest is the fastest.
    """

    experiment: str
    parameter: str
    figure: str = "seconds"


@dataclass(frozen=True, config=_ENTRIES)
class Versus:
    """Two transports (by id) of an experiment, compared at the same parameters.

    `title` reads as the beginning of "... took 7 % longer". `figure` is the first one's, `against_figure` (if
    different) the second one's; see `Sweep`.
    """

    title: str
    experiment: str
    transport: str
    against: str
    figure: str = "seconds"
    against_figure: str = ""


AnyComparison = Comparison | Sweep | Versus
