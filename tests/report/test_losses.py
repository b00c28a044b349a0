"""Transports that lose values have a mark at their names, and one line in a table made from results alone."""

import pytest

from harness.report.figures import loss_marks
from harness.report.rankings import MARKED, losses, rankings
from harness.report.summary import summarise
from tests.report.cases import row

ROWS = [
    row("postgres.a.write", seconds=0.5, lossy="nulls=changed; tab=refused; nan=changed"),
    row("postgres.b.write", seconds=0.25, lossy="zero_rows=hangs"),
    row("postgres.c.write", seconds=0.125),
]
SUMMARIES = summarise(ROWS, ())


def test_the_table_has_a_column_for_each_fate_there_is_and_a_line_for_each_way_that_loses():
    (table,) = losses(SUMMARIES)
    assert table.head == ("transport", "changed", "refused", "hangs")
    assert table.rows == (
        ("postgres.a.write", "nulls, nan", "tab", ""),
        ("postgres.b.write", "", "", "zero_rows"),
    )


def test_a_run_whose_transports_declare_nothing_has_no_table_no_mark_and_no_note():
    plain = summarise([row("postgres.c.write", seconds=0.125)], ())
    assert losses(plain) == []
    assert [one for table in rankings(plain) for one in table.notes if "†" in one] == []


def test_the_name_of_a_way_that_loses_is_marked_and_the_mark_explained():
    (table,) = rankings(SUMMARIES)
    assert [line[1] for line in table.rows] == ["postgres.c.write", "postgres.b.write ‡", "postgres.a.write †‡"]
    assert MARKED.format("† silently changes, ‡ refuses some kinds of values") in table.notes


@pytest.mark.parametrize(
    ("fates", "marked"),
    [
        ({}, ""),
        ({"nan": "changed"}, "†"),
        ({"nan": "refused", "tab": "refused"}, "‡"),
        ({"nan": "refused", "tab": "changed"}, "†‡"),
        ({"zero_rows": "hangs"}, "‡"),  # nothing arrives, and nothing was changed
    ],
)
def test_a_silent_change_and_a_refusal_are_never_one_mark(fates, marked):
    assert loss_marks(fates) == marked
