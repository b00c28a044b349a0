"""The table of assumptions names files that exist, and has the source, the date and the finding of each assumption."""

import re

from tests.repository.checkout import ROOT

LINES = [line for line in (ROOT / "docs/assumptions.md").read_text().splitlines() if line.startswith("| `")]
ROWS = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in LINES]


def test_every_assumption_names_a_file_of_the_lab():
    assert len(ROWS) > 15
    assert [row[0] for row in ROWS if not (ROOT / row[0].strip("`")).is_file()] == []


def test_every_assumption_says_where_and_when_it_was_read_and_whether_it_holds():
    for file, assumption, source, holds, date in ROWS:
        assert assumption, file
        assert re.search(r"`[^`]+`|package index", source), f"{file}: expected a file of upstream, found {source}"
        assert re.match(r"(yes|no|newer)\b", holds), f"{file}: {holds}"
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date), f"{file}: {date}"


def test_an_assumption_that_does_not_hold_says_what_the_lab_does_instead():
    assert [row[0] for row in ROWS if row[3].startswith("no") and ": " not in row[3]] == []
