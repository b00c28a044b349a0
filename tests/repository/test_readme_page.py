"""README as it is committed: a page that fits two screens, whose blocks paste one thing, and that leads somewhere."""

import re

import pytest

from harness.registry import catalogue
from harness.settings import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_number_of_transports_is_that_of_the_catalogue_in_round_hundreds():
    there = sum(entry.moves_a_frame for entry in catalogue().values())
    assert re.findall(r"more than (\d+) recipes", " ".join(README.split())) == [str(there // 100 * 100)]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_to_a_file_leads_to_one(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", text, re.MULTILINE)
    paths = [(inline or below).partition("#")[0] for inline, below in links]
    missing = [
        path for path in paths if path and "://" not in path and not (ROOT / name).parent.joinpath(path).exists()
    ]
    assert missing == []
