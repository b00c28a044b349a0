"""The answers of a run: for each system, operation and frame the fastest transport, and the cost of the default.

The fastest is the one with the smallest median of those whose values came back exact; bounds and A/A controls are no
transports. A factor is the ratio of another transport's median to that of the fastest, with its interval (see
`intervals`). An interval that contains 1 shows no difference. The fastest is chosen from the same runs, so intervals
are corrected for the number of candidates. `ties` counts the transports that are not shown to be slower.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby
from operator import attrgetter

from harness.model import NOT_HERE, Origin, Status
from harness.report.figures import legend, marked, megabytes, ranged, route, short_name, significant, span, titled
from harness.report.intervals import Interval, around, factor_interval, leaves_out_one, ratio
from harness.report.summary import (
    COMPETING,
    EXACT,
    FRAMES,
    Summary,
    case_name,
    factors,
    is_bound,
    is_exact,
    is_slower,
    points,
)
from harness.report.table import Table, ever_smaller
from harness.suites.suite import AnswersWanted, Suite


@dataclass(frozen=True)
class Rival:
    """A transport next to the fastest: the factor by which it is slower, and the interval of this factor.

    Both are None if one of the two has no figures. The interval is also None if the scatter is unknown, and for the
    fastest itself. `factors` are those of each run of the lab, smallest first.
    """

    case: Summary
    factor: float | None
    interval: Interval | None
    factors: Sequence[float] = ()

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return leaves_out_one(self.interval)


@dataclass(frozen=True)
class Leaders:
    """The answer of a run for one system, operation and frame.

    `fastest` is None if no transport is exact. `ties` counts the other exact transports that are not shown to be
    slower. `whole` is the fastest transport that declares no loss, if it is a different one. `from_pypi` is the fastest
    that pip installs, an exact one if possible. `converted` is the fastest of those from PyPI that returned every
    value, but some in another dtype. `defaults` are the default transports; the first is the baseline of the fastest.
    `lowest_memory` is the exact transport with the lowest peak memory. `share_of_limit` compares the fastest with
    the fastest bound. `rivals` is the number for which intervals are corrected. `existing` says that the table had rows
    before.
    """

    system: str
    operation: str
    frame: str
    rows: int | None
    fastest: Summary | None
    ties: int
    whole: Rival | None
    from_pypi: Rival | None
    converted: Rival | None
    defaults: tuple[Rival, ...]
    lowest_memory: Rival | None
    rivals: int
    existing: bool

    @property
    def name(self) -> str:
        """The two ends of the data, and the rows that the table already has."""
        return f"{route(self)}, table with rows" if self.existing else route(self)

    @property
    def shown(self) -> tuple[Summary | None, Summary | None, Summary | None]:
        """The default transport, the fastest from PyPI and the fastest of all."""
        default = self.defaults[0].case if self.defaults else None
        return default, self.from_pypi.case if self.from_pypi else None, self.fastest


def answers(wanted: AnswersWanted, summaries: Sequence[Summary]) -> list[Leaders]:
    """Return an answer for every frame, system and operation that a transport of the experiment can run for, in order.

    Of an experiment with several amounts of data the largest counts. Writes into tables that have rows come last.
    """
    cells = competing(wanted, summaries).values()
    first = [_answer(cases, wanted) for cases in cells if any(case.status not in NOT_HERE for case in cases)]
    if not wanted.existing:
        return first
    there = answers(replace(wanted, experiment=wanted.existing, existing=""), summaries)
    return [*first, *(replace(one, existing=True) for one in there)]


def competing(wanted: AnswersWanted, summaries: Sequence[Summary]) -> dict[tuple[str, str, str], list[Summary]]:
    """Return the transports that compete in each cell: frame by frame, by its frame, system and operation."""
    cells: dict[tuple[str, str, str], list[Summary]] = {}
    for frame in FRAMES:
        for case in summaries:
            if case.experiment == wanted.experiment and case.frame == frame and case.origin in COMPETING:
                cells.setdefault((frame, case.system, case.operation), []).append(case)
    return {key: [case for case in cases if case.label == points(cases)[-1].label] for key, cases in cells.items()}


def _answer(cases: Sequence[Summary], wanted: AnswersWanted) -> Leaders:
    exact = sorted(filter(is_exact, cases), key=attrgetter("took"))
    fastest = exact[0] if exact else None
    whole = next((case for case in exact if not case.lossy), None)
    measured = [case for case in exact if case.peak_rss_bytes is not None]
    lean = min(measured, key=lambda case: case.peak_rss_bytes or 0, default=None)
    ran = [case for case in cases if case.status == Status.OK and case.fidelity]
    beyond = wanted.beyond_pypi
    pip = [case for case in ran if beyond and _is_from_pypi(case, beyond)]
    from_pypi = min(pip, key=lambda case: (not is_exact(case), case.took), default=None)
    converted = min((case for case in pip or ran if not is_exact(case)), key=attrgetter("took"), default=None)
    among = max(len(exact) - 1, 1)
    return Leaders(
        *(cases[0].system, cases[0].operation, cases[0].frame),
        next((case.rows for case in cases if case.rows is not None), None),
        fastest,
        sum(not is_slower(case, fastest, among) for case in exact[1:]) if fastest else 0,
        _rival(whole, fastest, among) if whole and whole is not fastest else None,
        _rival(from_pypi, fastest, among) if from_pypi else None,
        _rival(converted, fastest, among) if converted else None,
        tuple(_rival(case, fastest, among) for case in defaults_among(cases, wanted.defaults)),
        _rival(lean, fastest, among) if lean else None,
        rivals=among,
        existing=False,
    )


def defaults_among(cases: Sequence[Summary], defaults: Sequence[str]) -> list[Summary]:
    """Return the cases of default transports, in the order of the ids and globs that name these, each once."""
    named = {case.transport: case for pattern in defaults for case in cases if fnmatchcase(case.transport, pattern)}
    return list(named.values())


def _is_from_pypi(case: Summary, beyond: Sequence[str]) -> bool:
    return not any(fnmatchcase(case.transport, name) for name in beyond)


def _rival(case: Summary, fastest: Summary | None, among: int) -> Rival:
    if not case.n or fastest is None:
        return Rival(case, None, None)
    factor = case.took / fastest.took
    of = None if case is fastest else case.estimate
    of_runs = factors(case, fastest)
    interval = factor_interval(factor, of, fastest.estimate, among)
    for printed in of_runs:
        interval = interval and around(printed, interval)
    return Rival(case, factor, interval, of_runs)


FASTEST, WHOLE, PYPI, CONVERTED, DEFAULT = "fastest", "loses none", "from PyPI", "converted", "default"
ALSO, LOWEST_MEMORY = "also default", "lowest memory"
ROLES = (FASTEST, WHOLE, PYPI, CONVERTED, DEFAULT, ALSO, LOWEST_MEMORY)
NO_DIFFERENCE = "no difference shown"
_TITLE = "fastest exact transport, and the default"
_HEAD = (
    "direction",
    "choice",
    "transport",
    "median s",
    "95 %",
    "slower",
    "interval",
    "peak MB",
    "of limit",
    "values",
)
_WIDE = frozenset({0, 1, 2, 6, 9})
_DROPPABLE = tuple((_HEAD.index(name),) for name in ("values", "of limit", "interval", "95 %", "peak MB"))
_EXPLAINED = "slower: the median divided by that of the fastest{}, with its 95 % interval for so many rivals"
_OF_RUNS = ", from the least to the most of the runs of the lab"
_LIMIT = "; of limit: how near to the fastest bound, what the server does alone"
_MARKED = "{}: these data have none of them"
_NONE_LOST = f"; {WHOLE}: the fastest exact one that is not known to lose any"
_CONVERTED = "{}: values came back in other dtypes, which is work left to you"


_FEW_ROLES = (FASTEST, PYPI, DEFAULT)


def shapes(suite: Suite, summaries: Sequence[Summary], named: Callable[[str], str] = short_name) -> list[Table]:
    """Return the answers in ever smaller shapes, for one screen: fewer columns first, then fewer roles and directions.

    `named` names a transport where its id does not fit. The smallest shape has three roles in writes to empty tables
    and in reads.
    """
    found = answers(suite.answers, summaries) if suite.answers else []
    if not found:
        return []
    empty = [one for one in found if not one.existing] or found
    sizes = ((found, ROLES), (found, _FEW_ROLES), (empty, _FEW_ROLES))
    tables = [in_one(those, roles, of) for those, roles in sizes for of in (str, named)]
    return [one for table in (*tables, _stacked(found, named), _stacked(empty, named)) for one in ever_smaller(table)]


def _stacked(found: Sequence[Leaders], named: Callable[[str], str]) -> Table:
    """Return a narrow table with three lines a direction: the default, the fastest from PyPI and the fastest of all.

    It has a mark next to its word and `1.5-1.8×` for `1.5× to 1.8×`: so a line of 80 columns holds the longest names.
    """
    rows: list[tuple[str, ...]] = []
    for one in found:
        lines = sorted(_answer_rows(one, _FEW_ROLES, named), key=lambda line: DEFAULT not in line[1])
        if DEFAULT not in lines[0][1]:
            rows.append((one.name, "default not run", "", ""))
        for _, choice, transport, seconds, _, slower, *_, values in lines:
            first = one.name if DEFAULT in choice else f"  {choice}"
            transport = transport.replace(" †", "†").replace(" ‡", "‡")
            rows.append((first, transport, seconds + "*" * (values == CONVERTED), slower.replace("× to ", "-")))
    shown = [rival.case for one in found for rival, _ in _in_roles(one, _FEW_ROLES).values()]
    return Table(
        title=_sized(f"The {_TITLE}", found),
        head=("direction", "transport", "seconds", "slower"),
        rows=tuple(rows),
        notes=("the first line of a direction is its default; seconds are medians", *_answer_notes(shown, (), "*")),
        wide=frozenset({0, 1}),
    )


def opening(suite: Suite, summaries: Sequence[Summary]) -> list[Table]:
    """Return the tables that open a report, frame by frame; a suite without answers opens with its leaders."""
    if suite.answers:
        return by_frame(answers(suite.answers, summaries))
    return [found] if (found := leaders(summaries)) else []


def by_frame(found: Sequence[Leaders]) -> list[Table]:
    """Return a table for each frame."""
    frames = dict.fromkeys(one.frame for one in found)
    return [in_one([one for one in found if one.frame == frame], title=f"{frame}: the {_TITLE}") for frame in frames]


def in_one(
    found: Sequence[Leaders],
    roles: Collection[str] = ROLES,
    named: Callable[[str], str] = str,
    title: str = f"The {_TITLE}",
) -> Table:
    """Return a table of answers with a row for each transport in these roles; `named` names them.

    A transport in two roles has both in its row.
    """
    shown = [rival.case for one in found for rival, _ in _in_roles(one, roles).values()]
    several = _OF_RUNS if any(len(case.medians) > 1 for case in shown) else ""
    limit = _LIMIT if any(case.share_of_limit is not None for case in shown) else ""
    return Table(
        title=_sized(title, found),
        head=_HEAD,
        rows=tuple(row for one in found for row in _answer_rows(one, roles, named)),
        notes=(*_answer_notes(shown, roles), _EXPLAINED.format(several) + limit),
        wide=_WIDE,
        droppable=_DROPPABLE,
    )


def _sized(title: str, found: Sequence[Leaders]) -> str:
    rows = max((one.rows for one in found if one.rows is not None), default=None)
    return title if rows is None else f"{title}: {rows:,} rows"


def factor(rival: Rival) -> tuple[str, str]:
    """Return a transport's factor over the fastest, and the interval of this factor or the reason why it has none."""
    if rival.factor is None:
        return "", ""
    slower = ranged(rival.factors)
    if rival.interval is None:
        return slower, "too few runs to tell"
    return slower, span(rival.interval, digits=2) + ("" if rival.differs else f", {NO_DIFFERENCE}")


def _in_roles(one: Leaders, roles: Collection[str]) -> dict[str, tuple[Rival, list[str]]]:
    """Return the transports of an answer with their roles, by id."""
    fastest = Rival(one.fastest, 1.0, None) if one.fastest else None
    played = [(FASTEST, fastest), (WHOLE, one.whole), (PYPI, one.from_pypi), (CONVERTED, one.converted)]
    played += [(ALSO if place else DEFAULT, each) for place, each in enumerate(one.defaults)]
    played.append((LOWEST_MEMORY, one.lowest_memory))
    found: dict[str, tuple[Rival, list[str]]] = {}
    for role, rival in played:
        if rival and role in roles:
            found.setdefault(rival.case.transport, (rival, []))[1].append(role)
    return found


def _answer_rows(one: Leaders, roles: Collection[str], named: Callable[[str], str]) -> Iterator[tuple[str, ...]]:
    if one.fastest is None:
        yield one.name, FASTEST, "no transport is exact", *[""] * (len(_HEAD) - 3)
    for rival, names in _in_roles(one, roles).values():
        case = rival.case
        # The row of the fastest has no factor: it names the transports that may be as fast.
        ties = f"{one.ties} not shown slower" if one.ties else ""
        yield (
            one.name,
            ", ".join(names),
            marked(named(case.transport), case.lossy),
            significant(case.median_seconds),
            span(case.interval),
            *(("", ties) if case is one.fastest else factor(rival)),
            megabytes(case.peak_rss_bytes),
            "" if case.share_of_limit is None else f"{case.share_of_limit:.0%}",
            case.values,
        )


def _answer_notes(cases: Sequence[Summary], roles: Collection[str], converted: str = "converted") -> Iterator[str]:
    if said := legend(case.lossy for case in cases):
        yield _MARKED.format(said) + (_NONE_LOST if WHOLE in roles else "")
    if any(case.fidelity not in ("", EXACT) for case in cases):
        yield _CONVERTED.format(converted)


HERO = "directions"  # the picture that a report opens with


@dataclass(frozen=True)
class Dot:
    """A transport in the picture of a direction: its role there, seconds and label."""

    role: str
    seconds: float
    says: str
    converted: bool = False
    faster: Sequence[float] = ()  # how many times as fast as the default it is, in each run of the lab


@dataclass(frozen=True)
class Lane:
    """A direction in the first picture of a report: its transports, the seconds of the server alone, factors."""

    name: str
    dots: tuple[Dot, ...]
    alone: float | None
    factors: str


def lane(name: str, default: Dot | None, from_pypi: Dot | None, fastest: Dot | None, alone: float | None) -> Lane:
    """Return a direction with the factors by which its two other transports beat the default one."""
    dots = tuple(filter(None, (default, from_pypi, fastest)))
    faster = [(dot, dot.faster or [default.seconds / dot.seconds]) for dot in dots[1:]] if default else []
    said = (f"{ranged(of)}{'*' * dot.converted}" for dot, of in faster)
    return Lane(name, dots, alone, " · ".join(dict.fromkeys(said)))


def lanes(suite: Suite, summaries: Sequence[Summary]) -> list[Lane]:
    """Return the directions of a suite that asks for answers."""
    found = []
    for one in answers(suite.answers, summaries) if suite.answers else ():
        best = one.fastest
        alone = best.took * best.share_of_limit if best and best.share_of_limit else None
        roles = zip((DEFAULT, PYPI, FASTEST), one.shown, strict=True)
        default, from_pypi, fastest = (_dot(role, case, one.shown[0]) for role, case in roles)
        found.append(lane(one.name, default, from_pypi, fastest, alone))
    return [one for one in found if one.dots]


def _dot(role: str, case: Summary | None, default: Summary | None) -> Dot | None:
    if case is None or not case.n:
        return None
    figure = f"median {significant(case.took)} s" + (f" ({span(case.interval)})" if case.interval else "")
    says = f"{role}: {case.transport}\n{figure}, n = {case.n}\n{case.values}"
    return Dot(role, case.took, says, case.fidelity != EXACT, factors(default, case) if default and default.n else ())


FACTOR = 1.25


@dataclass(frozen=True)
class NoContender:
    """A transport that is no contender: the fate of its values or its end, and the least factor by which it is slower.

    `at_least` is the lower end of the interval of its factor; None if not all values came back.
    """

    transport: str
    values: str
    at_least: float | None


def no_contenders(wanted: AnswersWanted, summaries: Sequence[Summary]) -> list[NoContender]:
    """Return the transports beyond the article that are not contenders by these results, in the order of their ids.

    A contender returned every value, exact or converted, and it is not shown to take more than FACTOR times as long as
    the fastest exact one. A transport without declared losses is compared only with the fastest such one. Four more
    kinds are contenders: the default transport, the fastest one that converts, the one with the lowest memory, and
    those that the lab could not run. So are exact ones from PyPI, if their median is at most FACTOR times that of the
    fastest from PyPI.
    """
    cells = competing(wanted, summaries)
    found: list[NoContender] = []
    for one in answers(replace(wanted, existing=""), summaries):
        kept = {
            rival.case.transport for rival in (one.whole, one.converted, *one.defaults[:1], one.lowest_memory) if rival
        }
        cases = cells[one.frame, one.system, one.operation]
        among = max(sum(map(is_exact, cases)) - 1, 1)
        for case in cases:
            at_least = _at_least(one, case, among)
            could = case.origin != Origin.BEYOND or Status.UNAVAILABLE in case.status or case.transport in kept
            could = could or _near_from_pypi(one, case, wanted.beyond_pypi)
            if not could and (at_least is None or at_least > FACTOR):
                found.append(NoContender(case.transport, case.values, at_least))
    return sorted(found, key=lambda case: case.transport)


def _near_from_pypi(one: Leaders, case: Summary, beyond: Sequence[str]) -> bool:
    best = one.from_pypi.case if one.from_pypi else None
    if best is None or not _is_from_pypi(case, beyond):
        return False
    return is_exact(case) >= is_exact(best) and bool(case.n) and case.took <= FACTOR * best.took


def _at_least(one: Leaders, case: Summary, among: int) -> float | None:
    """Return the least factor by which a case may be slower than the fastest; None if not all values came back."""
    if case.status != Status.OK or not case.fidelity or one.fastest is None:
        return None
    best = one.whole.case if one.whole and not case.lossy else one.fastest
    if case.estimate is None or best.estimate is None:
        return case.took / best.took
    return ratio(case.estimate, best.estimate, among)[0]


def leaders(summaries: Sequence[Summary]) -> Table | None:
    """Return the fastest and the lowest memory of each experiment, system and operation at its largest point."""
    several = len({case.experiment for case in summaries}) > 1
    rows = []
    for (experiment, *key), group in groupby(summaries, key=attrgetter("table")):
        cases = list(group)
        # A bound is no transport. A run that counts rows after a disturbance does not measure speed.
        if all(map(is_bound, cases)) or any("expected_rows" in case.details for case in cases):
            continue
        largest = points(cases)[-1]
        ranked = sorted((c for c in cases if c.label == largest.label and c.rank), key=attrgetter("took"))
        where = largest.name or (f"{largest.rows:,} rows" if largest.rows is not None else "")
        rows.append((titled(experiment if several else "", *key), where, *_lead(ranked)))
    head = (
        "what",
        "at its largest point",
        "fastest",
        "median s",
        "second",
        "slower by",
        "least memory",
        "peak MB",
    )
    title, words, names = "The fastest, and the lowest memory", frozenset({0, 1, 2, 4, 6}), frozenset({2, 4, 6})
    return Table(title, head, tuple(rows), wide=words, names=names, droppable=((6, 7), (4, 5))) if rows else None


def _lead(ranked: list[Summary]) -> tuple[str, ...]:
    if not ranked:
        return ("none is ok", *[""] * 5)
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else None
    measured = [case for case in ranked if case.peak_of_all_bytes is not None]
    lean = min(measured, key=lambda case: case.peak_of_all_bytes or 0, default=None)
    slower = ""
    if second:
        slower = f"{second.took / first.took - 1:.0%}"
        if not (first.estimate and second.estimate):
            slower += ", too few runs to tell"
        elif not leaves_out_one(ratio(second.estimate, first.estimate)):
            slower += f", {NO_DIFFERENCE}"
    return (
        case_name(first),
        significant(first.median_seconds),
        case_name(second) if second else "",
        slower,
        case_name(lean) if lean else "",
        megabytes(lean.peak_of_all_bytes) if lean else "",
    )
