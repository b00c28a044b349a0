"""What a run shows, as sentences and tables that all forms of a report have alike."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report import clusters, control, crossing_tables, outcomes, round_trips, scaling_tables, winners
from harness.report.conclusions import conclusions
from harness.report.summary import Summary
from harness.report.table import Table
from harness.results.row import Row
from harness.suites.suite import Suite


def sentences(suite: Suite, rows: Sequence[Row], summaries: Sequence[Summary], cores: int | None) -> list[str]:
    """Return the sentences of "What this run shows"; `cores` are those of its machine, None where nobody says."""
    return [
        *control.said(summaries),
        *crossing_tables.said(crossing_tables.curves(suite, rows, summaries)),
        *conclusions(rows, suite.comparisons),
        *outcomes.said(suite, rows),
        *scaling_tables.said(clusters.scalings(summaries, cores)),
    ]


def tables(suite: Suite, rows: Sequence[Row], summaries: Sequence[Summary], cores: int | None) -> list[Table]:
    """Return the tables of no single experiment: grids of pictures, crossings, how workers scale, round trips."""
    return [
        *outcomes.tables(suite, rows),
        *winners.tables(suite, rows),
        *crossing_tables.tables(crossing_tables.curves(suite, rows, summaries)),
        *scaling_tables.tables(clusters.scalings(summaries, cores)),
        *round_trips.tables(rows),
    ]
