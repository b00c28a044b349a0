"""Suites are data: what stands in them, and the plan of a size of one. `suite_files` reads them."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from harness.model import Experiment, unknown
from harness.suites.comparisons import AnyComparison

Rig = Literal["databases", "cluster", "parquet", "stores", "elt", "tuning"]  # the modules of run/rigs that open one
SizeName = Literal["smoke", "default", "laptop", "full"]
SIZES: tuple[str, ...] = get_args(SizeName)
Statistic = Literal["median and range", "mean and deviation"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)


@dataclass(frozen=True)
class PublishedFigure:
    """One figure of a published benchmark, as its author printed it; None where the author does not say.

    `description` is the author's name of the transport; `experiment`, `rows`, `bytes` and `parameters` (some of a
    case's) say under which conditions.
    Times are means in seconds, rates in rows/s, memory the mean peak resident memory above the start in bytes. `detail`
    names a further figure as transports call it in the column `details`, and `detail_value` is that.
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


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Picture:
    """One picture of a suite's report, made from the rows of runs.csv that `where` keeps (column -> its values).

    `bars`: one bar a transport, as long as the median of `y`, coloured by the column `colour`.
    `lines`: `y` over `x`, one line for each value of `colour` and (drawn otherwise) of `dash`.
    `scatter`: one mark a transport at the medians of `x` and `y`.
    `grid`: one line a transport, one column a value of `x` (in the order of `where`, if that has it): how many rows
    were found of those expected where the column `details` says so, else how runs ended, with `y` of those that are ok.
    `traces`: cores in use over time, one line for each run of the last pass (of suites that ask for traces).
    `costs`: one mark a transport at its fixed cost of a call and its marginal cost of a row (see `report.costs`).
    `winners`: a map of who is fastest: one line a value of `y`, one column a value of `x`, each a column, a parameter,
    several of them joined by ` + `, or `direction` (database, operation and frame); see `report.pictures.winners`.
    `inset` adds the same lines on logarithmic axes; `log` makes the axes themselves logarithmic. `published` sets the
    author's figures beside ours. `limit` adds to lines the fastest bound of what they are about, at as many rows.
    `crossings` adds to lines of rates over rows where the fastest transport changes (see `report.crossings`).
    Figures are columns, `detail:<name>`, or sums of both: `peak_rss_bytes + detail:workers_peak_rss_bytes`.
    """

    name: str
    title: str
    form: Literal["bars", "lines", "scatter", "grid", "traces", "costs", "winners"]
    y: str = ""
    x: str = ""
    colour: str = "transport"
    dash: str = ""
    where: dict[str, list[str]] | None = None
    statistic: Statistic = "median and range"
    inset: bool = False
    log: bool = False
    published: bool = False
    limit: bool = False
    crossings: bool = False

    def __post_init__(self) -> None:
        if not self.y and self.form != "costs":
            raise ValueError(f'picture {self.name}: expected y, found none; only the form "costs" has its own')


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class AnswersWanted:
    """What the reports of a suite open with: the fastest transport for each frame, beside the usual one.

    `experiment` is the one whose cases answer. `usual` are the ids, or globs over ids, of what people usually take: the
    first that a run has for a system, operation and frame is the usual one there, others are told beside it.
    """

    experiment: str
    usual: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class CrossingsWanted:
    """Of which experiments the report says where the fastest transport changes with the rows, and what rows cost.

    The cases of a transport in all of them make one curve, so that a size may have fewer transports than another.
    """

    experiments: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    networks: list[Annotated[str, Field(min_length=1)]] = field(default_factory=list)


Unasked = Literal["everything", "contenders", "nothing"]


@dataclass(frozen=True)
class Size:
    """One size of a suite: its experiments, passes, and how long a worker may live in seconds.

    `unasked` says by the name of an experiment what of it is run where a person asks for no transports, origins or
    experiments by name.
    """

    passes: int
    time_limit: float
    experiments: tuple[Experiment, ...]
    unasked: dict[str, Unasked] = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    """A suite: what its transports work on (`rig`), its sizes, pictures, and the published benchmark it reproduces.

    `citation` and `conditions` are empty where it reproduces none. `traces` asks for the CPU time of every run over
    time. `answers` is None where its question is another one than which transport to take for a frame, `crossings`
    where it does not set curves over rows against each other. `left_out` are the transports that its reference run
    shows to be no contenders (`harness.report.contenders`).
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
