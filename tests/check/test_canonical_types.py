"""Nulls in pandas, and types that no benchmark has: what clients return becomes canonical, or is refused."""

import datetime as dt
import decimal
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from harness.check.canonical import NotConvertible, canonicalise, load_frame
from harness.check.logical_types import POLARS_DTYPES, polars_dtype

DAY = dt.date(2025, 3, 4)


def in_polars(*values, dtype=None):
    return pl.DataFrame({"c": pl.Series(values, dtype=dtype)})


def in_pandas(*values, dtype=None):
    return pd.DataFrame({"c": pd.Series(list(values), dtype=dtype)})


ZONED = dt.datetime(2025, 3, 4, 5, 6, 7, 8, tzinfo=dt.UTC)
NAIVE = ZONED.replace(tzinfo=None)
SPAN = dt.timedelta(days=-3, microseconds=1)
OTHERS = {
    "boolean: polars": ("boolean", in_polars(True, None), [True, None], None),
    "boolean: pandas": ("boolean", in_pandas(True, None, dtype="boolean"), [True, None], None),
    "boolean: pandas without nulls": ("boolean", in_pandas(True, False), [True, False], None),
    "boolean: objects": ("boolean", in_pandas(True, None, dtype=object), [True, None], "object"),
    "boolean: Postgres' text": ("boolean", in_polars("t", "f", None), [True, False, None], "String"),
    "boolean: ClickHouse's text": ("boolean", in_polars("true", "false"), [True, False], "String"),
    "boolean: integers": ("boolean", in_polars(1, 0), [True, False], "Int64"),
    "timestamp: polars": ("timestamp", in_polars(NAIVE), [NAIVE], None),
    "timestamp: pandas": ("timestamp", in_pandas(NAIVE, None, dtype="datetime64[us]"), [NAIVE, None], None),
    "timestamp: nanoseconds": ("timestamp", in_pandas(NAIVE, dtype="datetime64[ns]"), [NAIVE], "datetime64[ns]"),
    "timestamp: text": ("timestamp", in_polars("2025-03-04 05:06:07.000008"), [NAIVE], "String"),
    "timestamp_ns: pandas": (
        "timestamp_ns",
        in_pandas("2025-03-04 05:06:07.000008009", None, dtype="datetime64[ns]"),
        [NAIVE, None],
        None,
    ),
    "timestamp_ns: text": ("timestamp_ns", in_polars("2025-03-04 05:06:07.000008009"), [NAIVE], "String"),
    "timestamp_tz_ns: text": ("timestamp_tz_ns", in_polars("2025-03-04 05:06:07.000008009"), [ZONED], "String"),
    "duration: pandas": ("duration", in_pandas(SPAN, None, dtype="timedelta64[us]"), [SPAN, None], None),
    "duration: nanoseconds": ("duration", in_pandas(SPAN, dtype="timedelta64[ns]"), [SPAN], "timedelta64[ns]"),
    "duration: objects": ("duration", in_pandas(SPAN, None, dtype=object), [SPAN, None], "object"),
    "duration: microseconds": ("duration", in_polars(-1), [dt.timedelta(microseconds=-1)], "Int64"),
    "timestamp: objects": ("timestamp", in_pandas(NAIVE, dtype=object), [NAIVE], "object"),
    "timestamp_tz: pandas": ("timestamp_tz", in_pandas(ZONED, dtype="datetime64[us, UTC]"), [ZONED], None),
    "timestamp_tz: text": ("timestamp_tz", in_polars("2025-03-04 05:06:07.000008+00"), [ZONED], "String"),
    "timestamp_tz: elsewhere": (
        "timestamp_tz",
        in_polars(ZONED.astimezone(dt.timezone(dt.timedelta(hours=2))), dtype=pl.Object),
        [ZONED],
        "Object",
    ),
    "decimal: pandas": ("decimal", in_pandas(decimal.Decimal("1.5"), None), [decimal.Decimal("1.5"), None], None),
    "decimal: other scale": (
        "decimal",
        in_polars(decimal.Decimal("1.5")),
        [decimal.Decimal("1.5")],
        "Decimal(precision=38, scale=1)",
    ),
    "decimal: text": ("decimal", in_polars("1.5"), [decimal.Decimal("1.5")], "String"),
    "decimal: objects of text": (
        "decimal",
        in_pandas("1.5", dtype=object),
        [decimal.Decimal("1.5")],
        "object of str",
    ),
    "array: polars": ("array", in_polars([1, None], [], dtype=pl.List(pl.Int32)), [[1, None], []], None),
    "array: longer integers": ("array", in_polars([1], []), [[1], []], "List(Int64)"),
    "array: pandas": ("array", in_pandas([1, None], []), [[1, None], []], None),
    "array: numpy": (
        "array",
        in_pandas(np.array([1.0, math.nan]), np.array([]), dtype=object),
        [[1, None], []],
        "object of ndarray",
    ),
    "array: lists of lists": (
        "array(array(int32))",
        in_pandas(np.array([np.array([1.0, math.nan]), np.array([])], dtype=object), [], dtype=object),
        [[[1, None], []], []],
        "object of ndarray",
    ),
    "array: no items at any level": (
        "array(array(int32))",
        in_polars([], None, dtype=pl.List(pl.Int32)),
        [[], None],
        "List(Int32)",
    ),
    "nested: pandas": ("nested", in_pandas({"a": 1, "b": "x"}), [{"a": 1, "b": "x"}], None),
    "uint32: integers": ("uint32", in_polars(2**32 - 1), [2**32 - 1], "Int64"),
    "uint64: text": ("uint64", in_polars(str(2**64 - 1)), [2**64 - 1], "String"),
    "uint64: objects": ("uint64", in_pandas(decimal.Decimal(2**63), dtype=object), [2**63], "object"),
    "float32: its digits": ("float32", in_polars(0.1), [0.10000000149011612], "Float64"),
    "float32: text": ("float32", in_polars("0.1"), [0.10000000149011612], "String"),
    "float32: objects": ("float32", in_pandas(0.5, dtype=object), [0.5], "object"),
    "json: text": ("json", in_polars('{"b": 1, "a": "é"}'), ['{"a":"é","b":1}'], None),
    "json: bytes": ("json", in_polars(b"[1, 2]"), ["[1,2]"], "Binary"),
    "json: dicts": ("json", in_pandas({"b": np.int64(1), "a": np.array([1, 2])}), ['{"a":[1,2],"b":1}'], "object"),
    "json: a struct": ("json", in_polars({"a": 1}), ['{"a":1}'], "Struct({'a': Int64})"),
    "nested: tuples": ("nested", in_pandas((1, "x"), dtype=object), [{"a": 1, "b": "x"}], "object of tuple"),
}


@pytest.mark.parametrize(("logical", "frame", "values", "dtype"), OTHERS.values(), ids=OTHERS)
def test_other_types_and_nulls_become_canonical_and_are_named(logical, frame, values, dtype):
    canonical, converted = canonicalise(frame, {"c": logical})
    assert canonical["c"].to_list() == values
    assert canonical["c"].dtype == polars_dtype(logical)
    assert converted == ({} if dtype is None else {"c": dtype})


@pytest.mark.parametrize("logical", ["timestamp_ns", "timestamp_tz_ns"])
def test_texts_of_moments_keep_their_nanoseconds(logical):
    canonical, _ = canonicalise(
        in_polars("2025-03-04 05:06:07.000008009", "1969-12-31 23:59:59.999999999"), {"c": logical}
    )
    assert canonical["c"].to_physical().to_list() == [1741064767000008009, -1]


@pytest.mark.parametrize(
    ("logical", "frame"),
    [
        ("boolean", in_polars("yes")),
        ("boolean", in_polars(2)),
        ("timestamp", in_polars("noon")),
        ("duration", in_polars("1 day")),
        ("duration", in_polars(0.5)),
        ("duration", in_pandas(np.timedelta64(1, "ns"), dtype="timedelta64[ns]")),
        ("decimal", in_polars("1.23456789012")),
        ("decimal", in_polars(decimal.Decimal("0.00000000001"))),
        ("decimal", in_polars("1,5")),
        ("array", in_polars("{1,2}")),
        ("array", in_polars([1.5])),
        ("array", in_polars([[1]])),
        ("array(array(int32))", in_polars([1, 2])),
        ('array(nested({"x": "int32"}))', in_polars([1])),
        ('nested({"x": "int32", "y": "int32"})', in_polars({"x": 1})),
        ('nested({"x": "array(int32)"})', in_polars({"x": 1})),
        ('nested({"x": "int32"})', in_polars({"y": 1})),
        ("array(array(int32))", in_pandas([1, 2])),
        ("array(array(int32))", in_polars([[1.5]])),
        ("nested", in_polars("(1,x)")),
        ("uint32", in_polars(-1)),
        ("uint64", in_polars("1.5")),
        ("float32", in_polars("half")),
        ("json", in_polars("{'a': 1}")),
        ("json", in_pandas({"a": DAY})),
    ],
)
def test_other_types_that_cannot_be_kept_are_refused(logical, frame):
    with pytest.raises(NotConvertible, match=r"^c: "):
        canonicalise(frame, {"c": logical})


@pytest.mark.parametrize(
    ("logical", "values", "with_null", "without"),
    [
        ("int32", [7], "Int32", "int32"),
        ("int64", [2**53 + 1], "Int64", "int64"),
        ("boolean", [True], "boolean", "bool"),
        ("float64", [0.5], "float64", "float64"),
        ("text", [""], "str", "str"),
        ("date", [DAY], "datetime64[us]", "datetime64[us]"),
        ("timestamp_tz", [ZONED], "datetime64[us, UTC]", "datetime64[us, UTC]"),
        ("array", [[1]], "object", "object"),
    ],
)
def test_a_pandas_frame_with_nulls_is_loaded_with_the_dtypes_that_hold_them(
    tmp_path, logical, values, with_null, without
):
    for rows, dtype in (([*values, None], with_null), (values, without)):
        pl.DataFrame({"c": pl.Series(rows, dtype=polars_dtype(logical))}).write_parquet(tmp_path / "data.parquet")
        frame = load_frame(tmp_path / "data.parquet", "pandas", {"c": logical})
        assert str(frame["c"].dtype) == dtype
        canonical, converted = canonicalise(frame, {"c": logical})
        assert converted == {}
        found = canonical["c"].fill_nan(None) if logical == "float64" else canonical["c"]
        assert found.to_list() == rows


@pytest.mark.parametrize("logical", POLARS_DTYPES)
def test_the_dtype_of_a_logical_type_is_printed_as_the_table_says(logical):
    assert str(polars_dtype(logical)) == POLARS_DTYPES[logical]
