"""The page of a run, report.html: one self-contained file, to be opened from disk without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from harness.report import markdown
from harness.report.charts import GROUND, INK, LINES, QUIET
from harness.report.table import Section
from harness.results.folder import Facts, ids
from harness.results.row import Row
from harness.suites.suite import Suite


def page(suite: Suite, environment: Facts, rows: Sequence[Row], found: Sequence[Section], files: Sequence[str]) -> str:
    """Return the page of one run as HTML from its sections, with links to `files`."""
    return (
        templates()
        .get_template("report.html")
        .render(
            suite=suite,
            run=ids(environment),
            sections=[one for one in found if one.tables or one.sentences or one.charts],
            facts=markdown.facts(environment),
            pinned=pinned(rows),
            files=files,
            environment=json.dumps(environment, indent=1, ensure_ascii=False),
        )
    )


def _following(svg: str) -> Markup:
    """Return an SVG whose greys are those of the page, in its light scheme and in its dark one."""
    for colour, name in ((INK, "ink"), (QUIET, "quiet"), (LINES, "line"), (GROUND, "ground")):
        svg = svg.replace(f'"{colour}"', f'"var(--{name})"')
    return Markup(svg)


_TEMPLATES = Path(__file__).parent / "templates"
_OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def templates() -> jinja2.Environment:
    """Return the templates, which escape everything that is not marked as HTML."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    found.filters["whole_arrows"] = _whole_arrows
    found.filters["breakable"] = _breakable
    found.filters["following"] = _following
    return found


def _shown(value: object) -> object:
    """Return a value with numbers for the characters that a terminal obeys: a user may print the page there."""
    if not isinstance(value, str):
        return value
    return type(value)(_OBEYED.sub(lambda found: ascii(found[0])[1:-1], str(value)))


def _whole_arrows(text: str) -> Markup:
    """Return a string as HTML without line breaks within an arrow."""
    parts = ((escape(part), place % 2) for place, part in enumerate(markdown.NAMES.split(text)))
    found = Markup().join(Markup("<code>{}</code>").format(part[1:-1]) if named else part for part, named in parts)
    return found.replace("-&gt;", Markup('<span class="whole">-&gt;</span>'))


def _breakable(text: str) -> Markup:
    """Return a string as HTML with possible breaks after a dot or underscore of identifiers; a copy has no break."""
    return Markup(re.sub(r"(?<=\w)([._])(?=[^\W\d])", r"\1<wbr>", str(_whole_arrows(text))))


def pinned(rows: Sequence[Row]) -> list[markdown.Fact]:
    """Return the settings that transports set themselves, with these transports."""
    found: dict[str, set[str]] = {}
    for row in rows:
        if row.pinned:
            found.setdefault(row.pinned, set()).add(row.transport)
    return [(settings, ", ".join(sorted(names))) for settings, names in sorted(found.items())]
