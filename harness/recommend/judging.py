"""A race from the user's request to the recommendation and its files, and its rows as a recommendation."""

from __future__ import annotations

import ast
import csv
import inspect
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

from harness import registry, show
from harness.lab.packages import beyond_pypi, installed
from harness.model import LabError, Origin, Transport
from harness.recommend import racing
from harness.recommend.budget import require_possible
from harness.recommend.eligible import Asked
from harness.recommend.none_left import by_declaration, by_failure, shared, why_none
from harness.recommend.race import Race
from harness.recommend.racing import Racing
from harness.report.intervals import Interval, RunSpread, around, estimate, ratio
from harness.report.recommendation import SHORT_WITHIN, Figure, Recommendation, RuledOut
from harness.report.recommendation import write as write_recommendation
from harness.report.sections import write
from harness.report.summary import EXACT
from harness.results import folder as folders
from harness.results.row import Row
from harness.run.redaction import of_server
from harness.settings import Settings
from harness.suites import suite_files
from harness.suites.suite import Suite

# A call of pandas or of polars itself that takes a connection.
_BUILT_IN = re.compile(r"\b(?:frame|pandas|polars|pd|pl)\.(?:(?:to|read)_sql|(?:write|read)_database)\w*\(")


@dataclass(frozen=True)
class _Times:
    """The ok runs of one transport at one number of rows."""

    transport: str
    rows: int
    seconds: list[float]
    peak: int | None
    values: str


def recommendation(racing: Racing, seconds: float) -> Recommendation:
    """Return the recommendation of a race. Raises LabError if no transport returned all values, or none in time."""
    race, asked = racing.race, racing.asked
    found = _times(racing.rows.values())
    largest = _largest(race)
    best = race.fastest(largest)
    if best is None:
        raise LabError(_none_kept(racing))
    of_largest = {name: times for (name, rows), times in found.items() if rows == largest}
    fastest = _figure(of_largest[best], of_largest[best], race.spread)
    every = [
        _figure(times, of_largest[best], race.spread, max(len(race.told[largest]) - 1, 1))
        for name, times in of_largest.items()
        if name in race.told[largest]
    ]
    exact = [one for one in every if one.factor >= 1]  # a faster one was left behind with few runs: `left_behind`
    near = [one for one in exact if one.factor <= SHORT_WITHIN]
    others = [one for one in exact if one.transport in race.contenders and one.transport != best]
    ties = [one.transport for one in others if one.runs > 1 and not one.differs]

    def first(among: Iterable[Figure]) -> Figure | None:
        return min(among, key=lambda one: one.seconds, default=None)

    from_pypi = first(one for one in exact if not one.beyond)
    known = {*racing.entries, *(one.transport.id for one in racing.left_out)}
    told = {name for times in race.told.values() for name in times} & race.kept
    defaults = tuple(_of_default(name, found, race) for name in asked.defaults if name in told)
    default = next((name for name in asked.defaults if name in known), "")
    data = asked.data
    return Recommendation(
        system=asked.system,
        operation=asked.operation.value,  # type: ignore[arg-type]
        frame=asked.frame,
        lab=racing.track.lab,
        run_id=racing.track.run_id,
        rows=largest,
        columns=data.logical_types,
        values=data.found,
        fastest=fastest,
        ties=tuple(ties),
        from_pypi=from_pypi,
        least_code=min([fastest, *near], key=_effort),
        built_in=first(one for one in exact if built_in(registry.one(one.transport))),
        default=default,
        defaults=defaults,
        taken_there=_taken_there(from_pypi or fastest, default, defaults, found, race),
        bound=_bound(racing, found, largest),
        ruled_out=_ruled_out(racing),
        ended=_ended(racing, largest),
        enough=racing.enough,
        so_far=_so_far(racing, found),
        seconds=round(seconds, 1),
        budget=asked.budget,
        left_behind=_left_behind(race, every),
        compared=data.compared,
        source=asked.source,
        server=racing.track.server,
        rows_of_data=race.rows,
        summaries={name: registry.one(name).summary for name in (default, *ties) if name},
    )


def _largest(race: Race) -> int:
    """Return the most rows that all remaining transports have run, else that most have run; 0 before any run.

    In an unfinished pass, the transport that ran first would be the fastest.
    """
    sizes = [rows for rows in race.told if race.leader(rows)]
    whole = [rows for rows in sizes if race.told[rows].keys() >= set(race.contenders)]
    return max(whole) if whole else max(sizes, key=lambda rows: (len(race.told[rows]), rows), default=0)


def _so_far(racing: Racing, found: dict[tuple[str, int], _Times]) -> tuple[Figure, ...]:
    """Return the figure of each transport that ran, at its most rows, if the race ended early: most rows first."""
    race = racing.race
    most = {name: rows for name, rows in sorted(found) if name in race.transports and racing.ended}
    ran = (_figure(found[one], found[race.fastest(one[1]) or one[0], one[1]], race.spread) for one in most.items())
    return tuple(sorted(ran, key=lambda one: (-one.rows, one.seconds)))


def _ended(racing: Racing, largest: int) -> str:
    """Say why a race ended before its finalists had their passes, and how far it got."""
    if racing.begun and racing.ended and largest < racing.race.rows:
        return f"{racing.ended} before all had run on all {racing.race.rows:,} rows"
    return racing.ended + ("" if racing.begun else f" after {_ran(racing)} of {len(racing.race.transports)} transports")


def _left_behind(race: Race, of_largest: Sequence[Figure]) -> tuple[str, ...]:
    """Return the transports that the budget left behind, in the order of their times, unless shown to be slower."""
    known = {figure.transport: figure for figure in of_largest}
    slower = {name for name, figure in known.items() if figure.differs and figure.factor > 1}
    open_still = [name for name in race.transports if name in race.behind and name not in slower]
    return tuple(sorted(open_still, key=lambda name: known[name].factor if name in known else math.inf))


def _ran(racing: Racing) -> int:
    return len({row.transport for row in racing.rows.values()})


def _none_kept(racing: Racing) -> str:
    types, id_ = racing.asked.data.logical_types, racing.track.run_id
    reasons = {name: reason for name, reason in racing.race.out.items() if " times as slow" not in reason}
    if not racing.begun:
        ran = _ran(racing)
        cause, count = shared(reasons.values(), types)
        if count == ran and of_server(cause):
            kept = f"none of the {ran} transports that ran keeps every value of these data"
            return f"{kept}: {cause}; more time does not help"
        first = next((f"; {ran} failed, such as {name}: {reason}" for name, reason in reasons.items()), "")
        more = f" {racing.enough}" if racing.enough else ""
        return (
            f"{_ended(racing, 0)}; give it more (--budget{more}), leave some out (--without, --style), or continue "
            f"with --resume {id_}{first}"
        )
    # A client's message may name a column by chance.
    failed = {name: racing.blamed.get(name) or by_failure(reason, types) for name, reason in reasons.items()}
    declared = {
        one.transport.id: by_declaration(one.transport, racing.asked.data) for one in racing.left_out if one.kind
    }
    return why_none(declared | failed, types, list(reasons.values()), "; give it more (--budget)")


def _times(rows: Iterable[Row]) -> dict[tuple[str, int], _Times]:
    runs: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if row.ok:
            runs.setdefault((row.transport, int(row.parameters["rows"])), []).append(row)
    return {
        (name, size): _Times(
            name,
            size,
            [row.took for row in ok],
            max((row.peak_rss_bytes for row in ok if row.peak_rss_bytes is not None), default=None),
            ok[0].fidelity,
        )
        for (name, size), ok in runs.items()
    }


def _figure(times: _Times, best: _Times, spread: RunSpread, among: int = 1) -> Figure:
    """Return the figure of a transport; `best` are the times of the fastest at the same rows, one of `among` + 1."""
    entry = registry.one(times.transport)
    seconds = median(times.seconds)
    return Figure(
        transport=times.transport,
        how=entry.summary,
        rows=times.rows,
        runs=len(times.seconds),
        seconds=seconds,
        range=(min(times.seconds), max(times.seconds)),
        rows_per_s=times.rows / seconds,
        peak_rss_bytes=times.peak,
        factor=seconds / median(best.seconds),
        factor_interval=None if times is best else _interval(times, best, spread, among),
        installs=installed(entry),
        beyond=beyond_pypi(entry),
        lines=lines(entry.id) if entry.origin != Origin.LIMIT else 0,
        lossy=entry.lossy,
        values=times.values or EXACT,
    )


def _interval(times: _Times, best: _Times, spread: RunSpread, among: int) -> Interval | None:
    """Return the interval of a transport's factor over the fastest."""
    of, to = estimate(times.seconds, spread), estimate(best.seconds, spread)
    return around(median(times.seconds) / median(best.seconds), ratio(of, to, among)) if of and to else None


def _of_default(name: str, found: dict[tuple[str, int], _Times], race: Race) -> Figure:
    """Return the figure of a default transport at its largest number of rows, next to the fastest there."""
    rows = max(size for of, size in found if of == name)
    return _figure(found[name, rows], found[race.fastest(rows) or name, rows], race.spread)


def _taken_there(
    taken: Figure, default: str, defaults: Sequence[Figure], found: dict[tuple[str, int], _Times], race: Race
) -> Figure | None:
    """Return the figure of the recommended transport at the rows of the default, if those are others."""
    rows = next((one.rows for one in defaults if one.transport == default), taken.rows)
    there = found.get((taken.transport, rows))
    if rows == taken.rows or there is None:
        return None
    return _figure(there, found[race.fastest(rows) or taken.transport, rows], race.spread)


def _bound(racing: Racing, found: dict[tuple[str, int], _Times], rows: int) -> Figure | None:
    of_bounds = [found[entry.id, rows] for entry in racing.bounds if (entry.id, rows) in found]
    fastest = min(of_bounds, key=lambda times: median(times.seconds), default=None)
    best = racing.race.fastest(rows)
    return _figure(fastest, found[best, rows], racing.race.spread) if fastest and best else None


def _ruled_out(racing: Racing) -> tuple[RuledOut, ...]:
    defaults = racing.asked.defaults
    before = [RuledOut(one.transport.id, one.reason, one.kind, one.transport.id in defaults) for one in racing.left_out]
    told = {name for times in racing.race.told.values() for name in times}
    out = racing.race.out.items()
    during = [RuledOut(name, reason, is_default=name in defaults) for name, reason in out if name not in told]
    return (*before, *during)


def built_in(entry: Transport) -> bool:
    """Say whether a transport is a call of the frame's own library."""
    return _BUILT_IN.search(inspect.getsource(entry.function)) is not None


@cache
def lines(transport: str) -> int:
    """Return the lines of code of a transport's script, without comments, docstrings and empty lines."""
    tree = ast.parse(show.script(registry.one(transport)))
    docstrings = {
        node.body[0].lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and ast.get_docstring(node)
    }
    return len(
        {
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.stmt | ast.expr) and not (isinstance(node, ast.Expr) and node.lineno in docstrings)
        }
        - docstrings
    )


# The race from start to end: from the user's request to the recommendation and its files.

Shown = Callable[[Racing], AbstractContextManager[Callable[[Row], None]]]


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a race that has an answer: the answer so far, written like that of an ended race."""

    def __init__(self, found: Recommendation, folder: Path) -> None:
        self.found, self.folder = found, folder


def defaults(settings: Settings) -> tuple[str, ...]:
    """Return the transports that are timed in any case, the default of a direction first."""
    wanted = suite_files.load(settings.suites_dir, racing.SUITE).answers
    return tuple(wanted.defaults) if wanted else ()


def by_reference(results: Path, suite: Suite) -> tuple[str, ...]:
    """Return the transports by their medians in the reference run; none without one."""
    path = folders.reference(results, suite.name) / folders.SUMMARY
    if suite.answers is None or not path.is_file():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        asked = [row for row in csv.DictReader(file) if row["experiment"] == suite.answers.experiment]
    medians = {row["transport"]: float(row["median_seconds"]) for row in asked if row["median_seconds"]}
    return tuple(sorted(medians, key=medians.__getitem__))


def answered(chosen: Settings, one: Asked, say: Callable[[str], None], shown: Shown) -> tuple[Recommendation, Path]:
    """Perform the race and write its files; return the recommendation and its folder. See `racing.opened`.

    Raises LabError for an impossible budget, and Stopped if the user stops it after a transport returned every value.
    """
    require_possible(one.budget)
    suite, stopped = suite_files.load(chosen.suites_dir, racing.SUITE), False
    one = replace(one, defaults=defaults(chosen), ranked=by_reference(chosen.results_dir, suite))
    with racing.opened(chosen, one, say) as under_way:
        try:
            with shown(under_way) as on_row:
                under_way.perform(on_row)
        except KeyboardInterrupt:
            under_way.end_early("you stopped the race")
            if not any(map(under_way.race.fastest, under_way.race.told)):
                say(f"stopped before a transport returned every value; go on with --resume {under_way.track.run_id}")
                raise
            stopped = True
        folder = under_way.track.folder
    found = recommendation(under_way, time.monotonic() - one.started)
    write_recommendation(folder, found)
    write(folder, suite)
    if stopped:
        raise Stopped(found, folder)
    return found, folder


@contextmanager
def silent(under_way: Racing) -> Iterator[Callable[[Row], None]]:
    """Show no progress."""
    yield lambda row: None


def _effort(figure: Figure) -> tuple[bool, int, int, float]:
    """Order by effort for the user: packages that pip cannot install, lines of code, packages."""
    return bool(figure.beyond), figure.lines, len(figure.installs), figure.seconds
