"""README's answers, between its two marks: the reference runs' results for the eight directions.

A row is a direction; a write goes into a table that has rows, if the run has it. Its columns are the most common code,
the fastest transport with only PyPI packages, and the fastest of all. Each factor is relative to the most common code:
the range over the runs of the lab.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from operator import itemgetter

from harness import registry
from harness.docs import reference
from harness.lab.packages import from_pypi
from harness.model import LabError
from harness.report import markdown
from harness.report.answers import HERO, NO_DIFFERENCE, Leaders, answers
from harness.report.crossings import Curves, Winners, curves, many
from harness.report.figures import apart, legend, loss_marks, numbered, ranged, route, significant, spelled
from harness.report.summary import EXACT, Summary, factors, is_exact, is_slower
from harness.results.environment import server_in_words
from harness.results.folder import Facts, members
from harness.run import environment
from harness.settings import ROOT
from harness.systems import SYSTEMS

BEGIN, END = "<!-- reference:begin -->\n", "<!-- reference:end -->\n"
SUITE, CROSSINGS = "matrix", "crossings"
NONE_EXACT = "none kept every type"
_PICTURE = f"![The eight directions](results/reference/{SUITE}/pictures/{HERO}.svg)\n"
_WIDTH = 80  # width of a README line; table rows are longer
_COLUMNS = ("what most code does", "fastest with PyPI packages", "fastest of all")
_CONVERTED = "converted"
_JOINED = "\N{NO-BREAK SPACE}"  # joins a mark, a unit or a factor, which must not start a line


def page() -> str:
    """Return README.md with the part between its two marks regenerated."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise LabError(f"README.md must have the lines {BEGIN.strip()} and {END.strip()} once each; restore them")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{_block()}{END}{after}"


def _block() -> str:
    suite, run, summaries = reference.of(SUITE)
    if suite.answers is None:
        raise LabError(f"suites/{SUITE}.toml has no [answers], which README shows; add them")
    found = shown(answers(suite.answers, summaries))
    read = [*_legend(found), _few_rows()]
    paragraphs = [_how_much(found), " ".join(filter(None, read)), " ".join(_made(run.environment))]
    opening, *rest = (_filled(text) for text in paragraphs if text)
    return "\n".join([opening, _PICTURE, _table(found), *rest])


def _table(found: Sequence[Leaders]) -> str:
    sizes = sorted({one.rows for one in found if one.rows is not None})
    head = f"{' and '.join(format(rows, ',') for rows in sizes)} rows"
    return markdown.table((head, *_COLUMNS), map(row, found))


def row(one: Leaders) -> tuple[str, ...]:
    """Return the cells of a direction: its name, the most common code, the fastest from PyPI, the fastest of all."""
    default, from_pypi, fastest = one.shown
    alike = f", {one.ties} not shown slower" if one.ties else ""
    cells = (_against(one, from_pypi), _against(one, fastest, alike))
    return one.name, _cell(default, call(default)) if default else "", *cells


def shown(found: Sequence[Leaders]) -> list[Leaders]:
    """Return the answers with those of tables that have rows instead of those of empty tables, where there are both."""
    there = {(one.frame, one.system, one.operation): one for one in found if one.existing}
    return [there.get((one.frame, one.system, one.operation), one) for one in found if not one.existing]


def call(case: Summary) -> str:
    """Return the call that users write."""
    return f"`{spelled(case.transport, registry.one(case.transport).summary)}`"


def _against(one: Leaders, case: Summary | None, alike: str = "") -> str:
    """Return one of the fastest with its factor, and a faster one that converts; with a note if none is exact."""
    if case is None:
        return NONE_EXACT
    lacking = "" if is_exact(case) else f"{NONE_EXACT}; "
    converted = one.converted.case if one.converted else None
    also = f"; {_linked(one, converted)}" if converted and converted.took < case.took else ""
    return f"{lacking}{_linked(one, case)}{alike}{also}"


def _linked(one: Leaders, case: Summary) -> str:
    page = f"docs/catalogue/{case.system}-{case.client}.md#{case.transport.rpartition('.')[2]}"
    named = _cell(case, f"[{case.client} `{apart(case.transport)}`]({page})")
    way, by = _compared(one, case)
    if not by or case is one.shown[0]:
        return named
    said = (f"{ranged(by)}, {NO_DIFFERENCE}", f"**{ranged(by)}**", f"**{ranged(by)} slower**")[way]
    return f"{named},{_JOINED}{said}"


def _compared(one: Leaders, case: Summary) -> tuple[int, Sequence[float]]:
    """Return whether a transport is shown to be faster (1) or slower (-1) than the most common code, and the factors.

    It is in all calls together, and in each run of the lab; otherwise no difference is shown (0).
    """
    default = one.shown[0]
    if not (default and default.n and case.n):
        return 0, ()
    faster, slower = factors(default, case), factors(case, default)
    if is_slower(default, case, one.rivals) and min(faster) > 1:
        return 1, faster
    if is_slower(case, default, one.rivals) and min(slower) > 1:
        return -1, slower
    return 0, faster


def _cell(case: Summary, named: str) -> str:
    """Return a transport with its marks, its median and a note on its values."""
    marked = f"{named}{_JOINED}{loss_marks(case.lossy)}".rstrip(_JOINED)
    if not case.n:
        return f"{marked} {case.status}"
    converted = f", {_CONVERTED}" if case.fidelity != EXACT else ""
    return f"{marked} {significant(case.median_seconds)}{_JOINED}s{converted}"


def _how_much(found: Sequence[Leaders]) -> str:
    """State in two sentences what the fastest, and the fastest from PyPI, gain over the most common code."""
    kept = "the fastest call that kept every value"
    said = (
        _gain(found, 2, "What most code does is {} than {}", kept, "slower", "faster"),
        _gain(found, 1, "{1} make it {0}", "packages from PyPI alone", "faster", "slower"),
    )
    return " ".join(filter(None, said))


def _gain(found: Sequence[Leaders], place: int, claim: str, rival: str, gained: str, lost: str) -> str:
    """State a claim about a rival with the range of factors, and name the directions in which it does not hold."""
    ways: dict[int, list[tuple[str, Sequence[float]]]] = {1: [], -1: [], 0: []}
    for one in found:
        case = one.shown[place]
        way, by = _compared(one, case) if case else (0, ())
        if by:
            ways[way].append((route(one), by))
    every = sum(map(len, ways.values()))
    named = {way: f" in {', '.join(name for name, _ in of)}" for way, of in ways.items()}
    named[1] = f" in {len(ways[1])} of {numbered(every, 'direction')}" if len(ways[1]) < every else ""
    parts: list[str] = []
    for way, word in ((1, gained), (-1, lost)):
        if ways[way]:
            every_factor = [factor for _, by in ways[way] for factor in by]
            said = f"{ranged(every_factor)} {word}"
            parts.append((said if parts else claim.format(said, rival)) + named[way])
    if ways[0]:
        parts.append(f"no difference is shown{named[0] if parts else f' between most code and {rival}'}")
    said = "; ".join(parts)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _legend(found: Sequence[Leaders]) -> Iterator[str]:
    """Yield the explanation of the figures and marks."""
    every = [case for one in found for case in one.shown if case]
    if calls := sorted({case.n for case in every if case.n}):
        many, runs = (
            " to ".join(map(str, dict.fromkeys((calls[0], calls[-1])))),
            max(len(case.medians) for case in every),
        )
        several = f"{runs} runs of the lab, hours apart; factors have their range"
        yield f"Median of {many} calls, the call alone, in {several if runs > 1 else 'one run of the lab'}."
        yield "Bold: how many times as fast as most code."
    before = max((int(case.parameters.get("rows_before", 0)) for case in every), default=0)
    with_rows = f", or one with {before:,} rows if the row says so" if before else ""
    yield f"Writes go into an empty table{with_rows}."
    if said := legend(case.lossy for case in every):
        yield f"{said}: these data have none ([list](docs/catalogue.md))."
    if any(case.fidelity != EXACT for case in every if case.n):
        yield f"{_CONVERTED.capitalize()}: every value came back, some in another dtype."
    if any(one.fastest and apart(one.fastest.transport) == "tuned" for one in found):
        page = "docs/explanation/arrow-wire.md"
        yield (
            f"`tuned` needs [arrow-wire]({page}), not on PyPI: `make install` builds it. It sorts rows by the "
            "key, may use several connections, and builds the index of an empty table afterwards, under a lock."
        )


def outdated() -> list[str]:
    """Return the transports in the table whose code differs from the one measured, sorted."""
    suite, run, summaries = reference.of(SUITE)
    found = shown(answers(suite.answers, summaries)) if suite.answers else []
    return environment.changed(sorted({case.transport for one in found for case in one.shown if case}), run.environment)


def _few_rows() -> str:
    """State below how many rows transports from PyPI win, from that suite's reference run; empty without such a run."""
    if not (ROOT / "results" / "reference" / CROSSINGS).is_dir():
        return ""
    suite, _, summaries = reference.of(CROSSINGS)
    return few_rows(curves(suite, summaries))


def in_short(name: str) -> str:
    """Return README's sentences about the reference run of one of its two suites, without links."""
    if name == CROSSINGS:
        said = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", _few_rows())
        return said or "With few rows, clients from PyPI are not shown to be the fastest in any direction."
    suite, _, summaries = reference.of(name)
    if suite.answers is None:
        raise LabError(f'README does not answer from {name}; name a comparison after "comparisons of {name}:"')
    return _how_much(shown(answers(suite.answers, summaries)))


def few_rows(found: Curves) -> str:
    """State in a sentence below how many rows transports from PyPI are the fastest; empty if no run shows it."""
    lost = [(rows, one) for one in found.winners if (rows := _gives_way(one))]
    if not lost:
        return ""
    ends = (many(rows, one) for rows, one in (min(lost, key=itemgetter(0)), max(lost, key=itemgetter(0))))
    bounds = " to ".join(dict.fromkeys(ends)).replace(" rows to ", " to ")
    return (
        f"With few rows, clients from PyPI win in {len(lost)} of {len(found.winners)} directions, below "
        f"[{bounds}](results/reference/{CROSSINGS}/report.md)."
    )


def _gives_way(one: Winners) -> float | None:
    """Return the number of rows from which a transport not from PyPI wins, if those from PyPI win below it."""
    for each in one.crossings:
        if not from_pypi(registry.one(each.before)):
            return None
        if not from_pypi(registry.one(each.after)):
            return each.rows if each.shown and each.interval else None
    return None


def _made(environment: Facts) -> Iterator[str]:
    """Describe briefly where the figures were measured; the report has all details."""
    ran = environment["servers"]
    servers = ", ".join(f"{name} {server_in_words(ran[name])}" for name in SYSTEMS if name in ran)
    where = markdown.machine(environment["machine"])
    report = f"[report](results/reference/{SUITE}/report.md)"
    first, *others = members(environment)
    named = f"run {first['run_id']}{f' and {len(others)} more' if others else ''}"
    yield f"Measured on {where}; lab: {environment['lab']} ({servers}); {named}: {report}."
    if environment["lab"] == "embedded":
        own = [system for name, system in SYSTEMS.items() if name in ran and not ran[name].get("program")]
        yield from (system.embedded for system in own if system.embedded)


def _filled(text: str) -> str:
    """Return a text wrapped to README's width."""
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"
