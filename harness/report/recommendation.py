"""The recommendation of a race, as one screen and as data: recommendation.json in the folder of its run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from harness.model import Fate, LabError, Operation, Status
from harness.report import answers, markdown
from harness.report.answers import NO_DIFFERENCE, Dot, Lane
from harness.report.figures import (
    TITLES,
    legend,
    listed,
    marked,
    megabytes,
    numbered,
    route,
    short_name,
    significant,
    span,
    spelled,
)
from harness.report.intervals import leaves_out_one
from harness.report.summary import EXACT
from harness.report.table import Table
from harness.results.environment import server_in_words
from harness.results.folder import Facts

FILE = "recommendation.json"
FASTEST, PYPI, LEAST_CODE = "fastest", "from PyPI", "least code"
BUILT_IN, DEFAULT, BOUND = "built in", "default", "server alone"
SHORT_WITHIN = 2.0  # the transport with the least code may take this many times as long as the fastest
_HEAD = ("choice", "call", "median s", "range", "peak MB", "lines", "install")
_MOST_NAMES = 3  # of transports or columns in a sentence or a cell; all are in recommendation.json
# The kinds of values that the screen names if the data have them.
_KINDS = {
    "nulls": "nulls",
    "empty_text": "empty strings",
    "backslash_n": r"\N",
    "null_words": "words like NULL",
    "quotes": "quotes",
    "comma": "commas",
    "tab": "tabs",
    "newline": "newlines",
    "backslash": "backslashes",
    "unicode": "4-byte UTF-8",
    "nan": "NaN",
    "infinity": "infinity",
    "decimals": "decimals",
    "timestamps_tz": "time zones",
    "arrays": "arrays",
}


@dataclass(frozen=True)
class Figure:
    """The seconds of one transport for a number of rows, in a number of runs.

    `seconds` is the median and `range` goes from the shortest to the longest. `factor` is the ratio of this median to
    that of the fastest at the same rows. `factor_interval` is its interval, by which the race decides (95 %, moderated
    t). `how` describes the transport in a sentence. `installs` are the packages of PyPI that it needs besides the
    library of the frame. `beyond` are its needs that PyPI does not have. `lines` counts the lines of its code. `lossy`
    are its declared losses. `values` is `exact`, or `converted` with the columns whose types changed.
    """

    transport: str
    how: str
    rows: int
    runs: int
    seconds: float
    range: tuple[float, float]
    rows_per_s: float
    peak_rss_bytes: int | None
    factor: float
    factor_interval: tuple[float, float] | None
    installs: tuple[str, ...]
    beyond: tuple[str, ...]
    lines: int
    lossy: dict[str, str]
    values: str = EXACT

    @property
    def differs(self) -> bool:
        """Whether the interval of the factor leaves out 1."""
        return leaves_out_one(self.factor_interval)

    @property
    def name(self) -> str:
        """Its client and its call: its direction is known."""
        return short_name(self.transport, self.how)


@dataclass(frozen=True)
class RuledOut:
    """A transport that cannot be recommended, and why; `kind` is the kind of values that rules it out, if one does.

    `is_default` marks the default transports.
    """

    transport: str
    reason: str
    kind: str = ""
    is_default: bool = False


@dataclass(frozen=True)
class Recommendation:
    """The answer of a race: the exact transport with the smallest median for a frame, and the alternatives.

    `from_pypi` is the fastest of those that need only packages of PyPI. `built_in` is the fastest call of the frame's
    own library. Both are None if no such transport is exact. `least_code` has the fewest lines of those that take at
    most SHORT_WITHIN times as long as the fastest. If one of these is from PyPI, only those from PyPI count.

    `default` is the transport that most code uses. `defaults` are the figures of it and of other common transports.
    `taken_there` is the figure of the recommended transport at the rows of the default, if those are others. `columns`
    maps the columns of the data to their logical types, `values` maps the kinds of values in them to the columns.
    `ties` are transports that are not shown to be slower than the fastest. `left_behind` are those that the budget left
    behind, so that nothing is shown of them. `ended` says why the race ended before its finalists had their passes, and
    is empty if it did not. `seconds` is the time of the whole race, of `budget`. `compared` says how much of the data
    was compared before the race, and how; empty for a polars frame, which is its own source. `source` is the name of
    its file, if it has one, and `server` is the version of the database. `rows_of_data` are more than `rows` if the
    race ended before it came to all of them. `summaries` are those of the default and of the ties. If the race ended
    early, `so_far` are the figures of all transports that ran, each at its most rows, also of those that converted
    values. If the budget was too short, `enough` are the seconds of one that probably suffices.
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
    from_pypi: Figure | None
    least_code: Figure
    built_in: Figure | None
    ties: tuple[str, ...]
    default: str
    defaults: tuple[Figure, ...]
    bound: Figure | None
    ruled_out: tuple[RuledOut, ...]
    ended: str
    seconds: float
    budget: float
    taken_there: Figure | None = None
    left_behind: tuple[str, ...] = ()
    compared: str = ""
    source: str = ""
    server: str = ""
    rows_of_data: int = 0
    enough: int = 0
    so_far: tuple[Figure, ...] = ()
    summaries: Mapping[str, str] = field(default_factory=dict)

    @property
    def taken(self) -> Figure:
        """The transport to use: the fastest that pip can install, or else the fastest."""
        return self.from_pypi or self.fastest

    def name(self, transport: str) -> str:
        """Return the client and the call of the default or of a tie."""
        return short_name(transport, self.summaries.get(transport, ""))

    @property
    def baseline(self) -> Figure | None:
        """The baseline of the recommended transport: the default, else the built-in one, else None."""
        others = (one for one in (self.of_default, self.built_in) if one and one.transport != self.taken.transport)
        return next(others, None)

    @property
    def of_default(self) -> Figure | None:
        """The figure of the default; None without one."""
        return next((one for one in self.defaults if one.transport == self.default), None)

    def _repr_html_(self) -> str:
        """Return the screen as a table, which is how a notebook shows it."""
        from markupsafe import escape

        shown = table(self)
        head = "".join(f"<th>{escape(name)}</th>" for name in shown.head)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in shown.rows)
        said = "".join(f"<p>{escape(line)}</p>" for line in opening(self))
        out = (f"{many} ruled out: {why}" for one in excluded(self) for why, many, _ in one.rows)
        notes = "".join(f"<li>{escape(line)}</li>" for line in (*sentences(self), *details(self), *out))
        body = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table><ul>{notes}</ul>"
        return f"<p>{escape(title(self))}</p>{said}{body}"


_ADAPTER = TypeAdapter(Recommendation)


def write(folder: Path, found: Recommendation) -> None:
    """Write recommendation.json into the folder of a run. Raises LabError."""
    try:
        (folder / FILE).write_bytes(_ADAPTER.dump_json(found, indent=1) + b"\n")
    except OSError as error:
        raise LabError(f"cannot write {folder / FILE}: {error.strerror}; make room") from None


def read(folder: Path) -> Recommendation | None:
    """Return the recommendation of a run; None if it was no race. Raises LabError for an invalid file."""
    try:
        return _ADAPTER.validate_json((folder / FILE).read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise LabError(f"{folder / FILE}: {place}: {first['msg']}; another version of the lab made it") from None


def kept(folder: Path) -> tuple[Recommendation | None, str]:
    """Return the recommendation of a run, if it has one, and the reason if the file cannot be read.

    The rows of such a race are as those of any run.
    """
    try:
        return read(folder), ""
    except (LabError, OSError) as error:
        return None, f"{error}; this report is made of the rows of the race alone"


def title(found: Recommendation) -> str:
    """Describe the request: its direction with the server, the file, and its size."""
    system = TITLES[found.system]
    ends = route(found).replace(system, f"{' '.join(filter(None, (system, found.server)))} ({found.lab})")
    whole = f" of {found.rows_of_data:,}" if found.rows_of_data > found.rows else ""
    size = f"{found.rows:,}{whole} rows × {len(found.columns)} columns"
    return f"{ends}: {', '.join(filter(None, (found.source, size)))}"


def screen(found: Recommendation) -> Table:
    """Return the screen as one table, with the remaining notes below it."""
    notes = (*opening(found), *sentences(found, elsewhere=""), *details(found))
    return replace(table(found), title="What to take", notes=notes)


def picture(found: Recommendation) -> Lane:
    """Return the directions that a report draws: the default, the fastest from PyPI, the fastest, the server alone."""

    def dot(role: str, one: Figure | None) -> Dot | None:
        if one is None or one.rows != found.rows:
            return None
        says = f"{role}: {one.transport}\nmedian {significant(one.seconds)} s, n = {one.runs}\n{one.values}"
        return Dot(role, one.seconds, says, one.values != EXACT)

    roles = zip((answers.DEFAULT, PYPI, FASTEST), (found.of_default, found.from_pypi, found.fastest), strict=True)
    default, from_pypi, fastest = (dot(role, one) for role, one in roles)
    return answers.lane(route(found), default, from_pypi, fastest, found.bound.seconds if found.bound else None)


def opening(found: Recommendation) -> list[str]:
    """Return the answer: the call, its speed, its baseline, the installation, and the alternatives."""
    one = found.taken
    where = "from PyPI" if not one.beyond else f"with {' and '.join(one.beyond)}"
    lines = [f"Take {one.name}{_yet(found)}: {significant(one.seconds)} s, {where}{_against(found)}.", pip(one)]
    fastest = found.fastest
    if fastest.transport != one.transport:
        with_ = f", with {' and '.join(fastest.beyond)}" if fastest.beyond else ""
        share = 1 - fastest.seconds / one.seconds
        alike = one.transport in found.ties or not one.differs or share < 0.005
        more = "Not shown to be faster: " if alike else f"Need the last {share:.0%}? "
        lines.append(f"{more}{fastest.name}: {significant(fastest.seconds)} s{with_}.")
    return lines


def _yet(found: Recommendation) -> str:
    return " so far" if found.ended else ""


def _against(found: Recommendation) -> str:
    """Compare the recommended transport with its baseline, at the rows that both have; empty without such rows."""
    other = found.baseline
    one = next((one for one in (found.taken, found.taken_there) if one and other and one.rows == other.rows), None)
    if one is None or other is None:
        return ""
    ratio, call = other.seconds / one.seconds, spelled(other.transport, other.how)
    how = f"{significant(ratio, 2)} times faster than" if ratio > 1 else "no faster than"
    name = other.name if call == spelled(one.transport, one.how) else call
    whose = f"{name} (the default)" if other.transport == found.default else other.name
    return f", {how} {whose}" + ("" if one is found.taken else f" at {one.rows:,} rows")


def pip(figure: Figure) -> str:
    """Return the command that installs the packages of a transport."""
    quoted = (f'"{package}"' if "[" in package else package for package in figure.installs)
    return f"pip install {' '.join(quoted)}" if figure.installs else "Nothing to install."


def choices(found: Recommendation) -> list[tuple[Figure, str]]:
    """Return the transports of the screen's table with their choices; one transport may have several."""
    played = [(FASTEST, found.fastest), (PYPI, found.from_pypi), (LEAST_CODE, found.least_code)]
    played += [(BUILT_IN, found.built_in), (DEFAULT, found.of_default)]
    chosen: dict[tuple[str, int], tuple[Figure, list[str]]] = {}
    for choice, figure in played:
        if figure:
            chosen.setdefault((figure.transport, figure.rows), (figure, []))[1].append(choice)
    return [(figure, ", ".join(names)) for figure, names in chosen.values()]


def installs(found: Recommendation) -> Iterator[str]:
    """Yield what each transport but the recommended one needs, for a terminal too narrow for that column."""
    for figure, names in choices(found):
        if figure.transport != found.taken.transport:
            commands = [pip(figure)] if figure.installs or not figure.beyond else []
            yield f"{names}: {', and '.join((*commands, *_beyond(figure)))}"


def _beyond(figure: Figure) -> Iterator[str]:
    """Yield the needs of a transport that PyPI does not have; the sentence above the table says how to make them."""
    return (re.sub(r"\(not on PyPI: .*\)", "(not on PyPI)", one) for one in figure.beyond)


def table(found: Recommendation) -> Table:
    """Return the screen's table: a row for each choice; one transport may have several roles."""
    rows = [_row(found, figure, names) for figure, names in choices(found)]
    if found.default and not found.of_default:
        rows.append((DEFAULT, found.name(found.default), without_time(found), *[""] * (len(_HEAD) - 3)))
    if found.bound:
        rows.append(_row(found, found.bound, BOUND))
    return Table(
        title="",
        head=_HEAD,
        rows=tuple(rows),
        wide=frozenset({0, 1, 6}),
        names=frozenset({1}),
        droppable=((6,), (3,), (4,)),  # without the column of packages, each transport has a line of them: `installs`
    )


def _row(found: Recommendation, figure: Figure, choice: str) -> tuple[str, ...]:
    of_rows = "" if figure.rows == found.rows else f", {figure.rows:,} rows"
    bound = choice == BOUND
    return (
        choice + of_rows,
        "" if bound else marked(figure.name, figure.lossy),
        significant(figure.seconds),
        span(figure.range) if figure.runs > 1 else "",
        megabytes(figure.peak_rss_bytes),
        str(figure.lines) if figure.lines else "",
        "" if bound else needs(figure),
    )


def without_time(found: Recommendation) -> str:
    """Say why the default has no time: it `cannot` move these data, was `left out` by request, or is `not timed`."""
    out = next((one.reason for one in found.ruled_out if one.transport == found.default), None)
    if out is None:
        return "not timed"
    return "cannot" if out.partition(":")[0] in {*Status, *Fate} else "left out"


def needs(figure: Figure, versions: Mapping[str, str] | None = None) -> str:
    """Return the needs of a transport: packages of PyPI, with known versions, and those that PyPI does not have."""
    versions = versions or {}
    pinned = (
        f"{one}=={versions[name]}" if (name := one.partition("[")[0]) in versions else one for one in figure.installs
    )
    return ", ".join((*pinned, *_beyond(figure))) or "nothing else"


def sentences(found: Recommendation, elsewhere: str = ": see the report") -> Iterator[str]:
    """Yield the remaining notes for one screen; `elsewhere` says where all of `details` are."""
    if found.ended:
        runs = numbered(found.fastest.runs, "run")
        more = f" --budget {found.enough} is probably enough." if found.enough else ""
        yield f"Not final: {found.ended}; figures are of {runs}.{more}"
    for one in [one for one in found.ruled_out if one.transport == found.default]:
        why = without_time(found).replace("left", "is left")
        yield f"{found.name(one.transport)}, the default, {why}: {one.reason}"
    if found.bound and found.bound.seconds > found.fastest.seconds:
        takes = "taking in" if found.operation == Operation.WRITE else "sending"
        yield f"The server alone is slower: its own statement costs more than {takes} these rows."
    if found.fastest.values != EXACT:
        values = found.fastest.values
        yield f"No transport{_yet(found)} gives the canonical types. Here {values}: converting them is not timed."
    else:
        lost = len({one.transport for one in found.ruled_out if one.kind})
        would = f" {numbered(lost, 'transport')} would change or refuse something{elsewhere}." if lost else ""
        yield f"Checked: all {found.rows:,} rows arrived identical in every run{_kinds(found)}.{would}"
    shown = (found.fastest, found.from_pypi, found.least_code, found.built_in, found.of_default)
    if said := legend(one.lossy for one in shown if one):
        yield f"{said}: your data have none."
    if ties := [name for name in found.ties if name != found.taken.transport]:
        names = listed(list(map(found.name, ties)), _MOST_NAMES)
        yield f"{NO_DIFFERENCE.capitalize()} between {found.fastest.name} and {names}."
    if many := len(found.left_behind):
        rerun = "" if found.enough else f"; rerun with --budget {2 * found.budget:.0f}"
        used = f"the race used {found.seconds:.0f} of {found.budget:.0f} s{rerun}"
        yield f"Not fully timed: {numbered(many, 'transport')}, maybe as fast ({used})."


def _kinds(found: Recommendation) -> str:
    named = [said for kind, said in _KINDS.items() if kind in found.values]
    return f" ({', '.join(named)} found in your data)" if named else ""


def details(found: Recommendation) -> Iterator[str]:
    """Yield the notes below the report's table: how the transports to take work, and which were not timed."""
    yield f"{found.fastest.transport}: {found.fastest.how}"
    if found.taken.transport != found.fastest.transport:
        yield f"{found.taken.transport}: {found.taken.how}"
    if found.left_behind:
        yield f"not timed on all rows: {listed(found.left_behind, _MOST_NAMES)}"


def so_far(found: Recommendation) -> list[Table]:
    """Return a table of what is known from a race that ended early; none of a race that did not."""
    head = ("call", "rows", "median s", "runs", "values")
    rows = tuple(
        (one.name, f"{one.rows:,}", significant(one.seconds), str(one.runs), one.values.partition(":")[0])
        for one in found.so_far
    )
    return [Table("Known so far, not final", head, rows, wide=frozenset({0, 4}), names=frozenset({0}))] if rows else []


def excluded(found: Recommendation) -> list[Table]:
    """Return a table of the reasons that rule transports out, the most common one first; none if nothing does."""
    reasons: dict[str, list[str]] = {}
    for one in found.ruled_out:
        columns = ", ".join(found.values.get(one.kind, ())[:_MOST_NAMES])
        about = f"{one.kind}{f' ({columns})' if columns else ''}: " if one.kind else ""
        name = f"{one.transport} (a default)" if one.is_default else one.transport
        reasons.setdefault(about + one.reason.partition(" (column")[0], []).append(name)
    most_first = sorted(reasons.items(), key=lambda pair: -len(pair[1]))
    rows = tuple((why, str(len(names)), listed(names, _MOST_NAMES)) for why, names in most_first)
    head, note = ("why", "transports", "such as"), f"all are in {FILE}"
    return [Table("What is ruled out", head, rows, (note,), frozenset({0, 2}), names=frozenset({2}))] if rows else []


def share_lines(found: Recommendation, environment: Facts) -> list[str]:
    """Return a table of the recommended transport and its baselines; below it machine, versions and command."""
    one, other = found.taken, found.baseline
    versions = environment.get("packages", {})
    rows = [_share_row(found, one, versions)]
    if other:
        rows.append(_share_row(found, other, versions))
    elif one.transport != found.fastest.transport:
        rows.append(_share_row(found, found.fastest, versions))
    elif found.default and found.default != one.transport:
        rows.append((found.name(found.default), without_time(found), "", ""))
    head = (f"{route(found)}, {found.rows:,} rows × {len(found.columns)} columns", "median", "peak", "pip install")
    command = f"lab recommend --data FILE --{'to' if found.operation == Operation.WRITE else 'from'} {found.system}"
    machine, server = environment["machine"], environment.get("servers", {}).get(found.system)
    said = [f"{machine['cores']} cores of {machine['cpu'] or machine['architecture']}"]
    said += [f"{found.system} {server_in_words(server)} ({found.lab})"] if server else []
    said += [f"{found.frame} {versions[found.frame]}"] if found.frame in versions else []
    table = markdown.table(head, rows, right=(1, 2)).splitlines()
    compared = "Not final, every value compared" if found.ended else "Every value compared"
    return [
        *table,
        f"> {compared}; {', '.join(said)}: `{command}{'' if found.frame == 'polars' else ' --frame pandas'}`",
    ]


def _share_row(found: Recommendation, figure: Figure, versions: Mapping[str, str]) -> tuple[str, ...]:
    peak, of_rows = megabytes(figure.peak_rss_bytes), f" ({figure.rows:,} rows)" if figure.rows != found.rows else ""
    seconds, installs = f"{significant(figure.seconds)} s{of_rows}", needs(figure, versions)
    return figure.name, seconds, f"{peak} MB" if peak else "", installs
