"""Where no transport is left, the column is named that rules the most of them out."""

from dataclasses import replace

import polars as pl
import pytest

from harness import registry
from harness.datasets.user_data import data
from harness.model import Fate
from harness.recommend.blamed import by_declaration, by_failure, nobody

TYPES = {"id": "int64", "waited": "duration", "opens": "time", "parts": 'nested({"x": "int32"})'}


@pytest.mark.parametrize(
    ("reason", "columns"),
    [
        ('unsupported: time (column "opens"): TypeError', {"opens"}),
        ('unsupported: duration (column "waited" and 2 more): TypeError', {"waited"}),
        ('unsupported: duration (column "waited") or time (column "opens"): TypeError', set()),
        ("mismatch: id: 3 of 100 values differ (and 2 more columns)", {"id"}),
        ("converted: id: Int32", set()),
        ("timeout: ended after the time limit of 10 s", set()),
    ],
)
def test_a_failure_is_about_the_column_that_it_names_alone(reason: str, columns: set[str]) -> None:
    assert by_failure(reason, TYPES) == columns


TOO_BIG = "row is too big: size 16224, maximum size 8160"
NOBODY = "brings these data through"


@pytest.mark.parametrize(
    ("blamed", "reasons", "said"),
    [
        (
            {"a": {"waited", "opens"}, "b": {"opens"}, "c": {"opens", "parts"}, "d": {"parts"}, "e": set()},
            ["of the first"],
            f'none of 5 transports {NOBODY}: column "opens" (time) alone rules out 3, '
            'column "parts" (nested) alone rules out 2; leave it out or cast it',
        ),
        (  # no column is known
            {"a": set(), "b": set()},
            ["error: of the first", "error: of the second"],
            f"none of 2 transports {NOBODY}, such as: error: of the first",
        ),
        (  # most share one cause, whatever clients call it
            {"a": set(), "b": set(), "c": set(), "d": {"id"}},
            [
                *(f"error: {name}: {TOO_BIG}" for name in ("psycopg.errors.ProgramLimitExceeded", "asyncpg.Error")),
                "error: TypeError",
                "mismatch: id: 3 of 100 values differ",
            ],
            f'none of 4 transports {NOBODY}: 2 say: {TOO_BIG}; column "id" (int64) alone rules out 1; '
            "leave it out or cast it",
        ),
        (  # a cause of the fewer is not named
            {name: set() for name in "abcd"},
            ["error: A", "error: A", "error: B", "error: C"],
            f"none of 4 transports {NOBODY}, such as: error: A",
        ),
        (  # more time is asked for where time was the cause
            {name: set() for name in "abc"},
            ["timeout: ended after the time limit of 10 s"] * 3,
            f"none of 3 transports {NOBODY}: 3 say: ended after the time limit of 10 s; give it more",
        ),
    ],
)
def test_where_no_transport_is_left_the_columns_or_the_cause_that_rule_the_most_out_are_named(
    blamed: dict[str, set[str]], reasons: list[str], said: str
) -> None:
    assert nobody(blamed, TYPES, reasons, "; give it more") == said


def test_all_columns_with_values_that_a_transport_declares_to_lose_rule_it_out() -> None:
    own = data.from_frame(pl.DataFrame({"a": ["\t", "x"], "b": [None, 1], "c": ["\t", None]}))
    entry = replace(registry.one("postgres.psycopg.write_polars_copy_text"), lossy={"tab": Fate.CHANGED})
    assert by_declaration(entry, own) == {"a", "c"}
    assert by_declaration(replace(entry, lossy={"nulls": Fate.REFUSED, "tab": Fate.CHANGED}), own) == {"a", "b", "c"}
