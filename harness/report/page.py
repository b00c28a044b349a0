"""The page of a run, report.html: one self-contained file, to be opened from disk without a network."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup, escape

from harness.model import Status
from harness.report.answers import leaders
from harness.report.figures import volume
from harness.report.rankings import every_case
from harness.report.summary import Summary
from harness.report.table import Sections
from harness.results.environment import code, server_in_words
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


_TEMPLATES = Path(__file__).parent / "templates"


def templates() -> jinja2.Environment:
    """Return the templates, in which everything is escaped but what is marked as HTML."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["whole_arrows"] = _whole_arrows
    found.filters["breakable"] = _breakable
    return found


def _whole_arrows(text: str) -> Markup:
    """Return a text as HTML in which no line is broken within an arrow."""
    return escape(text).replace("-&gt;", Markup('<span class="whole">-&gt;</span>'))


def _breakable(text: str) -> Markup:
    """Return a text as HTML whose identifiers may be broken after a dot or underscore; a copy of it has no break."""
    return Markup(re.sub(r"(?<=\w)([._])(?=\w)", r"\1<wbr>", str(_whole_arrows(text))))


Fact = tuple[str, str]
_FILES = 3  # as many are described one by one
_LIBRARIES = ("pandas", "polars", "pyarrow", "duckdb")  # all others stand in the environment at the end of the page


def headline(environment: Facts, rows: Sequence[Row], summaries: Sequence[Summary]) -> list[str]:
    """Return sentences that say how much was run, how it ended, and whether anything is missing."""
    plan, passes = environment["plan"], environment["plan"]["passes"]
    counts = Counter(str(row.status) for row in rows)
    endings = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    size = f" of size {plan['size']}" if "size" in plan else ""
    cases = f"{_many(len(summaries), 'case')} in {_many(passes, 'pass', 'passes')}{size}"
    sentences = [f"{cases}: {_many(len(rows), 'run')}{f' ({endings})' if rows else ''}."]
    if compared := environment.get("compared"):
        sentences.append(f"The data were compared before the run: {compared}.")
    if any(status != Status.OK for status in counts):
        sentences.append("Only ok runs have figures; why the others have none stands below.")
    made = Counter(row.case for row in rows)
    if short := sum(1 for count in made.values() if count < passes):
        sentences.append(
            f"This run is not complete: {_many(short, 'case')} of those below have fewer than {_many(passes, 'run')}."
        )
    return sentences


def facts(environment: Facts) -> list[Fact]:
    """Return where and how a run was made, as names and texts; what environment.json does not say is left out."""
    machine = environment["machine"]
    found = [
        ("Run", environment["run_id"]),
        ("Plan", _plan(environment["plan"])),
        ("Data", _all_data(environment.get("data", []))),
        ("Lab", environment["lab"]),
        *((f"Server {name}", _server(server)) for name, server in environment.get("servers", {}).items()),
        (
            "Machine",
            f"{machine['cores']} cores of {machine['cpu'] or machine['architecture']}, "
            f"{machine['memory_bytes'] / 2**30:.0f} GiB of memory",
        ),
        ("System", f"{machine['system']} {machine['kernel']}, {machine['architecture']}"),
        ("Filesystem of the data", environment.get("server_filesystem") or ""),
        ("Python", environment["python"]),
        ("Libraries", _libraries(environment.get("packages", {}))),
        ("Code", code(environment)),
        *(
            (name.replace("_", " ").capitalize(), str(text))
            for name, text in environment.get("measurement", {}).items()
        ),
        ("Load average at the start", ", ".join(map(str, environment.get("load_average_at_start", ())))),
    ]
    return [(name, text) for name, text in found if text]


def pinned(rows: Sequence[Row]) -> list[Fact]:
    """Return the settings that transports set themselves, and which do."""
    found: dict[str, set[str]] = {}
    for row in rows:
        if row.pinned:
            found.setdefault(row.pinned, set()).add(row.transport)
    return [(settings, ", ".join(sorted(names))) for settings, names in sorted(found.items())]


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def _plan(plan: Facts) -> str:
    experiments = ", ".join(part["name"] for part in plan.get("experiments", ()))
    parts = [
        f"suite {plan['suite']}",
        f"size {plan['size']}" if "size" in plan else "",
        _many(plan["passes"], "pass", "passes"),
        f"experiments {experiments}" if experiments else "",
        f"transports {plan['select']}" if plan.get("select") else "",
        f"shuffled by seed {plan['seed']}" if "seed" in plan else "",
        f"time limit {plan['time_limit']:g} s a run" if "time_limit" in plan else "",
    ]
    return ", ".join(part for part in parts if part)


def _all_data(files: Sequence[Facts]) -> str:
    """Say what the data are, one by one or, where they are many files, in all."""
    if len(files) <= _FILES:
        return "; ".join(map(_data, files))
    names = ", ".join(dict.fromkeys(str(file.get("name", "data")) for file in files))
    size = volume(sum(file.get("bytes") or 0 for file in files))
    return f"{names}: {len(files)} files, {size} in all, each described in the environment below"


def _data(data: Facts) -> str:
    """Say what a file or dataset is: its name, extent, seed and the beginning of the hash of its content."""
    parts = [
        str(data.get("name", "data")),
        f"{data['rows']:,} rows" if isinstance(data.get("rows"), int) else "",
        volume(data["bytes"]) if isinstance(data.get("bytes"), int) else "",
        f"seed {data['seed']}" if "seed" in data else "",
        f"content {str(data['content_hash'])[:12]}" if "content_hash" in data else "",
    ]
    return ", ".join(part for part in parts if part)


def _server(server: Facts) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in server.get("settings", {}).items())
    return server_in_words(server) + (f"; settings that differ from its defaults: {settings}" if settings else "")


def _libraries(packages: dict[str, str]) -> str:
    return ", ".join(f"{name} {packages[name]}" for name in _LIBRARIES if name in packages)
