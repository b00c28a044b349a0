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


def test_the_columns_that_rule_the_most_out_are_named_with_how_many_and_not_the_first_one() -> None:
    blamed = {"a": {"waited", "opens"}, "b": {"opens"}, "c": {"opens", "parts"}, "d": {"parts"}, "e": set()}
    assert nobody(blamed, TYPES, ["of the first"]) == (
        'none of 5 transports keeps every value of these data: column "opens" (time) alone rules out 3, '
        'column "parts" (nested) alone rules out 2; leave it out or cast it'
    )


def test_where_no_column_is_known_a_reason_is_told() -> None:
    said = nobody({"a": set(), "b": set()}, TYPES, ["error: of the first", "error: of the second"])
    assert said == "none of 2 transports keeps every value of these data, such as: error: of the first"


TOO_BIG = "row is too big: size 16224, maximum size 8160"


def test_one_cause_that_most_share_is_named_whatever_clients_call_it() -> None:
    reasons = [f"error: {name}: {TOO_BIG}" for name in ("psycopg.errors.ProgramLimitExceeded", "asyncpg.Error")]
    reasons += ["error: TypeError", "mismatch: id: 3 of 100 values differ"]
    said = nobody({"a": set(), "b": set(), "c": set(), "d": {"id"}}, TYPES, reasons)
    assert said == (
        f"none of 4 transports keeps every value of these data: 2 say: {TOO_BIG}; "
        'column "id" (int64) alone rules out 1; leave it out or cast it'
    )


def test_a_cause_of_the_fewer_is_not_named() -> None:
    reasons = ["error: A", "error: A", "error: B", "error: C"]
    assert "such as: error: A" in nobody({name: set() for name in "abcd"}, TYPES, reasons)


def test_more_time_is_asked_for_where_time_was_the_cause() -> None:
    limit = "timeout: ended after the time limit of 10 s"
    for reasons, more in (([limit] * 3, True), ([f"error: E: {TOO_BIG}"] * 3, False)):
        said = nobody({name: set() for name in "abc"}, TYPES, reasons, "; give it more")
        assert said.endswith("give it more") == more


def test_all_columns_with_values_that_a_transport_declares_to_lose_rule_it_out() -> None:
    own = data.from_frame(pl.DataFrame({"a": ["\t", "x"], "b": [None, 1], "c": ["\t", None]}))
    entry = replace(registry.one("postgres.psycopg.write_polars_copy_text"), lossy={"tab": Fate.CHANGED})
    assert by_declaration(entry, own) == {"a", "c"}
    assert by_declaration(replace(entry, lossy={"nulls": Fate.REFUSED, "tab": Fate.CHANGED}), own) == {"a", "b", "c"}
