"""Copies of code between two marks, in files that are otherwise written by hand.

Tables of the reports of reference runs, and the differences from a server that the tests of the gateway show.
"""

import ast
import re
import textwrap
from pathlib import Path

from harness.docs import reference
from harness.model import LabError
from harness.report import markdown
from harness.settings import ROOT

PAGES = ("docs/findings.md", "docs/how-to/choose-by-hand.md")
_GATEWAY = "harness/systems/*/gateway/__init__.py"
_SHOWN = "tests/systems/*/gateway/test_gateway_differences.py"
_LISTED = re.compile(r"(\(the list is made of its docstrings\):\n\n).*?(?=\"\"\")", re.DOTALL)
_WIDTH = 120
_MARKED = re.compile(r"(<!-- table of (\w+): (.+?) -->\n).*?(<!-- end of table -->\n)", re.DOTALL)


def page(path: Path) -> str:
    """Return the page with its marked tables copied again. Raises LabError for one that its report does not have."""
    return _MARKED.sub(_copied, path.read_text(encoding="utf-8"))


def _copied(found: re.Match[str]) -> str:
    begin, suite, title, end = found.groups()
    table = next((one for one in reference.tables(suite) if one.title.startswith(title)), None)
    if table is None:
        raise LabError(f'no table "{title}" in the report of {suite}: name another after "table of {suite}:"')
    lines = [line for line in markdown.text_table(table).splitlines() if line.startswith("|")]
    return "\n".join([begin, *lines, "", end])


def differences() -> tuple[Path, str]:
    """Return the gateway's file and its text, with the docstrings of the tests that show a difference from a server."""
    (gateway,), (shown,) = ROOT.glob(_GATEWAY), ROOT.glob(_SHOWN)
    tests = ast.parse(shown.read_text(encoding="utf-8"))
    told = (ast.get_docstring(one) for one in tests.body if isinstance(one, ast.FunctionDef))
    wrap = textwrap.TextWrapper(_WIDTH, "- ", "  ", break_long_words=False, break_on_hyphens=False)
    items = "".join(wrap.fill(" ".join(text.split())) + "\n" for text in told if text)
    return gateway, _LISTED.sub(lambda found: found[1] + items, gateway.read_text(encoding="utf-8"))
