"""The answers of README, between its two marks: what the reference run says, and one line a crossing.

A row has one transport: the fastest of an answer, and below it those that people usually take. With both in one row
no screen would hold it.
"""

import textwrap
from collections.abc import Iterator, Sequence

from harness.docs import reference
from harness.model import LabError
from harness.report import markdown
from harness.report.answer_tables import factor, route
from harness.report.answers import Leaders, Rival, answers
from harness.report.cells import LOSES, in_words, significant
from harness.report.crossing_tables import Curves, curves, ends, many, subject
from harness.report.summary import Summary
from harness.results.folder import Facts
from harness.settings import ROOT
from harness.systems import SYSTEMS

BEGIN, END = "<!-- reference:begin -->\n", "<!-- reference:end -->\n"
SUITE, CROSSINGS = "matrix", "crossings"
_WIDTH = 80  # of a line of README; rows of a table are longer
_HEAD = ("dataframe", "transport", "s", "times as long")


def page() -> str:
    """Return README.md with the part between its two marks made again."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise LabError(f"README.md: expected the lines {BEGIN.strip()} and {END.strip()}, each once")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{_block()}{END}{after}"


def _block() -> str:
    suite, run, summaries = reference.of(SUITE)
    if suite.answers is None:
        raise LabError(f"suites/{SUITE}.toml: expected [answers], which README shows; found none")
    found = answers(suite.answers, run.rows, summaries)
    pages = list(dict.fromkeys(_page_of(one.fastest) for one in found if one.fastest))
    parts = [
        markdown.table(_HEAD, [row for one in found for row in _rows(one, pages)], right={2}),
        _filled(" ".join(_said(found))),
        _filled(" ".join([_made(run.environment), *_remarks(run.environment)])),
        *_crossings(),
        "".join(f"[{number}]: {page}\n" for number, page in enumerate(pages, 1)),
    ]
    return "\n".join(parts)


def _crossings() -> Iterator[str]:
    """Yield where the winner changes with the rows, by the reference run of that suite; nothing without such a run."""
    if not (ROOT / "results" / "reference" / CROSSINGS).is_dir():
        return
    suite, run, summaries = reference.of(CROSSINGS)
    yield _filled(f"With fewer rows [others win](results/reference/{CROSSINGS}/report.md):")
    yield "".join(_filled(line, "  ") for line in crossing_lines(curves(suite, run.rows, summaries), summaries))


def crossing_lines(found: Curves, summaries: Sequence[Summary]) -> list[str]:
    """Return a line for each crossing that the runs show: who is faster before it and from it on, and its interval."""
    words = {case.transport: in_words(case) for case in summaries}
    return [
        f"- {subject(one.direction, found.directions)}: {words[each.before]}, from {many(each.rows, one)} on "
        f"({ends(each.interval, one).removesuffix(' rows')}) {words[each.after]}"
        for one in found.winners
        for each in one.crossings
        if each.shown and each.rows is not None and each.interval
    ]


def _cases(one: Leaders) -> list[Summary]:
    """Return what stands in the rows of an answer: the fastest, and the usual ones."""
    return [case for case in (one.fastest, *(of.case for of in one.usual)) if case]


def _rows(one: Leaders, pages: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of an answer: where from and to with the fastest exact transport, then each usual one."""
    fastest = one.fastest
    linked, seconds = (_linked(fastest, pages), significant(fastest.median_seconds)) if fastest else ("none", "")
    yield route(one), linked, seconds, ""
    for of in one.usual:
        yield "usual", _marked(in_words(of.case), of.case), significant(of.case.median_seconds), _factor(of)


def _factor(of: Rival) -> str:
    value, interval = factor(of)
    return f"{value} ({interval})" if interval else value


def _page_of(case: Summary) -> str:
    return f"docs/catalogue/{case.system}-{case.client}.md"


def _linked(case: Summary, pages: Sequence[str]) -> str:
    """Return a transport in words that lead to its client's page."""
    return _marked(f"[{in_words(case)}][{1 + pages.index(_page_of(case))}]", case)


def _marked(words: str, case: Summary) -> str:
    return words + (LOSES.strip() if case.lossy else "")


def _said(found: Sequence[Leaders]) -> Iterator[str]:
    """Yield the sentences below the table: its unit and marks."""
    sizes = sorted({one.rows for one in found if one.rows is not None})
    yield f"Median seconds for {' and '.join(format(rows, ',') for rows in sizes)} rows."
    if any(case.lossy for one in found for case in _cases(one)):
        yield f"{LOSES.strip()}: loses some kinds of values that these data do not have; the catalogue names them."


def _made(environment: Facts) -> str:
    """Say where the figures were made, as briefly as can be: the report has all of it."""
    ran = environment["servers"]
    servers = ", ".join(f"{name} {ran[name]['version']}" for name in SYSTEMS if name in ran)
    where = markdown.machine(environment["machine"])
    return f"Made on {where}; lab: {environment['lab']} ({servers}); run {environment['run_id']}."


def _remarks(environment: Facts) -> Iterator[str]:
    """Yield what is to be known of each database's figures, where its server was that of the embedded lab."""
    if environment["lab"] == "embedded":
        ran = (system for name, system in SYSTEMS.items() if name in environment["servers"])
        yield from (system.embedded for system in ran if system.embedded)


def _filled(text: str, indent: str = "") -> str:
    """Return a text in lines of README's width, all but the first one indented."""
    return textwrap.fill(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"
