"""A transport is skipped, with the reason, if it declares to lose a kind of values that the data have."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from harness import registry
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.user_data import data
from harness.datasets.user_data.losses import lost, undeclared, why
from harness.model import Fate

ENTRY = registry.one("postgres.psycopg.write_polars_copy_text")
WITH_NULLS = data.from_frame(pl.DataFrame({"id": [1, 2], "who": ["a", None], "city": [None, "b"]}))
USUAL_DAY, FAR_DAY = dt.date(2025, 1, 1), dt.date(1, 1, 1)


def losing(**lossy: str) -> Any:
    return replace(ENTRY, lossy=lossy)


@pytest.mark.parametrize("fate", [Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES])
def test_a_transport_that_loses_what_is_there_is_out_and_the_reason_names_the_columns(fate: Fate) -> None:
    assert lost(losing(nulls=fate), WITH_NULLS) == "nulls"
    assert why(losing(nulls=fate), "nulls", WITH_NULLS) == (
        f'{fate}: {KINDS["nulls"].meaning} (column "who" and 1 more)'
    )


def test_a_transport_that_loses_nothing_that_is_there_stays() -> None:
    assert lost(losing(), WITH_NULLS) == ""
    assert lost(losing(tab=Fate.CHANGED, nan=Fate.REFUSED), WITH_NULLS) == ""


def test_the_first_kind_that_is_lost_is_the_reason_in_the_order_of_all_kinds() -> None:
    both = data.from_frame(pl.DataFrame({"who": ["a\tb", None]}))
    assert list(both.found) == [kind for kind in KINDS if kind in both.found]
    assert lost(losing(tab=Fate.CHANGED, nulls=Fate.CHANGED), both) == next(iter(both.found))
    assert lost(losing(tab=Fate.CHANGED), both) == "tab"


@pytest.mark.parametrize(
    ("kind", "usual", "far"),
    [("dates", USUAL_DAY, FAR_DAY), ("decimals", Decimal("12.5"), Decimal("1" * 20))],
)
def test_what_changes_extremes_of_a_type_loses_nothing_of_usual_values_and_what_refuses_the_type_does(
    kind: str, usual: object, far: object
) -> None:
    of_usual, of_far = (data.from_frame(pl.DataFrame({"a": [value, value]})) for value in (usual, far))
    assert lost(losing(**{kind: Fate.CHANGED}), of_usual) == ""
    assert lost(losing(**{kind: Fate.CHANGED}), of_far) == kind
    assert lost(losing(**{kind: Fate.REFUSED}), of_usual) == kind


def test_a_type_that_is_refused_is_unsupported_with_its_column() -> None:
    own = data.from_frame(
        pl.DataFrame({"id": [1, 2], "price": pl.Series([Decimal("1.50")] * 2, dtype=pl.Decimal(9, 2))})
    )
    assert why(losing(decimals=Fate.REFUSED), "decimals", own) == 'unsupported: decimal(9, 2) (column "price")'


def test_a_kind_that_is_of_no_column_has_a_reason_without_one() -> None:
    own = data.from_frame(pl.DataFrame({"id": [1]}))
    assert lost(losing(one_row=Fate.CHANGED), own) == "one_row"
    assert why(losing(one_row=Fate.CHANGED), "one_row", own) == f"changed: {KINDS['one_row'].meaning}"


def test_types_that_no_kind_of_values_is_about_are_undeclared() -> None:
    logical_types = {
        "a": "array(int32)",
        "b": "array(text)",
        "c": "array(array(int32))",
        "d": "duration",
        "e": "timestamp",
    }
    assert undeclared({**logical_types, "f": "timestamp_ns", "g": "int8", "h": "time"}) == {
        "b": "array(text)",
        "c": "array(array(int32))",
        "d": "duration",
        "f": "timestamp_ns",
        "h": "time",
    }
