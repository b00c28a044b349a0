"""Odd files of Parquet and Arrow, and odd frames: every value stays the same, or one line refuses them."""

from functools import cache
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
from tests.datasets.odd_columns import A_DAY, NANOSECONDS, PLAIN, array, changed, types, values
from tests.fuzzing import examples

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
    """Return the data that were read; None if they are refused, which data of ordinary types must not be."""
    said = ""
    try:
        return data.from_frame(read()).frame
    except LabError as refused:
        said = str(refused)
    assert said
    assert "\n" not in said
    assert any(of not in _ORDINARY for of, _ in drawn.values()), said
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
