"""What a race recommends, as data and as one screen: recommendation.json in the folder of its run, read from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from harness.model import LabError
from harness.report.answer_tables import NO_DIFFERENCE, ratio, route
from harness.report.answers import EXACT
from harness.report.cells import megabytes, significant
from harness.report.intervals import leaves_out_one
from harness.report.table import Table

FILE = "recommendation.json"
FASTEST, CONVERTED, SIMPLEST = "fastest exact", "fastest, converted", "simplest"
LEANEST, USUAL, BOUND = "leanest", "usual", "the server alone"
SIMPLE_WITHIN = 1.3  # times as long as the fastest
_HEAD = ("which", "transport", "seconds", "interval", "times as long", "interval of that", "peak MB", "needs", "lines")
_MOST_VALUES, _MOST_TIES, _MOST_OTHERS = 8, 5, 3  # that are told on the screen; all stand in recommendation.json
_MOST_NAMES = 3  # of transports that were left behind; all stand in recommendation.json


@dataclass(frozen=True)
class Figure:
    """What one transport took for so many rows, in so many runs.

    `seconds` is the geometric mean, `factor` how many times as long as the fastest at the same rows takes; their
    intervals are those of the race (95 %, moderated t). `how` says in a sentence what it does. `packages` are what it
    needs beside the library of the frame, `lines` the lines of its code, `connections` whether it opens several.
    `values` says how they came back: `exact`, or `converted` with the columns that were of other types.
    """

    transport: str
    how: str
    rows: int
    runs: int
    seconds: float
    interval: tuple[float, float]
    rows_per_s: float
    peak_rss_bytes: int | None
    factor: float
    factor_interval: tuple[float, float] | None
    packages: tuple[str, ...]
    lines: int
    connections: bool
    values: str = EXACT

    @property
    def differs(self) -> bool:
        """Whether the interval of the factor leaves out 1."""
        return leaves_out_one(self.factor_interval)


@dataclass(frozen=True)
class RuledOut:
    """A transport that cannot be recommended, and why; `kind` is the kind of values that it is about, if it is one.

    `usual` are those that people usually take.
    """

    transport: str
    reason: str
    kind: str = ""
    usual: bool = False


@dataclass(frozen=True)
class Recommendation:
    """The answer of a race: who is the fastest exact transport for a frame, and what stands beside it.

    `columns` maps the columns of the data to their logical types, `values` the kinds of values that were found in them
    to the columns. `ties` are transports that are not shown to be slower than the fastest, `left_behind` those of which
    nothing is shown because the budget left them behind. `ended` says why the race ended before its finalists had their
    passes; empty where it did not. `seconds` is what all of it took. `compared` says how much of the data was compared
    before the race, and with what; empty for a frame of polars, which is its own source.
    """

    system: str
    operation: Literal["write", "read"]
    frame: str
    lab: str
    run_id: str
    rows: int
    columns: dict[str, str]
    values: dict[str, tuple[str, ...]]
    fastest: Figure
    ties: tuple[str, ...]
    simplest: Figure
    leanest: Figure
    usual: tuple[Figure, ...]
    bound: Figure | None
    ruled_out: tuple[RuledOut, ...]
    ended: str
    seconds: float
    left_behind: tuple[str, ...] = ()
    compared: str = ""

    def _repr_html_(self) -> str:
        """Return the screen as a table, which is how a notebook shows it."""
        from markupsafe import escape

        shown = table(self)
        head = "".join(f"<th>{escape(name)}</th>" for name in shown.head)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in shown.rows)
        notes = "".join(f"<li>{escape(line)}</li>" for line in sentences(self))
        return f"<p>{escape(shown.title)}</p><table><thead>{head}</thead><tbody>{rows}</tbody></table><ul>{notes}</ul>"


_ADAPTER = TypeAdapter(Recommendation)


def write(folder: Path, found: Recommendation) -> None:
    """Write recommendation.json into the folder of a run. Raises LabError."""
    try:
        (folder / FILE).write_bytes(_ADAPTER.dump_json(found, indent=1) + b"\n")
    except OSError as error:
        raise LabError(f"cannot write {folder / FILE}: {error.strerror}; make room") from None


def read(folder: Path) -> Recommendation | None:
    """Return the recommendation of a run; None where it was no race. Raises LabError for a file that is none."""
    try:
        return _ADAPTER.validate_json((folder / FILE).read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first: Any = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise LabError(f"{folder / FILE}: {place}: {first['msg']}; made by another version of the lab?") from None


def kept(folder: Path) -> tuple[Recommendation | None, str]:
    """Return the recommendation of a run, if there is one, and why it cannot be read where it cannot.

    The rows of such a race are as those of any run.
    """
    try:
        return read(folder), ""
    except (LabError, OSError) as error:
        return None, f"{error}; this report is made of the rows of the race alone"


def screen(found: Recommendation) -> Table:
    """Return the whole screen as one table, with what else there is to say below it."""
    return replace(table(found), notes=tuple(sentences(found)))


def table(found: Recommendation) -> Table:
    """Return the screen's table: a row for each transport, with all that it is."""
    first = FASTEST if found.fastest.values == EXACT else CONVERTED
    played = [(first, found.fastest), (f"{SIMPLEST} within {SIMPLE_WITHIN:g} x", found.simplest)]
    played += [(LEANEST, found.leanest), *((USUAL, one) for one in found.usual)]
    played += [(BOUND, found.bound)] if found.bound else []
    roles: dict[tuple[str, int], tuple[Figure, list[str]]] = {}
    for role, figure in played:
        roles.setdefault((figure.transport, figure.rows), (figure, []))[1].append(role)
    rows = tuple(_row(found, figure, names) for figure, names in roles.values())
    return Table(
        title=f"{route(found)}: {found.rows:,} rows of {len(found.columns)} columns, lab {found.lab}",
        head=_HEAD,
        rows=rows,
        notes=(),
        wide=frozenset({0, 1, 5, 7}),
        names=frozenset({1}),
        droppable=((8,), (7,), (3,), (5,)),
    )


def sentences(found: Recommendation) -> list[str]:
    """Return what the table does not say: what the fastest does, who may be as fast, what rules transports out."""
    return list(_sentences(found))


def _sentences(found: Recommendation) -> Iterator[str]:
    yield f"{found.fastest.transport}: {found.fastest.how}"
    if found.fastest.values != EXACT:
        yield f"no transport gives the canonical types; here {found.fastest.values}: what is left to do is not timed"
    if found.ties:
        more = f" and {len(found.ties) - _MOST_TIES} more: see {FILE}" if len(found.ties) > _MOST_TIES else ""
        yield f"{NO_DIFFERENCE} between it and {', '.join(found.ties[:_MOST_TIES])}{more}"
    if found.left_behind:
        several = len(found.left_behind) > 1
        yield (
            f"{len(found.left_behind)} transport{'s were' if several else ' was'} left behind by the budget, not shown "
            f"to be slower: {_first(found.left_behind)}; a larger --budget lets {'them' if several else 'it'} go on"
        )
    if found.ended:
        yield f"{found.ended} before all finalists had their runs: figures are of {found.fastest.runs}"
    kinds: dict[str, list[RuledOut]] = {}
    for one in found.ruled_out:
        if one.usual:
            by = f" by {one.kind}" if one.kind else ""
            yield f"{one.transport}, which is {USUAL}, is ruled out{by}: {one.reason}"
        else:
            kinds.setdefault(one.kind, []).append(one)
    by_values = sorted(((kind, out) for kind, out in kinds.items() if kind), key=lambda pair: -len(pair[1]))
    for kind, out in by_values[:_MOST_VALUES]:
        where = ", ".join(found.values.get(kind, ())[:3])
        reason = out[0].reason.partition(" (column")[0]
        yield f"{_count(len(out))} ruled out by {kind}{f' ({where})' if where else ''}: {reason}"
    if len(by_values) > _MOST_VALUES:
        rest, others = sum(len(out) for _, out in by_values[_MOST_VALUES:]), len(by_values) - _MOST_VALUES
        yield f"{_count(rest)} ruled out by {others} other kind{'s' if others > 1 else ''} of values: see {FILE}"
    yield from _others(kinds.get("", []))


def _others(out: Sequence[RuledOut]) -> Iterator[str]:
    """Yield what rules transports out beside values: the reasons of most of them."""
    reasons: dict[str, list[RuledOut]] = {}
    for one in out:
        reasons.setdefault(one.reason, []).append(one)
    of_most = sorted(reasons.items(), key=lambda pair: -len(pair[1]))
    for reason, those in of_most[:_MOST_OTHERS]:
        yield f"{_count(len(those))} out, such as {those[0].transport}: {reason}"
    if rest := sum(len(those) for _, those in of_most[_MOST_OTHERS:]):
        others = len(of_most) - _MOST_OTHERS
        yield f"{_count(rest)} out for {others} other reason{'s' if others > 1 else ''}: see {FILE}"


def _first(names: Sequence[str]) -> str:
    told, rest = names[:_MOST_NAMES], len(names) - _MOST_NAMES
    return ", ".join(told) + (f" and {rest} more (see {FILE})" if rest > 0 else "")


def _count(number: int) -> str:
    return "1 transport is" if number == 1 else f"{number} transports are"


def _row(found: Recommendation, figure: Figure, roles: list[str]) -> tuple[str, ...]:
    of_rows = "" if figure.rows == found.rows else f" of {figure.rows:,} rows"
    best = figure.transport == found.fastest.transport
    return (
        ", ".join(roles) + of_rows,
        figure.transport,
        significant(figure.seconds),
        "-".join(significant(end) for end in figure.interval),
        *(("", "") if best else ratio(figure.factor, figure.factor_interval)),
        megabytes(figure.peak_rss_bytes),
        ", ".join(figure.packages) or "nothing else",
        str(figure.lines) if figure.lines else "",
    )
