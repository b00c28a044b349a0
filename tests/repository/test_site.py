"""The site of the docs: `make docs` fails where a link leads nowhere; here stands what it would not see."""

import re

from harness.settings import ROOT

OUTSIDE = ("docs/catalogue/", "docs/native.md", "docs/upstream/")  # put below the catalogue by the hook; notes
CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_of_the_docs_has_a_place_in_the_navigation():
    listed = re.findall(r"^ +- (\S+\.md)$", CONFIGURATION, re.MULTILINE)
    pages = {path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]}
    assert {page for page in pages if not page.startswith(OUTSIDE)} == {page for page in listed if page in pages}
    assert len(listed) == len(set(listed))


def test_no_page_loads_anything_over_a_network():
    assert "font: false" in CONFIGURATION
    assert "iframe-worker" in re.search(r"polyfills: \[(.*)\]", CONFIGURATION)[1]
