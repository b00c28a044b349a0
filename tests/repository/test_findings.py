"""The figures in the prose of the findings are those of the reports they link to, or of README."""

import re

from tests.every import every
from tests.repository.checkout import ROOT

PAGE = (ROOT / "docs/findings.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
SECTIONS = {
    part.partition("\n")[0]: part.partition("\n")[2]
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    if "/report.md)" in part
}


def figures(text: str) -> set[str]:
    """Return the numbers of the prose: not those of tables, links, pictures and code."""
    prose = re.sub(r"^\|.*$|^!.*$|<!--.*?-->|\]\([^)]*\)|`[^`]*`", "", text, flags=re.MULTILINE)
    return set(re.findall(r"\d(?:[\d,.]*\d)?", prose))


def test_each_suite_has_its_findings():
    linked = set(re.findall(r"reference/(\w+)/report\.md", PAGE))
    assert linked == {path.name for path in (ROOT / "results/reference").iterdir()}


@every(SECTIONS, str)
def test_every_figure_is_in_the_report_of_its_section_or_in_readme(section):
    (suite,) = set(re.findall(r"reference/(\w+)/report\.md", SECTIONS[section]))
    said = README + (ROOT / f"results/reference/{suite}/report.md").read_text("utf-8")
    there = set(re.findall(r"\d(?:[\d,.]*\d)?", said))
    assert figures(SECTIONS[section]) - there == set()
