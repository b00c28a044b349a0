"""The summary of the runs of one case: its figures and its rank; one line of summary.csv.

The rank of a case is 1 plus the number of other cases of its table that are shown to be faster. The ratio of such a
case to it has an interval below 1, corrected for the number of cases (see `intervals`). A rank never rests on a chain
of neighbours that tie one by one. A case that scatters widely may share the rank of one with a smaller median. A case
with a median alone has a place in plain order, with a mark. Bounds and A/A controls have no rank, and do not count in
the ranks of other cases.

Calls of one run of the lab share its hours. So of runs kept together, each counts once in an estimate (`observations`).
"""

from __future__ import annotations

import csv
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from harness.model import CONTROL, Operation, Origin, Status, label
from harness.report.figures import described, in_order, marked, significant, span, varying, volume
from harness.report.intervals import Estimate, Interval, RunSpread, around, estimate, interval, slower, spread_of
from harness.results.row import Row, by_case
from harness.results.runs_csv import as_cell
from harness.suites.suite import PublishedFigure
from harness.systems import SYSTEMS

_SECONDS = ("seconds", "connect_seconds", "cpu_seconds", "rows_per_s")
_PEAKS = ("peak_rss_bytes", "peak_anon_bytes", "peak_file_bytes")


def results_frame(rows: Sequence[Row]) -> pl.DataFrame:
    """Return the results frame: a line for each run, with its figures and the place of its case among all."""
    cases: dict[tuple[str, ...], int] = {}
    schema = {"case": pl.Int64, "ok": pl.Boolean} | dict.fromkeys(_SECONDS, pl.Float64)
    schema |= dict.fromkeys(_PEAKS, pl.Int64)
    measured = ("ok", *_SECONDS, *_PEAKS)
    lines = ((cases.setdefault(row.case, len(cases)), *(getattr(row, name) for name in measured)) for row in rows)
    return pl.DataFrame(list(lines), schema=schema, orient="row")


def observations(rows: Iterable[Row], of: Callable[[Row], float | None]) -> list[tuple[Row, float]]:
    """Return the figures that estimates come from, with their rows: that of each call which has one.

    Of several runs of the lab it is the geometric mean of a case's calls in each run, without the factor by which that
    run took longer in all cases: blocks of an experiment (R. A. Fisher, The Design of Experiments, 1935).
    """
    known = [(row, value) for row in rows if (value := of(row))]
    if len(runs := dict.fromkeys(row.run_id for row, _ in known)) < 2:
        return known
    logs: dict[tuple[str, str, str], dict[str, list[tuple[Row, float]]]] = defaultdict(lambda: defaultdict(list))
    for row, value in known:
        logs[row.case][row.run_id].append((row, math.log(value)))
    means = {
        case: {run: statistics.fmean(log for _, log in of_run) for run, of_run in of_case.items()}
        for case, of_case in logs.items()
    }
    pace = dict.fromkeys(runs, 0.0)
    if whole := [of_case for of_case in means.values() if len(of_case) == len(runs)]:
        middles = [statistics.fmean(of_case.values()) for of_case in whole]
        pace = {
            run: statistics.fmean(of_case[run] - middle for of_case, middle in zip(whole, middles, strict=True))
            for run in runs
        }
    return [
        (of_run[0][0], math.exp(means[case][run] - pace[run]))
        for case, of_case in logs.items()
        for run, of_run in of_case.items()
    ]


def of_cases(observed: Iterable[tuple[Row, float]]) -> dict[tuple[str, str, str], list[float]]:
    """Return the observations of each case, see `observations`."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row, value in observed:
        found[row.case].append(value)
    return found


def _figures(frame: pl.DataFrame, seconds: Sequence[Sequence[float]]) -> dict[int, dict[str, Any]]:
    """Return the figures of each case that has ok runs, with the estimate from its `observations`."""
    both = pl.col("seconds", "rows_per_s")
    found = (
        frame.filter(pl.col("ok"))
        .group_by("case", maintain_order=True)
        .agg(
            both.mean().name.prefix("mean_"),
            pl.col("seconds", "rows_per_s", "connect_seconds", "cpu_seconds").median().name.prefix("median_"),
            both.min().name.prefix("min_"),
            both.max().name.prefix("max_"),
            pl.col("seconds").std(ddof=0).alias("std_seconds"),
            pl.col(*_PEAKS).max(),
        )
    )
    figures, spread = {}, spread_of(seconds)
    for line in found.iter_rows(named=True):
        place = line.pop("case")
        figures[place] = line | _certainty(seconds[place], line["median_seconds"], spread)
    return figures


def _certainty(seconds: Sequence[float], median: float, spread: RunSpread) -> dict[str, float]:
    """Return the estimate of a case's time from its runs; nothing if their scatter is unknown."""
    if (of := estimate(seconds, spread)) is None:
        return {}
    low, high = around(median, interval(of))
    ends = {"median_low_seconds": low, "median_high_seconds": high}
    return ends | {"log_mean": of.mean, "log_error": of.error, "log_freedom": of.freedom}


def case_name(summary: Summary) -> str:
    """Return the name of a transport in tables: its name in the published benchmark, else its id.

    The name of a control says so in every table, because it is no separate transport. Marks at the end of a name are
    its declared losses; see `marks`.
    """
    if summary.origin == Origin.CONTROL:
        return f"A/A control of {summary.transport.removesuffix(CONTROL)}"
    return marked(summary.published_row or summary.transport, summary.lossy)


def with_interval(summary: Summary) -> str:
    """Return the median seconds with their interval: `0.48 (0.46-0.60)`."""
    return significant(summary.median_seconds) + (f" ({span(summary.interval)})" if summary.interval else "")


@dataclass(frozen=True)
class Point:
    """One combination of parameters, its name, and its extent (None where not known)."""

    parameters: Mapping[str, str]
    name: str
    rows: int | None
    bytes: int | None

    @property
    def label(self) -> str:
        """The parameters as one string, in the form of a case."""
        return label(self.parameters)


def points(summaries: Iterable[Summary]) -> list[Point]:
    """Return the points among the summaries, smallest first: by rows, then by parameters.

    A name has the parameters that differ among the points and, where it differs too, the volume of the data:
    `8 files, 1.68 GB`. The only point of a group has an empty name.
    """
    cases: dict[str, list[Summary]] = {}
    for summary in summaries:
        cases.setdefault(summary.label, []).append(summary)
    where = [group[0].parameters for group in cases.values()]
    extents = [(_agreed(group, "rows"), _agreed(group, "bytes")) for group in cases.values()]
    apart = varying(where)
    volumes_differ = len({size for _, size in extents}) > 1
    found = []
    for parameters, (rows, size) in zip(where, extents, strict=True):
        said = [described(name, value) for name, value in parameters.items() if name in apart]
        said += [volume(size)] if volumes_differ and size is not None else []
        found.append(Point(parameters, ", ".join(said), rows, size))
    return sorted(found, key=lambda point: (point.rows or 0, in_order(point.parameters)))


def _agreed(group: list[Summary], column: str) -> int | None:
    """Return the value that all cases of a point with one have; None if they differ, as sizes of stores do."""
    values = {getattr(summary, column) for summary in group} - {None}
    return values.pop() if len(values) == 1 else None


def _column(empty: Any, meaning: str) -> Any:
    more = {"default_factory": dict} if empty is dict else {"default": empty}
    return field(metadata={"meaning": meaning}, **more)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The summary of the runs of one case; figures are None without an ok run."""

    experiment: str = _column("", "experiment of the suite")
    parameters: dict[str, str] = _column(dict, "parameters of the case: name=value; name=value")
    transport: str = _column("", "id of the transport")
    system: str = _column("", "database, format of files, or protocol of the stores")
    operation: str = _column("", "write, read, scan, create, query, load, unload, transform or job")
    client: str = _column("", "client library, engine or store")
    path: str = _column("", "transport path")
    payload: str = _column("", "format of the data on the wire")
    frame: str = _column("", "form of the data in memory")
    style: str = _column("", "sync or async client")
    engine: str = _column("", "engine whose workers do the work; empty if one process does it alone")
    origin: str = _column("", "published, beyond, limit or control")
    published_row: str = _column("", "description of the published row")
    rows: int | None = _column(None, "rows of the data")
    bytes: int | None = _column(None, "bytes of the data on disk, empty where they are not in files of the lab")
    status: str = _column("", "ok when every run is; otherwise each status with its count")
    error: str = _column("", "reason of the runs that are not ok; different ones are joined by |")
    fidelity: str = _column("", "how values came back; where runs differ all are given, joined by |")
    lossy: dict[str, str] = _column(
        dict,
        "kinds of values the transport is declared to lose: kind=fate; kind=fate",
    )
    n: int = _column(0, "number of ok runs: the sample size of all figures here")
    rank: int | None = _column(
        None,
        "1 + the number of transports of the same experiment, parameters, system and operation that are shown to be "
        "faster, corrected for how many these are; bounds of writes and reads and controls have none",
    )
    tie: str = _column(
        "",
        "= others have the same rank; ? a place by the median alone, where the run says nothing of its scatter; "
        "empty: no other has its rank",
    )
    share_of_limit: float | None = _column(
        None,
        "median_seconds of the fastest bound (origin limit) of the same experiment, parameters, system and "
        "operation / median_seconds: 1 is as fast as that bound; of a load the bounds of writes of the same "
        "experiment, system and rows, of an unload those of reads; empty where no bound was run",
    )
    mean_seconds: float | None = _column(None, "arithmetic mean of seconds")
    std_seconds: float | None = _column(
        None,
        "population standard deviation of seconds, as the published stores benchmark computes it",
    )
    median_seconds: float | None = _column(None, "median of seconds")
    median_low_seconds: float | None = _column(
        None,
        "lower end of its 95 % interval (moderated t on the logarithms of seconds, widened to hold the median); empty "
        "where the run says nothing of its scatter",
    )
    median_high_seconds: float | None = _column(None, "upper end")
    log_mean: float | None = _column(None, "mean of the natural logarithms of seconds")
    log_error: float | None = _column(None, "standard error of log_mean, moderated by the other cases of the run")
    log_freedom: float | None = _column(None, "degrees of freedom of log_error")
    min_seconds: float | None = _column(None, "smallest")
    max_seconds: float | None = _column(None, "largest")
    mean_rows_per_s: float | None = _column(
        None,
        "arithmetic mean of the rates of the runs, as the published matrix benchmark computes it",
    )
    median_rows_per_s: float | None = _column(None, "median of the rates")
    min_rows_per_s: float | None = _column(None, "smallest")
    max_rows_per_s: float | None = _column(None, "largest")
    median_connect_seconds: float | None = _column(None, "median of connect_seconds")
    median_cpu_seconds: float | None = _column(None, "median of cpu_seconds")
    peak_rss_bytes: int | None = _column(None, "largest peak_rss_bytes of all runs")
    peak_anon_bytes: int | None = _column(None, "largest peak_anon_bytes of all runs")
    peak_file_bytes: int | None = _column(None, "largest peak_file_bytes of all runs")
    mb_per_s: float | None = _column(
        None,
        "bytes / 1e6 / median_seconds: from the data on disk to the end of the call, whatever is done in it",
    )
    details: dict[str, float] = _column(
        dict,
        "medians of the further facts of a run of its suite: name=value; name=value",
    )
    published_mean_seconds: float | None = _column(None, "the author's figure")
    published_mean_rows_per_s: float | None = _column(None, "the author's figure")
    ratio_to_published: float | None = _column(
        None,
        "mean_rows_per_s / published_mean_rows_per_s, where the author gives no rate published_mean_seconds / "
        "mean_seconds: above 1 is faster than the author's machine",
    )

    dataset: str = ""
    medians: Mapping[str, float] = field(default_factory=dict)  # of each run of the lab, by its id

    @cached_property
    def label(self) -> str:
        """The parameters as one string."""
        return label(self.parameters)

    @property
    def table(self) -> tuple[str, str, str]:
        """The key of its table: experiment, system and operation."""
        return self.experiment, self.system, self.operation

    @property
    def workers(self) -> str:
        """The number of workers of an engine that did the work, as a string; empty if one process did it alone."""
        return self.parameters.get("workers", "") if self.engine else ""

    @property
    def workers_peak_rss_bytes(self) -> float | None:
        """The peak of the processes that an engine started; None without such processes, or if it is unknown."""
        return self.details.get("workers_peak_rss_bytes")

    @property
    def peak_of_all_bytes(self) -> float | None:
        """The peak of the process that was measured, with that of the processes an engine started for it."""
        return None if self.peak_rss_bytes is None else self.peak_rss_bytes + (self.workers_peak_rss_bytes or 0)

    @property
    def interval(self) -> Interval | None:
        """The interval of the median; None with too few runs."""
        if self.median_low_seconds is None or self.median_high_seconds is None:
            return None
        return self.median_low_seconds, self.median_high_seconds

    @property
    def estimate(self) -> Estimate | None:
        """The estimate of its time from its runs; None if their scatter is unknown."""
        if self.log_mean is None or self.log_error is None or self.log_freedom is None:
            return None
        return Estimate(self.log_mean, self.log_error, self.log_freedom)

    @property
    def values(self) -> str:
        """The fate of the values in one word, or the end of the runs."""
        return self.fidelity.partition(":")[0] if self.status == Status.OK else self.status

    @property
    def took(self) -> float:
        """Median seconds of a case with ok runs."""
        assert self.median_seconds is not None
        return self.median_seconds


def factors(case: Summary, to: Summary) -> list[float]:
    """Return how many times as long as another case one takes, smallest first: of each run of the lab that has both."""
    found = sorted(case.medians[run] / to.medians[run] for run in case.medians.keys() & to.medians.keys())
    return found or [case.took / to.took]


COLUMNS = {one.name: str(one.metadata["meaning"]) for one in fields(Summary) if one.metadata}
SHARED, UNSURE = "=", "?"
NOTES = {
    SHARED: "= shares its rank: as many others are shown to be faster, corrected for the size of the table",
    UNSURE: "? a place by the median alone: so few runs show no difference",
}
# Operation -> the operation of its bounds.
BOUNDED_BY: dict[str, Operation] = {
    Operation.WRITE: Operation.WRITE,
    Operation.READ: Operation.READ,
    Operation.LOAD: Operation.WRITE,
    Operation.UNLOAD: Operation.READ,
}
BoundPlace = tuple[str, str, str, str | int | None]


def is_bound(case: Summary) -> bool:
    """Say whether a case bounds the transports of its table; empty calls and copies are separate tables."""
    return case.origin == Origin.LIMIT and case.operation in (Operation.WRITE, Operation.READ)


def bounded_at(case: Summary) -> BoundPlace:
    """Return the place of a case's bounds: its parameters, but only its rows for a load or an unload."""
    operation = BOUNDED_BY.get(case.operation, "")
    return case.experiment, case.system, operation, case.label if operation == case.operation else case.rows


def limits(cases: Iterable[Summary]) -> dict[BoundPlace, Summary]:
    """Return the fastest bound at every place that has one."""
    found: dict[BoundPlace, Summary] = {}
    for case in cases:
        if case.n and is_bound(case):
            for where in (case.label, case.rows):
                place = (case.experiment, case.system, case.operation, where)
                found[place] = min(case, found.get(place, case), key=lambda bound: bound.took)
    return found


def places(cases: Sequence[Summary]) -> list[tuple[int | None, str]]:
    """Return the rank and the mark (SHARED, UNSURE or none) of each summary of one table, in their order."""
    competing = [case for case in cases if case.n and case.origin != Origin.CONTROL and not is_bound(case)]
    among = max(len(competing) - 1, 1)
    ranks = {
        id(case): 1 + sum(other is not case and is_slower(case, other, among) for other in competing)
        for case in competing
    }
    shared = Counter(ranks.values())
    found: list[tuple[int | None, str]] = []
    for case in cases:
        rank = ranks.get(id(case))
        unsure = UNSURE if case.estimate is None else ""
        found.append((rank, "" if rank is None else unsure or (SHARED if shared[rank] > 1 else "")))
    return found


def is_slower(case: Summary, other: Summary, among: int = 1) -> bool:
    """Say whether a case is shown to take longer than another one; by the medians if one has no estimate."""
    if case.estimate is None or other.estimate is None:
        return other.took < case.took
    return slower(case.estimate, other.estimate, among)


def rank_shown(case: Summary) -> str:
    """Return a rank with its mark as text: `1`, `2=`, `3?`; `A/A` for a control, empty without an ok run."""
    if case.n and case.origin == Origin.CONTROL:
        return "A/A"
    return f"{case.rank}{case.tie or ''}" if case.rank else ""


def rank_notes(cases: Sequence[Summary]) -> tuple[str, ...]:
    """Return a line for each mark that is among the ranks of these cases."""
    marks = {case.tie for case in cases}
    return tuple(note for mark, note in NOTES.items() if mark in marks)


PLACES = {name: system.place for name, system in SYSTEMS.items()}
# The same in all rows of a case.
_OF_CASE = ("experiment", "parameters", "transport", *tuple(COLUMNS)[3:13], "lossy", "dataset")
_OPERATIONS = ("load", "unload", "write", "create", "read", "scan", "query", "transform", "call", "copy")


def summarise(
    rows: Iterable[Row], published: Sequence[PublishedFigure], experiments: Sequence[str] = ()
) -> list[Summary]:
    """Return one summary a case, smallest median first within experiment, system, operation and parameters.

    `experiments` gives the order of experiments; those not in it follow by name. Figures are None without ok runs.
    """
    every = list(rows)
    cases = by_case(every)
    counted = of_cases(observations(every, lambda row: row.seconds if row.ok else None))
    figures = _figures(results_frame(every), [counted[case] for case in cases])
    summaries = [_summary(runs, figures.get(place, {}), published) for place, runs in enumerate(cases.values())]
    order = {name: place for place, name in enumerate(experiments)}
    summaries.sort(key=lambda summary: (order.get(summary.experiment, len(order)), *_in_tables(summary)))
    bounds, ranked = limits(summaries), []
    for _, table in groupby(summaries, key=lambda one: (*one.table, one.label)):
        of_table = list(table)
        for case, (rank, tie) in zip(of_table, places(of_table), strict=True):
            bound = bounds.get(bounded_at(case))
            share = bound.took / case.took if bound and case.n else None
            ranked.append(replace(case, rank=rank, tie=tie, share_of_limit=share))
    return ranked


def write_summaries(path: Path, summaries: Sequence[Summary]) -> None:
    """Write summary.csv; missing figures are empty, and all have nine digits, also within mappings."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for one in summaries:
            line: dict[str, Any] = {name: getattr(one, name) for name in COLUMNS}
            line["details"] = {of: f"{to:.9g}" if isinstance(to, float) else to for of, to in one.details.items()}
            writer.writerow({name: as_cell(value) for name, value in line.items()})


def _in_tables(summary: Summary) -> tuple[Any, ...]:
    """Order as the published benchmarks list their tables: by system, writes first; cases without figures last.

    At one point, transports of one process come before those for which an engine starts workers.
    """
    median, system, operation = summary.median_seconds, summary.system, summary.operation
    known = _OPERATIONS.index(operation) if operation in _OPERATIONS else len(_OPERATIONS)
    place = PLACES.get(system, len(PLACES) + 1)
    table = (summary.experiment, place, system, known, operation, in_order(summary.parameters))
    return *table, bool(summary.engine), median is None, median or 0.0, summary.transport


def _summary(group: list[Row], figures: dict[str, Any], published: Sequence[PublishedFigure]) -> Summary:
    good, first = [row for row in group if row.ok], group[0]
    counts = Counter(row.status for row in group)
    several = ", ".join(f"{status} {counts[status]}" for status in Status if status in counts)
    # A case that could not run does not always know the size of its data.
    rows, size = (next((known for row in group if (known := getattr(row, of)) is not None), None) for of in _EXTENT)
    every = [row.details for row in good]
    details = {one: statistics.median(of[one] for of in every if one in of) for of in every for one in of}
    rate = size / 1e6 / figures["median_seconds"] if size and good else None
    summary = Summary(
        **{name: getattr(first, name) for name in _OF_CASE},
        rows=rows,
        bytes=size,
        status=several if len(counts) > 1 else str(*counts),
        error=" | ".join(dict.fromkeys(row.error for row in group if not row.ok and row.error)),
        n=len(good),
        fidelity=" | ".join(sorted({row.fidelity for row in good})),
        mb_per_s=rate,
        details=details,
        medians={
            run: statistics.median(row.took for row in good if row.run_id == run)
            for run in {row.run_id: None for row in good}
        },
        **figures,
    )
    return replace(summary, **_of_the_author(summary, published))


_EXTENT = ("rows", "bytes")


def is_about(one: PublishedFigure, case: Summary | Row) -> bool:
    """Say whether an author's figure is for the transport of a case, in its experiment and its parameters."""
    there = one.experiment in (None, case.experiment) and one.parameters.items() <= case.parameters.items()
    return there and one.description == case.published_row


def _of_the_author(case: Summary, published: Sequence[PublishedFigure]) -> dict[str, Any]:
    """Return the author's figures of a case and the factor by which ours is faster; nothing if the author has none."""
    sized = (one for one in published if one.bytes is None and one.detail is None and one.rows in (None, case.rows))
    if (one := next((one for one in sized if is_about(one, case)), None)) is None:
        return {}
    rate, seconds, ratio = one.mean_rows_per_s, one.mean_seconds, None
    if case.mean_rows_per_s is not None and rate is not None:
        ratio = case.mean_rows_per_s / rate
    elif case.mean_seconds is not None and seconds is not None:
        ratio = seconds / case.mean_seconds
    return {"published_mean_seconds": seconds, "published_mean_rows_per_s": rate, "ratio_to_published": ratio}


FRAMES = ("pandas", "polars")
EXACT = "exact"
COMPETING = (Origin.PUBLISHED, Origin.BEYOND)


def is_exact(case: Summary) -> bool:
    """Say whether every run of a case was ok and every value came back exact."""
    return case.status == Status.OK and case.fidelity == EXACT


def competes(case: Summary) -> bool:
    """Say whether a case is one of a transport that moves a frame, and has figures: no bound, no control."""
    return bool(case.rows and case.n and case.frame in FRAMES and case.origin in COMPETING)


def direction_order(system: str, operation: str, frame: str) -> tuple[int, int, bool, str]:
    """Return a key that sorts directions: pandas first, databases in their order, writes first."""
    return FRAMES.index(frame), PLACES.get(system, len(PLACES)), operation != Operation.WRITE, operation
