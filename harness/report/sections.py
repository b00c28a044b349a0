"""The sections of a report, made once: the terminal, Markdown and the page render the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.report import control, crossing_tables, outcomes, round_trips, winners
from harness.report.answer_tables import opening
from harness.report.beside import beside
from harness.report.conclusions import conclusions
from harness.report.failures import HEAD, not_ok
from harness.report.losses import losses
from harness.report.page_facts import headline
from harness.report.summary import Summary
from harness.report.table import Table
from harness.report.text_tables import text_tables
from harness.results.folder import Facts
from harness.results.row import Row
from harness.suites.suite import Suite


@dataclass(frozen=True)
class Section:
    """A part of a report: its title, tables and sentences."""

    title: str
    tables: tuple[Table, ...] = ()
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sections:
    """The sections of a report, in the order of report.md."""

    answers: Section
    not_ok: Section
    shown: Section
    results: Section
    published: Section


def sections(
    suite: Suite,
    environment: Facts,
    rows: Sequence[Row],
    summaries: Sequence[Summary],
    answers: Sequence[Table] | None = None,
) -> Sections:
    """Return the sections of one run. It opens with `answers`; without, with those of its suite."""
    curves = crossing_tables.curves(suite, rows, summaries)
    opened = opening(suite, rows, summaries) if answers is None else answers
    bad, lines = sum(not row.ok for row in rows), not_ok(rows)
    failed = Table("Runs that are not ok", HEAD, tuple(lines), wide=frozenset(range(len(HEAD))))
    fine = f"All {len(rows):,} runs are ok." if rows else "No run is there yet."
    told = f"{bad:,} of {len(rows):,} runs are not ok:" if bad else fine
    results = (*_of_no_experiment(suite, rows, curves), *text_tables(summaries), *losses(summaries))
    return Sections(
        Section(suite.title, tuple(opened), tuple(headline(environment, rows, summaries))),
        Section("What did not run, and why", (failed,) if lines else (), (told,)),
        Section("What this run shows", sentences=tuple(sentences(suite, rows, summaries, curves))),
        Section("Results", results, () if summaries else ("No run is there yet.",)),
        Section("The published figures beside ours", tuple(beside(summaries, suite.published))),
    )


def sentences(
    suite: Suite,
    rows: Sequence[Row],
    summaries: Sequence[Summary],
    curves: crossing_tables.Curves | None = None,
) -> list[str]:
    """Return the sentences of "What this run shows"."""
    return [
        *control.said(summaries),
        *crossing_tables.said(curves or crossing_tables.curves(suite, rows, summaries)),
        *conclusions(rows, suite.comparisons),
        *outcomes.said(suite, rows),
    ]


def _of_no_experiment(suite: Suite, rows: Sequence[Row], curves: crossing_tables.Curves) -> list[Table]:
    """Return the tables of no single experiment: grids of pictures, crossings, round trips."""
    return [
        *outcomes.tables(suite, rows),
        *winners.tables(suite, rows),
        *crossing_tables.tables(curves),
        *round_trips.tables(rows),
    ]
