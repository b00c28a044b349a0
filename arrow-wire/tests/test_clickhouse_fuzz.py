"""Arrays of odd layouts through the encoder and the decoder, and bytes and buffers that are damaged: errors, no panic.

A panic ends the process: the whole run fails then.
"""

import datetime as dt
import string
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from arrow_wire import clickhouse_native as clickhouse
from hypothesis import given
from hypothesis import strategies as some

from clickhouse_server import read_bytes
from fuzzing import examples

TEXTS = some.text(some.characters(exclude_categories=["Cs"]), max_size=40)
DAYS = some.dates(dt.date(1970, 1, 1), dt.date(2149, 6, 6))
MOMENTS = some.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2299, 12, 31))
DECIMALS = some.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-4))


def lists(values: some.SearchStrategy) -> some.SearchStrategy:
    return some.lists(values, max_size=4)


# Types of ClickHouse and of Arrow, and values that both hold.
TYPES: list[tuple[str, pa.DataType, some.SearchStrategy]] = [
    ("Nullable(Int8)", pa.int8(), some.integers(-128, 127)),
    ("Nullable(Int64)", pa.int64(), some.integers(-(2**63), 2**63 - 1)),
    ("Nullable(Int64)", pa.uint8(), some.integers(0, 255)),
    ("Nullable(UInt64)", pa.uint64(), some.integers(0, 2**64 - 1)),
    ("Nullable(Float64)", pa.float64(), some.floats(allow_nan=False)),
    ("Nullable(Float64)", pa.float32(), some.floats(allow_nan=False, width=32)),
    ("Nullable(Bool)", pa.bool_(), some.booleans()),
    ("Nullable(Date)", pa.date32(), DAYS),
    ("Nullable(Date32)", pa.date64(), DAYS),
    ("Nullable(DateTime64(6))", pa.timestamp("us"), MOMENTS),
    ("Nullable(Decimal(18, 4))", pa.decimal128(18, 4), DECIMALS),
    ("Nullable(Decimal(38, 6))", pa.decimal256(40, 4), DECIMALS),
    ("Nullable(String)", pa.string(), TEXTS),
    ("Nullable(String)", pa.large_string(), TEXTS),
    ("Nullable(String)", pa.string_view(), TEXTS),
    ("LowCardinality(Nullable(String))", pa.dictionary(pa.int8(), pa.string()), TEXTS),
    ("Nullable(String)", pa.dictionary(pa.uint32(), pa.large_string()), TEXTS),
    ("Nullable(UUID)", pa.string_view(), some.uuids().map(str)),
    ("Nullable(IPv6)", pa.string(), some.ip_addresses(v=6).filter(lambda one: one.ipv4_mapped is None).map(str)),
    ("Nullable(IPv4)", pa.string(), some.ip_addresses(v=4).map(str)),
    ("Nullable(Int256)", pa.string(), some.integers(-(2**255), 2**255 - 1).map(str)),
    ("Nullable(UInt128)", pa.string_view(), some.integers(0, 2**128 - 1).map(str)),
    ("Nullable(Enum16('a' = -300, 'b' = 300))", pa.string(), some.sampled_from("ab")),
    ("Array(Nullable(Int32))", pa.list_(pa.int32()), lists(some.integers(-9, 9))),
    ("Array(Array(Nullable(String)))", pa.large_list(pa.list_(pa.string_view())), lists(lists(TEXTS))),
    ("Array(Nullable(Int16))", pa.list_(pa.int16(), 2), some.lists(some.integers(0, 9), min_size=2, max_size=2)),
    (
        "Tuple(a Nullable(Int32), b Array(String))",
        pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())}),
        some.fixed_dictionaries({"a": some.integers(-9, 9) | some.none(), "b": lists(TEXTS)}),
    ),
    (
        "Nullable(Tuple(a Int32, b String))",
        pa.struct({"a": pa.int32(), "b": pa.string()}),
        some.fixed_dictionaries({"a": some.integers(-9, 9), "b": TEXTS}),
    ),
    (
        "Map(String, Array(Int8))",
        pa.map_(pa.string(), pa.list_(pa.int8())),
        some.dictionaries(TEXTS, lists(some.integers(0, 9)), max_size=3).map(lambda pairs: list(pairs.items())),
    ),
    ("Array(LowCardinality(String))", pa.list_(pa.dictionary(pa.int32(), pa.string())), lists(TEXTS)),
]


@some.composite
def columns(draw: some.DrawFn) -> tuple[str, pa.Array]:
    """Draw a type and an array of it: of some chunks joined, from the middle of a longer one, with nulls or without."""
    sql_type, of_arrow, values = draw(some.sampled_from(TYPES))
    if sql_type.startswith(("Nullable", "LowCardinality")):
        values = draw(some.sampled_from([values, values | some.none()]))
    chunks = draw(some.lists(some.lists(values, max_size=20), min_size=1, max_size=3))
    array = pa.chunked_array([pa.array(chunk, of_arrow) for chunk in chunks], of_arrow)
    joined = pa.concat_arrays(array.unify_dictionaries().chunks)
    first = draw(some.integers(0, len(joined)))
    return sql_type, joined.slice(first, draw(some.integers(0, len(joined) - first)))


def encoded(columns_: clickhouse.Columns, rows: Any) -> bytes:
    return bytes(columns_.block(clickhouse.Room(), rows))


@examples(60)
@given(columns(), columns(), some.data())
def test_what_goes_in_comes_out(one: tuple[str, pa.Array], two: tuple[str, pa.Array], data: some.DataObject) -> None:
    count = min(len(one[1]), len(two[1]))
    arrays = [array.slice(len(array) - count) for _, array in (one, two)]
    made = clickhouse.Columns([("a", arrays[0], one[0]), ("b b", arrays[1], two[0])])
    rows = data.draw(some.none() | some.lists(some.integers(0, max(count - 1, 0)), max_size=30 if count else 0))
    taken = range(count) if rows is None else np.array(rows, np.uint64)
    text = data.draw(some.sampled_from([pa.string_view(), pa.large_string()]))
    found = read_bytes(encoded(made, taken), made.wires, text, data.draw(some.sampled_from([1, 3, 64, 1 << 19])))
    found.validate(full=True)
    for column, array in zip(found.columns, arrays, strict=True):
        values = array.to_pylist()
        assert column.to_pylist() == [values[row] for row in taken]


@examples(60)
@given(columns(), some.binary(max_size=64), some.data())
def test_a_damaged_stream_is_an_error(one: tuple[str, pa.Array], noise: bytes, data: some.DataObject) -> None:
    made = clickhouse.Columns([("a", one[1], one[0])])
    whole = bytearray(encoded(made, range(len(one[1]))) * 2)
    place = data.draw(some.integers(0, len(whole)))
    how = data.draw(some.sampled_from(["cut", "replace", "insert"]))
    whole[place : len(whole) if how == "cut" else place + (len(noise) if how == "replace" else 0)] = (
        b"" if how == "cut" else noise
    )
    try:
        found = read_bytes(bytes(whole), made.wires, pa.string_view(), data.draw(some.sampled_from([5, 1 << 19])))
        found.validate()
    except (ValueError, MemoryError):
        pass


@examples(60)
@given(some.binary(max_size=200))
def test_noise_is_an_error(noise: bytes) -> None:
    names = [
        ("a", "Array(LowCardinality(Nullable(String)))"),
        ("b", "Map(String, Tuple(Int8, Nullable(Enum8('a' = 1))))"),
    ]
    with suppress(ValueError, MemoryError):
        read_bytes(noise, names, pa.string_view())


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_stream_that_ends_early_is_an_error(cut: int) -> None:
    texts = pa.array(list(string.ascii_letters), pa.string())
    made = clickhouse.Columns([("a", texts, "String"), ("b", texts.dictionary_encode(), "LowCardinality(String)")])
    whole = encoded(made, range(len(texts)))
    with pytest.raises(ValueError, match="ends within a block"):
        read_bytes(whole[: len(whole) * cut // 60], made.wires, pa.string_view())


WRONG = some.integers(-5, 40) | some.integers(-(2**31), 2**31 - 1)
OFFSETS = some.tuples(some.just(0), WRONG, WRONG, some.just(8)).map(list)  # Arrow looks at the first and the last


@examples(60)
@given(OFFSETS, some.sampled_from(["text", "large", "list", "dictionary", "view"]))
def test_arrays_that_contradict_themselves_are_refused(offsets: list[int], how: str) -> None:
    narrow, wide = (pa.py_buffer(np.array(offsets, width)) for width in (np.int32, np.int64))
    data, items = pa.py_buffer(b"abcdefgh"), pa.array(range(8), pa.int32())
    made_of = {
        "text": lambda: (pa.Array.from_buffers(pa.string(), 3, [None, narrow, data]), "String"),
        "large": lambda: (pa.Array.from_buffers(pa.large_binary(), 3, [None, wide, data]), "UUID"),
        "list": lambda: (
            pa.Array.from_buffers(pa.list_(pa.int32()), 3, [None, narrow], children=[items]),
            "Array(Int64)",
        ),
        "dictionary": lambda: (
            pa.DictionaryArray.from_arrays(pa.array(offsets[:3]), pa.array(["a"]), safe=False),
            "String",
        ),
        "view": lambda: (pa.Array.from_buffers(pa.string_view(), 1, [None, narrow, data]), "String"),
    }
    try:
        array, sql_type = made_of[how]()
    except (pa.ArrowInvalid, IndexError):
        return  # Arrow itself refuses it
    made = clickhouse.Columns([("a", array, sql_type)])
    with suppress(ValueError):
        encoded(made, range(len(array)))


@pytest.mark.parametrize("rows", [[3], [0, 2**63], [2**64 - 2]])
def test_rows_that_are_not_there_are_refused(rows: list[int]) -> None:
    made = clickhouse.Columns([("a", pa.array([1, 2, 3]), "Int64")])
    with pytest.raises(ValueError, match='column "a"'):
        encoded(made, np.array(rows, np.uint64))


@pytest.mark.parametrize(
    ("value", "sql_type", "message"),
    [
        (pa.array([1, 300]), "Int8", "row 1: 300 does not fit Int8"),
        (pa.array([1.5]), "Int32", "row 0: Int32 does not hold 1.5 exactly"),
        (pa.array([0.1]), "Float32", "row 0: Float32 does not hold 0.1 exactly"),
        (pa.array([1e300]), "Float32", "row 0: 1e[+]300 does not fit Float32"),
        (pa.array([2**60 + 1]), "Float64", r"row 0: Float64 does not hold \d+ exactly"),
        (pa.array(["a" * 5]), "FixedString(4)", r"row 0: 'aaaaa' does not fit FixedString\(4\)"),
        (pa.array([Decimal("1.234")]), "Decimal(9, 2)", r"row 0: Decimal\(9, 2\) does not hold .*1\.234.* exactly"),
        (pa.array([Decimal("10000000")]), "Decimal(9, 2)", r"row 0: .*10000000.* does not fit Decimal\(9, 2\)"),
        (pa.array([1], pa.timestamp("ns")), "DateTime64(6)", r"row 0: DateTime64\(6\) does not hold .* exactly"),
        (pa.array([-1], pa.timestamp("s")), "DateTime", "row 0: .* does not fit DateTime"),
        (pa.array([2**62], pa.timestamp("s")), "DateTime64(9)", r"row 0: .* does not fit DateTime64\(9\)"),
        (pa.array([[1], [None]]), "Array(Int64)", r"row 1: \[None\] has a null, which Array\(Int64\) does not take"),
        (pa.array(["1:2"]), "IPv6", "row 0: '1:2' is not an address like 2001:db8::1"),
        (pa.array(["1.2.3.256"]), "IPv4", "row 0: '1.2.3.256' is not an address like 192.0.2.1"),
        (pa.array(["b"]), "Enum8('a' = 1)", r"row 0: 'b' is not a value of Enum8\('a' = 1\)"),
        (pa.array(["-1"]), "UInt256", "row 0: '-1' does not fit UInt256"),
        (pa.array(["x"]), "Int64", "row 0: 'x' is not a value of Int64"),
    ],
)
def test_a_value_that_a_column_does_not_hold_is_named(value: pa.Array, sql_type: str, message: str) -> None:
    with pytest.raises(ValueError, match=f'^column "a": {message}'):
        encoded(clickhouse.Columns([("a", value, sql_type)]), range(len(value)))


def result(*types: str) -> clickhouse.Result:
    return clickhouse.Result([(f"c{place}", one) for place, one in enumerate(types)], pa.large_string())


def head(rows: int, *types: str) -> bytes:
    """Return the bytes before the first column's values; of one column."""
    (sql_type,) = types
    return bytes([1, rows, 2]) + b"c0" + bytes([len(sql_type)]) + sql_type.encode()


WHOLE = head(2, "Nullable(Int32)") + b"\0\1" + b"\1\0\0\0\2\0\0\0"


def fed(into: clickhouse.Result, data: bytes) -> Any:
    return into.feed(np.frombuffer(data, np.uint8).copy())


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_rows_of_an_open_block_are_not_taken_and_come_whole_once_it_has_ended(cut: int) -> None:
    into = result("Nullable(Int32)")
    done = fed(into, WHOLE[:cut])
    if done.open:
        with pytest.raises(ValueError, match="a block is still open; feed the rest"):
            into.take()
    assert fed(into, WHOLE[done.consumed :]).rows == 2
    assert into.take().to_pydict() == {"c0": [1, None]}


@pytest.mark.parametrize(
    "wrong", [head(2, "Nullable(Int32)") + b"\7\7" + bytes(8), head(2, "Nullable(Int64)"), b"\2\1"]
)
def test_a_result_that_failed_says_so_and_gives_nothing(wrong: bytes) -> None:
    into = result("Nullable(Int32)")
    with pytest.raises(ValueError, match=r'^column "c0": (a number is not a value|it is no longer|its bytes)') as first:
        fed(into, WHOLE + wrong)
    for call in (into.take, lambda: fed(into, WHOLE), into.take):
        with pytest.raises(ValueError, match="this decoder has failed") as caught:
            call()
        assert str(first.value) in str(caught.value)


@pytest.mark.parametrize(
    "piece",
    [np.zeros(8, np.int64), np.zeros(8, np.uint8)[::-1], np.zeros(8, np.uint8)[::2], np.zeros((2, 4), np.uint8)],
)
def test_memory_that_is_no_row_of_bytes_is_refused(piece: np.ndarray) -> None:
    with pytest.raises(TypeError, match="bytes come as one array of uint8 without gaps"):
        result("Int8").feed(piece)


LYING = [
    (pa.string(), np.int32, [0, 2, 10**6, 4], 1),
    (pa.large_string(), np.int64, [0, 1, 2**60, 4], 1),
    (pa.large_string(), np.int64, [0, 3, 1, 4], 1),
    (pa.string(), np.int32, [0, -5, 2, 4], 0),
]


@pytest.mark.parametrize(("arrow_type", "width", "offsets", "row"), LYING)
@pytest.mark.parametrize(
    "sql_type", ["String", "Int32", "Date", "DateTime", "Decimal(9, 2)", "Float64", "UUID", "IPv4"]
)
@pytest.mark.parametrize("pieces", [0, 1, 300])
def test_offsets_that_lie_are_an_error_with_column_and_row(
    arrow_type: pa.DataType, width: Any, offsets: list[int], row: int, sql_type: str, pieces: int
) -> None:
    buffers = [None, pa.py_buffer(np.array(offsets, width)), pa.py_buffer(b"1234")]
    column: Any = pa.Array.from_buffers(arrow_type, 3, buffers)
    if pieces:
        column = pa.chunked_array([*[pa.array(["1"], arrow_type)] * pieces, column])
    with pytest.raises(
        ValueError, match=rf'column "a": row {pieces + row}: |column "a": .*(form|address|UUID).* in row'
    ):
        encoded(clickhouse.Columns([("a", column, sql_type)]), range(len(column)))
