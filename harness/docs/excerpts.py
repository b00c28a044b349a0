"""Tables of the reports of reference runs, copied between two marks of pages that are otherwise written by hand."""

import re
from pathlib import Path

from harness.model import LabError
from harness.settings import ROOT

PAGES = ("docs/findings.md", "docs/how-to/choose-by-hand.md")
_MARKED = re.compile(r"(<!-- table of (\w+): (.+?) -->\n).*?(<!-- end of table -->\n)", re.DOTALL)


def page(path: Path) -> str:
    """Return the page with its marked tables copied again. Raises LabError for one that its report does not have."""
    return _MARKED.sub(_copied, path.read_text(encoding="utf-8"))


def _copied(found: re.Match[str]) -> str:
    begin, suite, title, end = found.groups()
    report = (ROOT / "results" / "reference" / suite / "report.md").read_text(encoding="utf-8")
    table = re.search(rf"^\*\*{re.escape(title)}.*?\*\*\n\n((?:\|.*\n)+)", report, re.MULTILINE)
    if table is None:
        raise LabError(f'no table "{title}" in the report of {suite}: name another after "table of {suite}:"')
    return f"{begin}\n{table[1]}\n{end}"
