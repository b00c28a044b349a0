"""Suites are data: their content, and the plan of one size. `suite_files` reads them."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from harness.model import Experiment, Value, unknown

# A suite's comparisons in its report: which points or transports of an experiment are compared.

_ENTRIES = ConfigDict(extra="forbid")


@checked_dataclass(frozen=True, config=_ENTRIES)
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


@checked_dataclass(frozen=True, config=_ENTRIES)
class Sweep:
    """A parameter of an experiment whose fastest value is compared with each other value.

    `figure` is `seconds`, or a name in the column `details`. For rates (`..._per_s`) the largest is the fastest.
    """

    experiment: str
    parameter: str
    figure: str = "seconds"


@checked_dataclass(frozen=True, config=_ENTRIES)
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


Rig = Literal["databases", "cluster", "parquet", "stores", "elt", "tuning"]  # the modules of run/rigs
SizeName = Literal["smoke", "default", "laptop", "full"]
SIZES: tuple[str, ...] = get_args(SizeName)
Statistic = Literal["median and range", "mean and deviation"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)


@dataclass(frozen=True)
class PublishedFigure:
    """One figure of a published benchmark, as its author printed it; None if the author does not give it.

    `description` is the author's name of the transport. `experiment`, `rows`, `bytes` and `parameters` (some of a
    case's) give the conditions. Times are means in seconds, rates in rows/s, memory the mean peak resident memory above
    the start in bytes. `detail` names a further figure by its name in the column `details`, and `detail_value` is its
    value.
    """

    description: str
    experiment: str | None = None
    rows: int | None = None
    bytes: int | None = None
    mean_seconds: float | None = None
    mean_rows_per_s: float | None = None
    min_rows_per_s: float | None = None
    max_rows_per_s: float | None = None
    peak_rss_bytes: float | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    detail: str | None = None
    detail_value: float | None = None


@checked_dataclass(frozen=True, config=_ENTRIES)
class Picture:
    """One picture of a suite's report, made from the rows of runs.csv that `where` selects (column -> its values).

    `bars`: one bar a transport, as long as the median of `y`, coloured by the column `colour`. `lines`: `y` over `x`,
    one line for each value of `colour` and (drawn differently) of `dash`. `scatter`: one mark a transport at the
    medians of `x` and `y`. `grid`: one line a transport, one column a value of `x` (in the order of `where`, if that
    has it). Its cells show how many of the expected rows were found, if the column `details` has that. Otherwise they
    show the runs' statuses, with `y` for ok runs. `traces`: cores in use over time, one line for each run of the last
    pass (of suites that request traces). `winners`: a map of the fastest: one line a value of `y`, one column a value
    of `x`. Each is a column, a parameter, several of them joined by ` + `, or `direction` (database, operation and
    frame); see `report.grids`. `grid` and `winners` are tables of the report, and drawn nowhere. `inset` adds the same
    lines on logarithmic axes; `log` makes the axes themselves logarithmic. `published` adds the author's figures next
    to ours. `crossings` marks on lines of rates over rows where the fastest transport changes (see `report.crossings`).
    Figures are columns, `detail:<name>`, or sums of both: `peak_rss_bytes + detail:workers_peak_rss_bytes`.
    """

    name: str
    title: str
    form: Literal["bars", "lines", "scatter", "grid", "traces", "winners"]
    y: str
    x: str = ""
    colour: str = "transport"
    dash: str = ""
    where: dict[str, list[str]] | None = None
    statistic: Statistic = "median and range"
    inset: bool = False
    log: bool = False
    published: bool = False
    crossings: bool = False

    @property
    def drawn(self) -> bool:
        """Whether it is drawn; else it is a table."""
        return self.form not in ("grid", "winners")


@checked_dataclass(frozen=True, config=_ENTRIES)
class AnswersWanted:
    """The first part of a suite's reports: the fastest transport for each frame, next to the default one.

    `experiment` is the one whose cases answer. `defaults` are the ids, or globs over ids, of common choices. The first
    that a run has for a system, operation and frame is the default there, and the report lists the rest with it.
    `beyond_pypi` names those that pip cannot install or that need more of the server. `existing` is the experiment
    whose tables have rows before a write; it answers on its own.
    """

    experiment: str
    defaults: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    beyond_pypi: list[Annotated[str, Field(min_length=1)]] = field(default_factory=list)
    existing: str = ""


@checked_dataclass(frozen=True, config=_ENTRIES)
class CrossingsWanted:
    """The experiments for which the report shows where the fastest transport changes with the rows, and costs of rows.

    A transport's cases in all of them form one curve, so that a size may have fewer transports than another.
    """

    experiments: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    networks: list[Annotated[str, Field(min_length=1)]] = field(default_factory=list)


Unasked = Literal["everything", "contenders", "nothing"]


@dataclass(frozen=True)
class Size:
    """One size of a suite: its experiments, passes, and a worker's time limit in seconds.

    `unasked` maps an experiment's name to the part of it that runs if the user requests no transports, origins or
    experiments by name.
    """

    passes: int
    time_limit: float
    experiments: tuple[Experiment, ...]
    unasked: dict[str, Unasked] = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    """A suite: its rig, its sizes and pictures, and the published benchmark it reproduces.

    `citation` and `conditions` are empty if it reproduces none. `traces` requests the CPU time of every run over time.
    `answers` is None if its question is not which transport to use for a frame. `crossings` is None if it does not
    compare curves over rows. `left_out` are the transports that its reference run shows not to be contenders
    (`harness.report.answers`).
    """

    name: str
    title: str
    rig: Rig
    citation: str
    conditions: str
    sizes: dict[str, Size]
    published: tuple[PublishedFigure, ...]
    pictures: tuple[Picture, ...]
    comparisons: tuple[AnyComparison, ...] = ()
    traces: bool = False
    answers: AnswersWanted | None = None
    crossings: CrossingsWanted | None = None
    left_out: frozenset[str] = frozenset()

    def size(self, name: str) -> Size:
        """Return a size by name. Raises LabError naming the nearest one."""
        if name not in self.sizes:
            raise unknown("size", name, self.sizes)
        return self.sizes[name]
