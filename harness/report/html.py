"""What the HTML pages share: the templates, and how texts are written into them."""

import re
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

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
