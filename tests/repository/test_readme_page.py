"""README as it is committed: a page that fits two screens, whose blocks paste one thing, and that leads somewhere."""

import re

import pytest

from harness.docs import readme
from harness.registry import catalogue
from harness.settings import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [" ".join(found.split()) for found in re.findall(r"(?:^ {4}\S.*\n(?:\n(?= {4}))?)+", README, re.MULTILINE)]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_it_has_at_most_110_lines():
    assert len(README.splitlines()) <= 110


def test_a_line_of_prose_fits_a_terminal():
    """Rows of a table and code are as long as they are."""
    prose = [line for line in README.splitlines() if not line.startswith(("|", "    "))]
    assert [line for line in prose if len(line) > 80] == []


@pytest.mark.parametrize("command", ["make install", "make bench", "make up && make bench && make down", "make test"])
def test_a_command_that_a_newcomer_needs_is_alone_in_its_block(command):
    """A copy button pastes a whole block: not two alternatives, and no comment, which zsh takes for arguments."""
    assert command in BLOCKS


def test_it_says_before_any_figure_that_every_value_is_compared():
    first = " ".join(README.partition(readme.BEGIN)[0].split())
    assert "without losing a value" in first
    assert "compares every value that arrives" in first


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
