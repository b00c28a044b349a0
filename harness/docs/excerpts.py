"""Tables of the reports of reference runs, copied between two marks of pages that are otherwise written by hand."""

import re
from pathlib import Path

from harness.docs import reference
from harness.model import LabError
from harness.report import markdown

PAGES = ("docs/findings.md", "docs/how-to/choose-by-hand.md")
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
