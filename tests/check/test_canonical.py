"""Whatever dtype a client returns becomes the canonical value, is named as converted, or is refused: never changed."""

import datetime as dt
import decimal
import math
import uuid

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from asyncpg.pgproto.pgproto import UUID as AsyncpgUUID

from harness.check.canonical import NotConvertible, as_pandas, canonicalise, load_frame
from harness.check.equality import differences
from harness.check.logical_types import PANDAS_DTYPES, POLARS_DTYPES, map_of, polars_dtype, without_fields
from harness.datasets import analytics_metrics, store

KEY = uuid.UUID("12345678-1234-4234-8234-123456789abc")
DAY = dt.date(2025, 3, 4)
MIDNIGHT = dt.datetime(2025, 3, 4)


def in_polars(*values, dtype=None):
    return pl.DataFrame({"c": pl.Series(values, dtype=dtype)})


def in_pandas(*values, dtype=None):
    return pd.DataFrame({"c": pd.Series(list(values), dtype=dtype)})


def in_objects(*values):
    return in_pandas(*values, dtype=object)


def in_arrow(*values, type=None):
    return pa.table({"c": pa.array(values, type)})


def at(zone):
    return in_polars(MIDNIGHT).with_columns(pl.col("c").dt.replace_time_zone("UTC").dt.convert_time_zone(zone))


def arrow_backed(*values, type):
    return in_pandas(*values, dtype=pd.ArrowDtype(type))


UUIDS = {
    "polars String": (in_polars(str(KEY)), None),
    "polars Object of uuid.UUID": (in_polars(KEY, dtype=pl.Object), "Object"),
    "polars Object of asyncpg's UUID": (in_polars(AsyncpgUUID(str(KEY)), dtype=pl.Object), "Object"),
    "polars Object of bytes": (in_polars(KEY.bytes, dtype=pl.Object), "Object"),
    "polars Binary": (in_polars(KEY.bytes), "Binary"),
    "polars Categorical": (in_polars(str(KEY), dtype=pl.Categorical), "Categorical"),
    "Arrow arrow.uuid": (in_arrow(KEY.bytes, type=pa.uuid()), "Binary"),
    "Arrow fixed-size binary": (in_arrow(KEY.bytes, type=pa.binary(16)), "Binary"),
    "Arrow binary": (in_arrow(KEY.bytes), "Binary"),
    "Arrow large text": (in_arrow(str(KEY), type=pa.large_string()), None),
    "pandas str": (in_pandas(str(KEY)), None),
    "pandas object of str": (in_pandas(str(KEY), dtype=object), "object"),
    "pandas object of uuid.UUID": (in_pandas(KEY, dtype=object), "object"),
    "pandas object of asyncpg's UUID": (in_pandas(AsyncpgUUID(str(KEY)), dtype=object), "object"),
    "pandas object of bytes": (in_pandas(KEY.bytes, dtype=object), "object"),
    "pandas arrow.uuid": (arrow_backed(KEY.bytes, type=pa.uuid()), "extension<arrow.uuid>[pyarrow]"),
    "pandas fixed-size binary": (arrow_backed(KEY.bytes, type=pa.binary(16)), "fixed_size_binary[16][pyarrow]"),
}
DATES = {
    "polars Date": (in_polars(DAY), None),
    "polars Datetime": (in_polars(MIDNIGHT), "Datetime(time_unit='us', time_zone=None)"),
    "polars Datetime UTC": (at("UTC"), "Datetime(time_unit='us', time_zone='UTC')"),
    "polars String": (in_polars("2025-03-04"), "String"),
    "polars UInt16, ClickHouse's days": (in_polars(20151, dtype=pl.UInt16), "UInt16"),
    "Arrow date64": (in_arrow(DAY, type=pa.date64()), "Datetime(time_unit='ms', time_zone=None)"),
    "pandas datetime64[s]": (in_pandas(DAY, dtype="datetime64[s]"), "datetime64[s]"),
    "pandas datetime64[ms]": (in_pandas(DAY, dtype="datetime64[ms]"), "datetime64[ms]"),
    "pandas datetime64[us]": (in_pandas(DAY, dtype="datetime64[us]"), None),
    "pandas datetime64[ns]": (in_pandas(DAY, dtype="datetime64[ns]"), "datetime64[ns]"),
    "pandas object of date": (in_pandas(DAY, dtype=object), "object"),
    "pandas object of datetime": (in_pandas(MIDNIGHT, dtype=object), "object"),
    "pandas object of Timestamp": (in_pandas(pd.Timestamp(DAY), dtype=object), "object"),
    "pandas str": (in_pandas("2025-03-04"), "str"),
    "pandas date32": (arrow_backed(DAY, type=pa.date32()), "date32[day][pyarrow]"),
}
INTEGERS = {
    "polars Int32": (in_polars(7, dtype=pl.Int32), None),
    "polars Int64": (in_polars(7), "Int64"),
    "polars Float64": (in_polars(7.0), "Float64"),
    "polars String": (in_polars("7"), "String"),
    "polars Decimal": (in_polars(decimal.Decimal(7)), "Decimal(precision=38, scale=0)"),
    "pandas int32": (in_pandas(7, dtype="int32"), None),
    "pandas int64": (in_pandas(7), "int64"),
    "pandas nullable Int64": (in_pandas(7, dtype="Int64"), "Int64"),
    "pandas int32[pyarrow]": (arrow_backed(7, type=pa.int32()), "int32[pyarrow]"),
    "pandas category": (in_pandas(7, dtype="category"), "category"),
    "pandas object of int": (in_pandas(7, dtype=object), "object"),
    "pandas object of numpy integers": (in_pandas(np.int64(7), dtype=object), "object"),
}
TEXTS = {
    "polars String": (in_polars("é"), None),
    "polars Categorical": (in_polars("é", dtype=pl.Categorical), "Categorical"),
    "polars Enum": (in_polars("é", dtype=pl.Enum(["é"])), "Enum(categories=['é'])"),
    "polars Binary": (in_polars("é".encode()), "Binary"),
    "polars Object of bytes": (in_polars("é".encode(), dtype=pl.Object), "Object"),
    "Arrow large text": (in_arrow("é", type=pa.large_string()), None),
    "Arrow text view": (in_arrow("é", type=pa.string_view()), None),
    "Arrow dictionary": (pa.table({"c": pa.array(["é"]).dictionary_encode()}), "Categorical"),
    "pandas str": (in_pandas("é"), None),
    "pandas object": (in_pandas("é", dtype=object), "object"),
    "pandas object of bytes": (in_pandas("é".encode(), dtype=object), "object"),
    "pandas category": (in_pandas("é", dtype="category"), "category"),
    "pandas string": (in_pandas("é", dtype="string"), "string"),
    "pandas string[pyarrow]": (arrow_backed("é", type=pa.string()), "string[pyarrow]"),
}
FLOATS = {
    "polars Float64": (in_polars(0.5), None),
    "polars Float32": (in_polars(0.5, dtype=pl.Float32), "Float32"),
    "polars String": (in_polars("0.5"), "String"),
    "polars Decimal": (in_polars(decimal.Decimal("0.5")), "Decimal(precision=38, scale=1)"),
    "pandas float64": (in_pandas(0.5), None),
    "pandas float32": (in_pandas(0.5, dtype="float32"), "float32"),
    "pandas nullable Float64": (in_pandas(0.5, dtype="Float64"), "Float64"),
    "pandas double[pyarrow]": (arrow_backed(0.5, type=pa.float64()), "double[pyarrow]"),
    "pandas object of float": (in_pandas(0.5, dtype=object), "object"),
}
CANONICAL = {"uuid": str(KEY), "date": DAY, "int32": 7, "text": "é", "float64": 0.5}
RETURNED = {
    f"{logical}: {name}": (logical, frame, [CANONICAL[logical]], dtype)
    for logical, table in zip(CANONICAL, (UUIDS, DATES, INTEGERS, TEXTS, FLOATS), strict=True)
    for name, (frame, dtype) in table.items()
}
ZONED = dt.datetime(2025, 3, 4, 5, 6, 7, 8, tzinfo=dt.UTC)
NAIVE = ZONED.replace(tzinfo=None)
SPAN = dt.timedelta(days=-3, microseconds=1)
OTHERS = {
    "text: pandas, one missing": ("text", in_pandas("x", None), ["x", None], None),
    "float64: from a rounded float32": ("float64", in_polars(0.1, dtype=pl.Float32), [0.10000000149011612], "Float32"),
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
WIDE, MAP = "decimal(50, 2)", map_of("text", "int32")
NINES = "9" * 48 + ".99"
ID = uuid.UUID(int=7)
HOUR = dt.time(23, 59, 59, 999_999)


KEPT = {
    "decimal: strings": (WIDE, in_polars(NINES, None, "1.50"), [NINES, None, "1.50"], None),
    "decimal: strings of other places": (WIDE, in_polars("1.5", "-0", "007"), ["1.50", "0.00", "7.00"], None),
    "decimal: objects": (
        WIDE,
        in_objects(decimal.Decimal(NINES), None, decimal.Decimal("-0.00")),
        [NINES, None, "0.00"],
        None,
    ),
    "decimal: Arrow": (
        WIDE,
        in_arrow(decimal.Decimal("1E+40"), None, type=pa.decimal256(50, 2)),
        ["1" + "0" * 40 + ".00", None],
        ...,
    ),
    "decimal: pandas from Arrow": (
        WIDE,
        in_pandas(decimal.Decimal(NINES), None, dtype=pd.ArrowDtype(pa.decimal256(50, 2))),
        [NINES, None],
        "decimal256(50, 2)[pyarrow]",
    ),
    "decimal: those of polars": (WIDE, in_polars(decimal.Decimal("1.50")), ["1.50"], "Decimal(precision=38, scale=2)"),
    "map: polars": (
        MAP,
        in_polars({"a": 1, "b": None}, {}, None, dtype=polars_dtype(MAP)),
        [{"a": 1, "b": None}, {}, None],
        None,
    ),
    "map: dicts": (MAP, in_objects({"a": 1, "b": None}, {}, None), [{"a": 1, "b": None}, {}, None], None),
    "map: pairs": (MAP, in_objects([("b", 2), ("a", 1)]), [{"b": 2, "a": 1}], "object of list"),
    "map: longer integers": (
        MAP,
        in_polars({"a": 1}, dtype=pl.Map(pl.String, pl.Int64)),
        [{"a": 1}],
        "Map(String, Int64)",
    ),
    "uuids: bytes": ("array(uuid)", in_polars([ID.bytes, None], []), [[str(ID), None], []], "List(Binary)"),
    "uuids: objects": ("array(array(uuid))", in_objects([[ID, None]], []), [[[str(ID), None]], []], None),
    "uuids: strings": ("array(uuid)", in_polars([str(ID)]), [[str(ID)]], None),
    "times: objects": ("array(time)", in_objects([HOUR, None], []), [[HOUR, None], []], None),
    "bytes: strings": ("array(binary)", in_polars(["é", None]), [["é".encode(), None]], "List(String)"),
    "bytes: objects": ("array(binary)", in_objects([b"\0\xff", None]), [[b"\0\xff", None]], None),
}


@pytest.mark.parametrize(
    ("logical", "frame", "values", "dtype"), (RETURNED | OTHERS | KEPT).values(), ids=RETURNED | OTHERS | KEPT
)
def test_what_a_client_may_return_becomes_the_canonical_value_and_is_named(logical, frame, values, dtype):
    canonical, converted = canonicalise(frame, {"c": logical})
    assert canonical["c"].to_list() == values
    assert canonical["c"].dtype == polars_dtype(logical)
    if dtype is not ...:  # for Arrow, the dtype depends on the type that polars got
        assert converted == ({} if dtype is None else {"c": dtype})


REFUSED = {
    "an integer above 32 bits": ("int32", in_polars(2**31)),
    "an integer below 32 bits": ("int32", in_pandas(-(2**31) - 1)),
    "an unsigned integer above 32 bits": ("int32", in_polars(2**31, dtype=pl.UInt32)),
    "an integer above 64 bits": ("int32", in_pandas(2**70, dtype=object)),
    "text of an integer above 32 bits": ("int32", in_polars("2147483648")),
    "text of a fraction for an integer": ("int32", in_polars("7.5")),
    "empty text for an integer": ("int32", in_polars("")),
    "a fraction for an integer": ("int32", in_polars(7.5)),
    "a fraction among integers": ("int32", in_pandas(7, 7.5, dtype=object)),
    "a decimal fraction for an integer": ("int32", in_polars(decimal.Decimal("7.5"))),
    "NaN for an integer": ("int32", in_polars(math.nan)),
    "infinity for an integer": ("int32", in_polars(math.inf)),
    "an integer that no float holds": ("float64", in_polars(2**53 + 1)),
    "text that is no float": ("float64", in_polars("0.5x")),
    "a complex number": ("float64", in_pandas(0.5j)),
    "a time of day in polars": ("date", in_polars(dt.datetime(2025, 3, 4, 0, 0, 1))),
    "a nanosecond in pandas": ("date", in_pandas(np.datetime64("2025-03-04T00:00:00.000000001"))),
    "a time of day in objects": ("date", in_pandas(dt.datetime(2025, 3, 4, 1), dtype=object)),
    "midnight elsewhere": ("date", in_polars(MIDNIGHT).with_columns(pl.col("c").dt.replace_time_zone("Asia/Tokyo"))),
    "text with a time of day": ("date", in_polars("2025-03-04 00:00:00")),
    "a day that is none": ("date", in_polars("2025-02-30")),
    "empty text for a date": ("date", in_polars("")),
    "half a day": ("date", in_polars(20151.5)),
    "bytes that are no text": ("text", in_polars(b"\xff")),
    "half of a surrogate pair": ("text", in_pandas("\udcff", dtype=object)),
    "a list of strings": ("text", in_polars(["é"])),
    "a date for a text": ("text", in_polars(DAY)),
    "a list for a UUID": ("uuid", in_polars([1, 2])),
}


OTHERS_REFUSED = [
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
    (WIDE, in_polars("1.234")),
    (WIDE, in_polars("1" * 49)),
    (WIDE, in_polars("NaN")),
    (WIDE, in_polars(0.1)),
    (MAP, in_objects([("a", 1), ("a", 2)])),
    (MAP, in_polars({"a": 1})),
    (MAP, in_polars('{"a": 1}')),
    (MAP, in_polars({"a": 1.5}, dtype=pl.Map(pl.String, pl.Float64))),
    ("array(uuid)", in_polars([7])),
    ("array(time)", in_polars([dt.timedelta(hours=1)])),
]


@pytest.mark.parametrize(("logical", "frame"), [*REFUSED.values(), *OTHERS_REFUSED])
def test_what_cannot_be_kept_is_refused_in_one_line_that_names_the_column(logical, frame):
    with pytest.raises(NotConvertible, match=r"^c: ") as caught:
        canonicalise(frame, {"c": logical})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("frame", [in_polars(KEY.bytes_le), in_pandas(KEY.bytes_le, dtype=object)], ids=["pl", "pd"])
def test_a_uuid_in_the_wrong_byte_order_is_another_uuid(frame):
    canonical, _ = canonicalise(frame, {"c": "uuid"})
    assert canonical["c"].to_list() == ["78563412-3412-3442-8234-123456789abc"]


@pytest.mark.parametrize("raw", [KEY.bytes[:15], KEY.bytes + b"\0", b"", str(KEY).encode()])
def test_bytes_that_are_no_uuid_never_become_the_text_of_one(raw):
    canonical, _ = canonicalise(in_polars(raw), {"c": "uuid"})
    with pytest.raises(ValueError, match="badly formed"):
        uuid.UUID(canonical["c"][0])


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT], ids=str)
@pytest.mark.parametrize(("logical", "value"), [("text", "é"), ("uuid", KEY)])
def test_a_missing_value_among_python_objects_is_null_and_never_a_word(logical, value, missing):
    canonical, _ = canonicalise(in_pandas(value, missing, dtype=object), {"c": logical})
    assert canonical["c"].to_list() == [str(value), None]


@pytest.mark.parametrize("word", ["", "None", "nan", "NaN", "null", "NA", "<NA>", "NaT", "\\N"])
@pytest.mark.parametrize("frame", [in_polars, in_pandas])
def test_words_that_look_missing_stay_words(frame, word):
    canonical, _ = canonicalise(frame(word, "x"), {"c": "text"})
    assert canonical["c"].to_list() == [word, "x"]


@pytest.mark.parametrize(
    "frame",
    [in_polars(math.nan, -0.0, 1e-310), in_pandas(math.nan, -0.0, 1e-310), in_polars("nan", "-0.0", "1e-310")],
    ids=["polars", "pandas", "text"],
)
def test_nan_negative_zero_and_the_smallest_floats_stay_what_they_are(frame):
    canonical, _ = canonicalise(frame, {"c": "float64"})
    assert list(map(repr, canonical["c"].to_list())) == ["nan", "-0.0", "1e-310"]


LOGICAL_TYPES = {"a": "int32", "b": "int32"}
TWO = pa.table({"a": [1], "b": [2]})


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"b": [2], "a": [1]}),
        pl.DataFrame({"a": [1]}),
        pl.DataFrame({"a": [1], "b": [2], "c": [3]}),
        pl.DataFrame({"A": [1], "B": [2]}),
        pl.DataFrame(),
        pd.DataFrame([[1, 2]]),
        pd.DataFrame([[1, 2]], columns=["a", "b"]).set_index("a"),
        pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"]),
        pa.table([[1], [2], [3]], names=["a", "a", "b"]),
    ],
    ids=["swapped", "missing", "surplus", "case", "none", "unnamed", "index", "twice", "twice in Arrow"],
)
def test_other_columns_than_expected_are_refused(frame):
    with pytest.raises(NotConvertible, match=r"the columns are .* instead of a, b$"):
        canonicalise(frame, LOGICAL_TYPES)


@pytest.mark.parametrize(
    "returned",
    [
        *(TWO.to_reader(), (batch for batch in TWO.to_batches()), pl.DataFrame(TWO).lazy()),
        *(duckdb.sql("SELECT 1 a, 2 b"), None, [(1, 2)], pd.Series([1])),
    ],
    ids=["Arrow reader", "generator", "LazyFrame", "DuckDB relation", "None", "rows", "Series"],
)
def test_no_dataframe_and_a_lazy_one_whose_work_would_be_done_outside_the_clock_are_refused(returned):
    with pytest.raises(NotConvertible, match=r"a .* is not a dataframe in memory; return one"):
        canonicalise(returned, LOGICAL_TYPES)


def test_an_empty_frame_stays_empty_whatever_its_dtypes():
    for frame in (pd.DataFrame({"a": [], "b": []}, dtype=object), pl.DataFrame(schema=["a", "b"])):
        assert canonicalise(frame, LOGICAL_TYPES)[0].shape == (0, 2)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_the_frame_handed_to_a_transport_is_canonical_already(tmp_path, library):
    dataset = store.ensure(tmp_path, analytics_metrics.SPECIFICATION.name, 100, 1)
    frame = load_frame(dataset.path, library, analytics_metrics.LOGICAL_TYPES)
    canonical, converted = canonicalise(frame, analytics_metrics.LOGICAL_TYPES)
    assert converted == {}
    assert canonical.equals(pl.read_parquet(dataset.path))
    if library == "pandas":
        assert {n: str(t) for n, t in frame.dtypes.items()} == {
            name: PANDAS_DTYPES[logical] for name, logical in analytics_metrics.LOGICAL_TYPES.items()
        }


@pytest.mark.parametrize("logical", ["timestamp_ns", "timestamp_tz_ns"])
def test_strings_of_timestamps_keep_their_nanoseconds(logical):
    canonical, _ = canonicalise(
        in_polars("2025-03-04 05:06:07.000008009", "1969-12-31 23:59:59.999999999"), {"c": logical}
    )
    assert canonical["c"].to_physical().to_list() == [1741064767000008009, -1]


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


def test_pandas_has_decimals_and_dicts_of_them() -> None:
    frame = pl.DataFrame({"d": [NINES, None], "m": pl.Series([{"a": 1}, None], dtype=polars_dtype(MAP))})
    found = as_pandas(frame, {"d": WIDE, "m": MAP})
    assert found["d"].tolist() == [decimal.Decimal(NINES), None]
    assert found["m"].tolist() == [{"a": 1}, None]


def test_entries_of_a_map_are_compared_in_their_order_and_floats_by_their_bits() -> None:
    def rows(*maps: dict[str, float | None]) -> pl.DataFrame:
        return pl.DataFrame({"id": [1, 2], "m": pl.Series(maps, dtype=pl.Map(pl.String, pl.Float64))})

    wanted = rows({"a": -0.0, "b": None}, {})
    for key in (("id",), ()):
        assert differences(wanted, rows({"a": -0.0, "b": None}, {})[::-1], key) == []
        for other in ({"a": 0.0, "b": None}, {"b": None, "a": -0.0}, {"a": -0.0}):
            assert differences(wanted, rows(other, {}), key) != []


def test_names_of_fields_in_maps_are_hidden() -> None:
    assert without_fields('array(map(["text", "nested({\\"secret\\": \\"int32\\"})"]))') == (
        'array(map(["text", "nested({\\"field_1\\": \\"int32\\"})"]))'
    )
