"""report.html: one self-contained page of a run, to be opened from disk without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from harness.report.html import templates
from harness.report.page_facts import facts, pinned
from harness.report.page_tables import every_case, leaders
from harness.report.sections import Sections
from harness.report.summary import Summary
from harness.results.folder import Facts
from harness.results.row import Row
from harness.suites.suite import Suite

if TYPE_CHECKING:
    from harness.report.charts import Chart


def page(
    suite: Suite,
    environment: Facts,
    rows: Sequence[Row],
    summaries: Sequence[Summary],
    found: Sections,
    charts: Mapping[Chart, str],
    files: Sequence[str],
) -> str:
    """Return the page of one run as HTML text.

    `environment` is environment.json, `rows` are those of runs.csv, `summaries` those of `summarising.summarise`,
    `charts` the pictures in the suite's order with their SVG, `files` the names of the files to link to.
    """
    shown = {one.name for one in charts}
    return (
        templates()
        .get_template("report.html")
        .render(
            suite=suite,
            run=environment["run_id"],
            sections=found,
            leaders=leaders(summaries),
            facts=facts(environment),
            pinned=pinned(rows),
            every_case=every_case(summaries),
            pictures=[(one, Markup(_following(svg))) for one, svg in charts.items()],
            not_drawn=[picture.title for picture in suite.pictures if picture.name not in shown],
            files=files,
            environment=json.dumps(environment, indent=1, ensure_ascii=False),
        )
    )


def _following(svg: str) -> str:
    """Return an SVG whose greys are those of the page, in its light scheme and in its dark one."""
    for colour, name in (("#1f2328", "ink"), ("#59636e", "quiet"), ("#d1d9e0", "line"), ("#ffffff", "ground")):
        svg = svg.replace(f'"{colour}"', f'"var(--{name})"')
    return svg
