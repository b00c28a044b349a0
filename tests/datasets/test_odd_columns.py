"""Odd files of Parquet and Arrow, and odd frames: every value stays the same, or one line refuses them."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from decimal import Context, Decimal
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from harness.datasets.user_data import data, reading
from harness.model import LabError
from tests.fuzzing import examples

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
A_DAY = 86_400 * 10**9
ZONES = (None, None, "UTC", "Europe/Berlin", "America/New_York", "+05:30")
Type = Any  # of Arrow

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_UNITS = ("s", "ms", "us", "ns")
PLAIN: list[Type] = [*_INTEGERS, pa.bool_(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()]
PLAIN += [pa.timestamp(unit, zone) for unit in ("ms", "us") for zone in (None, "UTC")]
_FLAT: list[Type] = [*PLAIN, pa.float16(), pa.null(), pa.date64(), pa.large_string(), pa.large_binary()]
_FLAT += [pa.string_view(), pa.binary_view(), pa.binary(3), pa.time32("s"), pa.time32("ms"), pa.time64("us")]
_FLAT += [pa.time64("ns"), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.large_string())]
_FLAT += [*(pa.duration(unit) for unit in _UNITS), *(pa.timestamp(unit, zone) for unit in _UNITS for zone in ZONES)]
_FLAT += [pa.decimal32(7, 2), pa.decimal64(16, 5), pa.decimal128(38, 10), pa.decimal128(20, 0), pa.decimal128(5, 5)]
_FLAT += [pa.decimal256(50, 20), pa.decimal256(76, 0), pa.uuid(), pa.json_()]
_INSIDE = [of for of in _FLAT if not (pa.types.is_dictionary(of) or pa.types.is_float16(of))]
_KEYS = [pa.string(), pa.int32(), pa.date32()]


def types() -> st.SearchStrategy[Type]:
    """Draw a type: flat, lists and structs of types, or a map to one."""
    inside = st.recursive(st.sampled_from(_INSIDE), _around, max_leaves=3)
    maps = st.tuples(st.sampled_from(_KEYS), inside).map(lambda of: pa.map_(*of))
    return st.sampled_from(PLAIN) | st.sampled_from(_FLAT) | _around(inside) | _around(inside) | maps


def _around(inside: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    names = st.lists(st.sampled_from(["a", "b", "key", "", "*", "^x$", 'q"']), min_size=1, max_size=2, unique=True)
    structs = names.flatmap(
        lambda found: st.tuples(*[inside] * len(found)).map(lambda of: pa.struct(list(zip(found, of, strict=True))))
    )
    lists = st.one_of(inside.map(pa.list_), inside.map(pa.large_list), inside.map(lambda of: pa.list_(of, 2)))
    return lists | lists | structs | inside.map(pa.list_view)


@cache  # making a strategy takes longer than drawing from it
def values(of: Type) -> st.SearchStrategy[Any]:
    """Draw values of a type, or nulls: for dates and times the numbers that Arrow stores."""
    return st.none() | _values(of)


def _values(of: Type) -> st.SearchStrategy[Any]:
    if pa.types.is_map(of):
        pairs = st.tuples(_values(of.key_type), values(of.item_type))
        return st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0]) | st.lists(pairs, max_size=3)
    if pa.types.is_fixed_size_list(of):
        return st.lists(values(of.value_type), min_size=of.list_size, max_size=of.list_size)
    if pa.types.is_struct(of):
        return st.fixed_dictionaries({field.name: values(field.type) for field in of})
    if pa.types.is_nested(of):
        return st.lists(values(of.value_type), max_size=3)
    return next(drawn for known, drawn in _DRAWN if known(of))(of)


def _integers(of: Type) -> st.SearchStrategy[int]:
    bits, signed = of.bit_width, str(of).startswith("int")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.integers(0, 5)


def _moments(of: Type) -> st.SearchStrategy[int]:
    second = 10**9 // NANOSECONDS[of.unit]
    near = st.integers(0, 4 * 10**9).map(lambda seconds: seconds * second)  # from 1970 to 2096
    far = st.integers(-62_135_596_800, 253_402_300_799).map(lambda seconds: seconds * second)  # the years 1 to 9999
    held = far.filter(lambda number: abs(number) < 2**63)
    return near | held | st.integers(-(2**63) + 1, 2**63 - 1) | st.tuples(near, st.integers(0, second)).map(sum)


def _of_day(of: Type) -> st.SearchStrategy[int]:
    a_day = A_DAY // NANOSECONDS[of.unit]
    second = 10**9 // NANOSECONDS[of.unit]
    usual = st.integers(0, a_day - 1) | st.integers(0, 86_399).map(lambda seconds: seconds * second)
    return usual | usual | usual | st.integers(-1, a_day)


def _decimals(of: Type) -> st.SearchStrategy[Decimal]:
    most = 10**of.precision - 1
    return st.integers(-most, most).map(lambda number: Decimal(number).scaleb(-of.scale, _WIDE))


_WIDE = Context(prec=100)
_STRINGS = st.text(st.characters(codec="utf-8"), max_size=20)
_DRAWN: list[tuple[Callable[[Type], bool], Callable[[Type], st.SearchStrategy[Any]]]] = [
    (pa.types.is_null, lambda of: st.none()),
    (pa.types.is_boolean, lambda of: st.booleans()),
    (pa.types.is_integer, _integers),
    (pa.types.is_floating, lambda of: st.floats(width=of.bit_width)),
    (pa.types.is_dictionary, lambda of: st.sampled_from(["", "a", "b", "é"])),
    (lambda of: str(of) == "extension<arrow.uuid>", lambda of: st.binary(min_size=16, max_size=16)),
    (lambda of: str(of) == "extension<arrow.json>", lambda of: st.sampled_from(['{"a": 1}', "1e999", "null", '"x"'])),
    (lambda of: "string" in str(of), lambda of: _STRINGS),
    (pa.types.is_fixed_size_binary, lambda of: st.binary(min_size=of.byte_width, max_size=of.byte_width)),
    (lambda of: "binary" in str(of), lambda of: st.binary(max_size=20)),
    (pa.types.is_date32, lambda of: st.integers(-719_162, 2_932_896) | st.integers(-(2**31), 2**31 - 1)),
    (pa.types.is_date64, lambda of: st.integers(-719_162, 2_932_896).map(lambda day: day * 86_400_000)),
    (pa.types.is_time, _of_day),
    (pa.types.is_timestamp, _moments),
    (pa.types.is_duration, _moments),
    (pa.types.is_decimal, _decimals),
]


def array(drawn: list[Any], of: Type) -> Any:
    """Return drawn values as an array."""
    if isinstance(of, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(of, array(drawn, of.storage_type))
    if pa.types.is_float16(of):
        return pa.array([None if one is None else np.float16(one) for one in drawn], of)
    if not pa.types.is_nested(of):
        return pa.array(drawn, of)
    null = pa.array([one is None for one in drawn], pa.bool_())
    if pa.types.is_struct(of):
        parts = [array([one and one[field.name] for one in drawn], field.type) for field in of]
        return pa.StructArray.from_arrays(parts, fields=list(of), mask=null)
    if pa.types.is_fixed_size_list(of):
        items = [item for one in drawn for item in one or [None] * of.list_size]
        return pa.FixedSizeListArray.from_arrays(array(items, of.value_type), type=of, mask=null)
    items = [item for one in drawn for item in one or ()]
    ends = list(accumulate((len(one or ()) for one in drawn), initial=0))
    if pa.types.is_map(of):
        parts = [array([pair[place] for pair in items], (of.key_type, of.item_type)[place]) for place in (0, 1)]
        return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), *parts, type=of, mask=null)
    if pa.types.is_list_view(of):
        sizes = pa.array([len(one or ()) for one in drawn], pa.int32())
        starts = pa.array(ends[:-1], pa.int32())
        return pa.ListViewArray.from_arrays(starts, sizes, array(items, of.value_type), type=of, mask=null)
    large = pa.types.is_large_list(of)
    lists = pa.LargeListArray if large else pa.ListArray
    offsets = pa.array(ends, pa.int64() if large else pa.int32())
    return lists.from_arrays(offsets, array(items, of.value_type), type=of, mask=null)


def meant(value: Any, of: Type) -> Any:
    """Return the meaning of a drawn value: see `found`."""
    if value is None:
        return None
    if pa.types.is_map(of):
        return [(meant(key, of.key_type), meant(item, of.item_type)) for key, item in value]
    if pa.types.is_struct(of):
        return {field.name: meant(value[field.name], field.type) for field in of}
    if pa.types.is_nested(of):
        return [meant(item, of.value_type) for item in value]
    if pa.types.is_floating(of):
        return _float(value)
    if pa.types.is_date(of):
        return "date", value if pa.types.is_date32(of) else value // 86_400_000
    if pa.types.is_time(of) or pa.types.is_duration(of):
        return "time" if pa.types.is_time(of) else "duration", value * NANOSECONDS[of.unit]
    if pa.types.is_timestamp(of):
        return "instant" if of.tz else "moment", value * NANOSECONDS[of.unit]
    return str(uuid.UUID(bytes=value)) if str(of) == "extension<arrow.uuid>" else value


def _float(value: float) -> str:
    return "nan" if math.isnan(value) else value.hex()


def found(column: pl.Series) -> list[Any]:
    """Return the meaning of the values of a frame's column: times as nanoseconds, floats as their bits."""
    dtype = column.dtype
    if isinstance(dtype, pl.Map):  # which is not cast
        pairs = found(column.map.entries())
        return [pairs_of and [(one["key"], one["value"]) for one in pairs_of] for pairs_of in pairs]
    return [_found(value, dtype) for value in column.cast(_stored(dtype)).to_list()]


def _stored(dtype: Any) -> Any:
    """Return a dtype with the numbers that polars stores instead of dates and times."""
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: _stored(field.dtype) for field in dtype.fields})
    if isinstance(dtype, pl.Array):
        return pl.Array(_stored(dtype.inner), dtype.size)
    if isinstance(dtype, pl.List):
        return pl.List(_stored(dtype.inner))
    if dtype == pl.Date:
        return pl.Int32
    return pl.Int64 if dtype.is_temporal() else pl.String if isinstance(dtype, pl.Categorical | pl.Enum) else dtype


def _found(value: Any, dtype: Any) -> Any:
    if value is None:
        return None
    if isinstance(dtype, pl.Struct):
        return {field.name: _found(value[field.name], field.dtype) for field in dtype.fields}
    if isinstance(dtype, pl.List | pl.Array):
        return [_found(item, dtype.inner) for item in value]
    if dtype.is_float():
        return _float(value)
    if dtype == pl.Date:
        return "date", value
    if dtype == pl.Time:
        return "time", value
    if isinstance(dtype, pl.Datetime):
        return "instant" if dtype.time_zone else "moment", value * NANOSECONDS[dtype.time_unit]
    return ("duration", value * NANOSECONDS[dtype.time_unit]) if isinstance(dtype, pl.Duration) else value


def same(one: Any, other: Any) -> bool:
    """Say whether two values mean the same: a number of many digits may be a string with all digits."""
    if isinstance(one, Decimal) and isinstance(other, str):
        return Decimal(other) == one
    if isinstance(one, dict):
        return (
            isinstance(other, dict) and list(one) == list(other) and all(same(one[name], other[name]) for name in one)
        )
    if isinstance(one, list | tuple):
        alike = isinstance(other, list | tuple) and len(one) == len(other)
        return alike and all(same(*pair) for pair in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


def changed(drawn: dict[str, tuple[Type, list[Any]]], frame: pl.DataFrame) -> str:
    """Describe the differences between a frame and the drawn values; empty without any."""
    if frame.columns != list(drawn):
        return f"columns {frame.columns}"
    for name, (of, column) in drawn.items():
        made = found(frame[name])
        if len(made) != len(column):
            return f'column "{name}" has {len(made)} values'
        for row, (one, other) in enumerate(zip(column, made, strict=True)):
            if not same(meant(one, of), other):
                return f'column "{name}" of {of}, row {row}: {meant(one, of)!r} became {other!r}'
    return ""


Drawn = dict[str, tuple[Any, list[Any]]]
_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
_SOME_NAMES = st.lists(_NAMES, min_size=1, max_size=3, unique=True)
_HEIGHTS = st.integers(1, 9)
ANY = types()
POLARS_ZONES = (None, "UTC", "Europe/Berlin")
_NOT_WRITTEN = pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError
_ORDINARY = {of for of in PLAIN if not pa.types.is_temporal(of)}  # dates and timestamps may be beyond any
# Arrow types for the values of columns of polars and of pandas, and their dtypes.
OF_POLARS: dict[Any, Any] = {of: pl.from_arrow(pa.array([], of)).dtype for of in PLAIN}  # type: ignore[union-attr]
OF_POLARS |= {pa.timestamp(unit, zone): pl.Datetime(unit, zone) for unit in ("ms", "us", "ns") for zone in POLARS_ZONES}
OF_POLARS |= {pa.duration(unit): pl.Duration(unit) for unit in ("ms", "us", "ns")}
OF_POLARS |= {pa.time64("ns"): pl.Time, pa.float16(): pl.Float16, pa.null(): pl.Null, pa.large_string(): pl.Categorical}
OF_POLARS |= {
    pa.dictionary(pa.int8(), pa.string()): pl.Enum(["", "a", "b", "é"]),
    pa.decimal128(38, 10): pl.Decimal(38, 10),
}
OF_POLARS |= {pa.list_(pa.int8()): pl.List(pl.Int8), pa.list_(pa.float32(), 2): pl.Array(pl.Float32, 2)}
STORED: dict[Any, Any] = {pl.Date: pl.Int32, **dict.fromkeys((pl.Datetime, pl.Duration, pl.Time), pl.Int64)}
STORED |= dict.fromkeys((pl.Categorical, pl.Enum), pl.String) | {pl.Float16: pl.Float32}
OF_PANDAS: dict[Any, list[str]] = {
    **{of: [str(of), str(of).replace("i", "I").replace("uI", "UI"), "object", "arrow"] for of in PLAIN[:8]},
    pa.bool_(): ["bool", "boolean", "object", "arrow"],
    pa.float32(): ["float32", "arrow"],
    pa.float64(): ["float64", "object", "arrow"],
    pa.string(): ["object", "string", "str", "category", "arrow"],
    pa.binary(): ["object", "arrow"],
    pa.date32(): ["arrow"],
    pa.decimal128(38, 10): ["object", "arrow"],
    pa.list_(pa.int64()): ["object", "arrow"],
    pa.dictionary(pa.int8(), pa.string()): ["category"],
    pa.time64("us"): ["arrow"],
    **{pa.duration(unit): ["timedelta64", "arrow"] for unit in ("s", "ms", "us", "ns")},
    **{pa.timestamp(unit, zone): ["datetime64", "arrow"] for unit in ("s", "ms", "us", "ns") for zone in POLARS_ZONES},
}


@st.composite
def columns(draw: st.DrawFn, of_types: st.SearchStrategy[Any] = ANY) -> Drawn:
    """Draw up to three columns of as many rows."""
    height = draw(_HEIGHTS)
    drawn: Drawn = {}
    for name in draw(_SOME_NAMES):
        of = draw(of_types)
        drawn[name] = of, draw(_lists(of, height))
    return drawn


@cache
def _lists(of: Any, height: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values(of), min_size=height, max_size=height)


@st.composite
def tables(draw: st.DrawFn, drawn: Drawn) -> Any:
    """Make a table of drawn columns: in several pieces, perhaps cut out of a larger table."""
    schema = pa.schema([(name, of) for name, (of, _) in drawn.items()])
    made = {name: array(column, of) for name, (of, column) in drawn.items()}
    table = pa.table([made[name] for name in drawn], schema)
    cut = draw(st.integers(0, table.num_rows))
    if draw(st.booleans()):
        table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    if draw(st.booleans()):
        table = pa.concat_tables([table, table]).slice(table.num_rows)
    return table


@st.composite
def written(draw: st.DrawFn) -> tuple[Drawn, str, Any, dict[str, Any]]:
    """Draw columns, a table of them, and the form and options of its file."""
    drawn = draw(columns())
    form = draw(st.sampled_from(["parquet", "parquet", "parquet", "arrow", "arrows"]))
    int96 = draw(st.sampled_from([False, False, False, True])) and all(_in_int96(*one) for one in drawn.values())
    durations = any("duration" in str(of) for of, _ in drawn.values())
    how = {
        "row_group_size": draw(st.sampled_from([1, 2, 5, 100])),
        "compression": draw(st.sampled_from(["none", "snappy", "zstd"])),
        "use_dictionary": draw(st.booleans()),
        "write_statistics": draw(st.booleans()),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "version": draw(st.sampled_from(["2.4", "2.6"])),
        "use_deprecated_int96_timestamps": int96,
        "store_schema": durations or int96 or draw(st.booleans()),  # without, they are numbers, or of no zone
        "use_compliant_nested_type": draw(st.booleans()),
        "data_page_size": draw(st.sampled_from([1, 1 << 20])),
    }
    return drawn, form, draw(tables(drawn)), how


def _in_int96(of: Any, column: list[Any]) -> bool:
    """Say whether INT96 can store a column: it has no zone, and not all years."""
    if not pa.types.is_timestamp(of):
        return "timestamp" not in str(of)
    return all(one is None or abs(one) * NANOSECONDS[of.unit] < 2**61 for one in column)


def _write(path: Path, table: Any, how: dict[str, Any]) -> None:
    if path.suffix == ".parquet":
        parquet.write_table(table, path, **how)
        return
    options = ipc.IpcWriteOptions(compression=None if how["compression"] == "none" else "zstd")
    new = ipc.new_file if path.suffix == ".arrow" else ipc.new_stream
    with new(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=how["row_group_size"])


def _own(drawn: Drawn, read: Any) -> pl.DataFrame | None:
    """Return the data that were read; None if they are refused, which data of ordinary types and names must not be."""
    said = ""
    try:
        return data.from_frame(read()).frame
    except LabError as refused:
        said = str(refused)
    assert said
    assert "\n" not in said
    pattern = any(name.startswith("^") and name.endswith("$") for name in drawn)
    assert pattern or any(of not in _ORDINARY for of, _ in drawn.values()), said
    return None


@pytest.mark.long
@examples(120)
@given(made=written())
def test_an_odd_file_of_columns_has_every_value_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[Drawn, str, Any, dict[str, Any]]
) -> None:
    drawn, form, table, how = made
    path = tmp_path_factory.getbasetemp() / f"odd.{form}"
    try:
        _write(path, table, how)
    except _NOT_WRITTEN:
        assume(False)
    frame = _own(drawn, lambda: reading.read(path).frame)
    assert frame is None or not changed(drawn, frame), changed(drawn, frame)


@pytest.mark.long
@examples(120)
@given(made=st.data())
def test_an_odd_frame_of_arrow_has_every_value_or_is_refused(made: st.DataObject) -> None:
    drawn = made.draw(columns())
    table = made.draw(tables(drawn))
    given = made.draw(st.sampled_from([table, pa.RecordBatchReader.from_batches(table.schema, table.to_batches())]))
    frame = _own(drawn, lambda: reading.of_memory(given))
    assert frame is None or not changed(drawn, frame), changed(drawn, frame)


_POLARS_COLUMNS = columns(st.sampled_from(list(OF_POLARS)))


@st.composite
def frames(draw: st.DrawFn) -> tuple[Drawn, pl.DataFrame]:
    """Make a polars frame of drawn columns, by the numbers that it stores."""
    drawn, made = draw(_POLARS_COLUMNS), []
    for name, (of, column) in drawn.items():
        if pa.types.is_time(of):
            assume(all(one is None or 0 <= one < A_DAY for one in column))  # polars makes no other times
        stored = pl.Series(name, column, STORED.get(OF_POLARS[of].base_type(), OF_POLARS[of]))
        made.append(stored.cast(OF_POLARS[of]))
    return drawn, pl.DataFrame(made)


@pytest.mark.long
@examples(120)
@given(made=frames(), lazy=st.booleans())
def test_an_odd_frame_of_polars_has_every_value_or_is_refused(made: tuple[Drawn, pl.DataFrame], lazy: bool) -> None:
    drawn, given = made
    frame = _own(drawn, lambda: reading.of_memory(given.lazy() if lazy else given))
    assert frame is None or not changed(drawn, frame), changed(drawn, frame)


_PANDAS_COLUMNS = columns(st.sampled_from(list(OF_PANDAS)))


@st.composite
def pandas_frames(draw: st.DrawFn) -> tuple[Drawn, pd.DataFrame]:
    """Make a pandas frame of drawn columns: of numpy, nullable, of Arrow or of objects."""
    drawn = draw(_PANDAS_COLUMNS)
    made = {name: draw(_of_pandas(of, column)) for name, (of, column) in drawn.items()}
    frame = pd.DataFrame(made)
    if len(made) > 1 and draw(st.booleans()):
        frame = frame.set_index(next(iter(made)))  # a named index, which is kept
    elif draw(st.booleans()):
        frame = frame.set_axis(pd.Index(range(7, 7 + len(frame))))
    return drawn, frame


@st.composite
def _of_pandas(draw: st.DrawFn, of: Any, column: list[Any]) -> Any:
    dtype = draw(st.sampled_from(OF_PANDAS[of]))
    if pa.types.is_temporal(of) and dtype == "object":
        return pd.Series(array(column, of).to_pylist(), dtype=object)
    if dtype == "arrow":
        return pd.Series(pd.arrays.ArrowExtensionArray(array(column, of)))
    if pa.types.is_temporal(of):
        missing = np.iinfo("int64").min
        numbers = np.array([missing if one is None else one for one in column], "int64")
        made = pd.Series(numbers.view(f"{dtype}[{of.unit}]"))
        return made.dt.tz_localize("UTC").dt.tz_convert(of.tz) if getattr(of, "tz", None) else made
    if dtype in ("object", "category"):
        return pd.Series(column, dtype=object).astype(dtype)
    if None in column and dtype.startswith(("int", "uint", "bool")):
        dtype = "object"
    return pd.Series([np.nan if one is None and "float" in dtype else one for one in column], dtype=dtype)


@pytest.mark.long
@examples(120)
@given(made=pandas_frames())
def test_an_odd_frame_of_pandas_has_every_value_or_is_refused(made: tuple[Drawn, pd.DataFrame]) -> None:
    """pandas has NaN for a null."""
    drawn, given = made
    frame = _own(drawn, lambda: reading.of_memory(given))
    floats = {name for name, (of, column) in drawn.items() if pa.types.is_floating(of)}
    without = {
        name: (of, [None if name in floats and one != one else one for one in column])
        for name, (of, column) in drawn.items()
    }
    if frame is not None:
        frame = frame.with_columns([frame[name].fill_nan(None) for name in floats if frame[name].dtype.is_float()])
        assert not changed(without, frame), changed(without, frame)


def test_a_value_that_is_another_one_is_reported() -> None:
    drawn: Drawn = {"a": (pa.list_(pa.timestamp("ms")), [[1, None], None])}
    right = pl.DataFrame({"a": [[1_000, None], None]}, {"a": pl.List(pl.Datetime("us"))})
    assert not changed(drawn, right)
    for wrong in (right[:1], right.rename({"a": "b"}), right.cast(pl.List(pl.Datetime("ns", "UTC"))), right.reverse()):
        assert changed(drawn, wrong)
    for one, other in ((0.0, -0.0), (1.0, 1.0 + 2**-52), (1.0, None), (float("nan"), 1.0)):
        assert changed({"a": (pa.float64(), [one])}, pl.DataFrame({"a": [other]}, {"a": pl.Float64}))
