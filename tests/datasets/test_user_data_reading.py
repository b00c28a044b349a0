"""A user's own data as files of each format and as frames in memory: read unchanged, or refused."""

import datetime as dt
import errno
import os
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.datasets.user_data import data, reading
from harness.model import LabError
from harness.systems import SYSTEMS
from tests.datasets.user_files import loaded, written


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.parquet", b"no such thing", "a.parquet: neither Parquet, CSV, JSON lines nor Arrow"),
        ("a.parquet", b"PAR1 and no more", "cannot be read as parquet: "),
        ("a.txt", b"a,b\n1,2\n", "a.txt: neither Parquet"),
        ("a.csv", b"a,a\n1,2\n", 'line 1, column 2: two columns are named "a"; rename one'),
        ("a.csv", b"", "a.csv is empty"),
        (None, b"", "nowhere.parquet: no such file"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, name: str | None, content: bytes, said: str) -> None:
    path = tmp_path / (name or "nowhere.parquet")
    if name:
        path.write_bytes(content)
    with pytest.raises(LabError, match=said):
        reading.read(path)


def test_a_pipe_and_a_folder_that_cannot_be_read_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open" / "closed").mkdir(parents=True)
    (tmp_path / "open" / "a.csv").write_text("a,b\n1,2\n")
    assert reading.read(tmp_path / "open").frame.rows() == [(1, 2)]
    right = os.scandir

    def scandir(of: Any) -> Any:
        if str(of).endswith("closed"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(of))
        return right(of)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError):  # one line on the command line; the files in there would be missing
        reading.read(tmp_path / "open")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LabError, match="pipe: no file but a pipe or a device; send its content to standard input"):
        reading.read(tmp_path / "pipe")


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
def test_two_columns_of_one_name_are_refused_by_their_name_whatever_the_form(tmp_path: Path, suffix: str) -> None:
    path = written(pa.table([[1], [2]], names=["a", "a"]), tmp_path / f"data.{suffix}")
    with pytest.raises(LabError, match=f'{path}: two columns are named "a"; rename one'):
        reading.read(path)


def test_frames_in_memory_are_taken_as_they_are() -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    for given in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow()):
        assert reading.of_memory(given).to_dicts() == frame.to_dicts()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (pl.DataFrame({"a": [1]}).lazy().select("nowhere"), "the LazyFrame cannot be collected"),
        ([1, 2], r"builtins\.list is not a frame"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), 'two columns are named "a"'),
        (pa.table([[1], [2]], names=["a", "a"]), 'two columns are named "a"'),
    ],
    ids=["lazy", "no frame", "pandas", "pyarrow"],
)
def test_what_is_no_frame_with_columns_of_different_names_is_refused(given: Any, said: str) -> None:
    with pytest.raises(LabError, match=said):
        reading.of_memory(given)


MOMENTS = [dt.datetime(2024, 3, 31, 2, 30), None]
OLD_DAY, FIRST_DAY, LAST_DAY = dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2149, 6, 6)  # of Date in ClickHouse
FAR_DAY = dt.date(1899, 12, 31)


SOME_ID = uuid.UUID("8b3c1d2e-4f5a-4b6c-9d7e-0123456789ab")


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
@pytest.mark.parametrize(
    ("column", "logical", "values"),
    [
        (pa.array([SOME_ID.bytes, None], pa.uuid()), "uuid", [str(SOME_ID), None]),
        (  # polars panics at a zone that is an offset
            pa.array(MOMENTS, pa.timestamp("us", "+05:30")),
            "timestamp_tz",
            [dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC), None],
        ),
        *(
            (pa.array([dt.time(23, 59, 59), None], pa.time32(unit)), "time", [dt.time(23, 59, 59), None])
            for unit in ("s", "ms")
        ),
    ],
    ids=["UUIDs", "a zone that is an offset", "seconds of a day", "milliseconds of a day"],
)
def test_types_that_polars_has_not_are_read_and_the_program_reads_them_too(
    column: pa.Array, logical: str, values: list[Any], suffix: str, tmp_path: Path
) -> None:
    table = pa.table({"a": column, "n": [1, 2]})
    path = written(table, tmp_path / f"rows.{suffix}")
    own = data.from_file(path)
    assert own.logical_types == {"a": logical, "n": "int64"}
    assert own.frame["a"].to_list() == values
    for library in ("polars", "pandas"):
        assert data.from_frame(reading.of_memory(loaded(library, own, path))).frame.equals(own.frame)
    assert data.from_frame(reading.of_memory(table)).frame.equals(own.frame)


@pytest.mark.parametrize("zone", [dt.timezone(dt.timedelta(hours=5, minutes=30)), "Europe/Berlin", None])
def test_timestamps_of_pandas_are_read_whatever_their_zone(zone: Any) -> None:
    frame = pd.DataFrame({"at": pd.Series(MOMENTS).dt.tz_localize("UTC").dt.tz_convert(zone), "n": [1, 2]})
    own = data.from_frame(reading.of_memory(frame))
    assert own.frame["at"][0].replace(tzinfo=None) == MOMENTS[0]
    assert own.logical_types["at"] == ("timestamp_tz" if zone else "timestamp")


MIDNIGHT = pa.array([None, 86_400_000_000], pa.int64()).view(pa.time64("us"))
ONE = pa.array([1])


@pytest.mark.parametrize(
    ("suffix", "column", "said"),
    [
        (
            "parquet",
            pa.array([[Decimal("1")]], pa.list_(pa.decimal256(60, 2))),
            r": decimal256\(.*\) in a list: at most 38 digits fit there; cast it",
        ),
        (
            "parquet",
            pa.StructArray.from_arrays(
                [pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))], ["x"]
            ),
            ": a UUID in a struct: make it a string",
        ),
        (
            "parquet",
            pa.array([[MOMENTS[0]]], pa.list_(pa.timestamp("us", "-01:00"))),
            r": timestamp\[us, tz=-01:00\] names no time zone; cast it to UTC",
        ),
        (
            "parquet",
            pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int32())),
            ", row 0: a map has one key twice; remove one",
        ),
        (
            "arrow",
            pa.array([pa.MonthDayNano([1, 2, 3])]),
            ": a dataframe has no month_day_nano_interval; cast it to a duration or a string",
        ),
        (
            "arrow",
            pa.RunEndEncodedArray.from_arrays([1], ONE),
            ": polars cannot read run_end_encoded; decode",
        ),
        (
            "arrow",
            pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [ONE]),
            ": polars cannot read dense_union; make a column of each of its types",
        ),
        ("arrow", pa.ListViewArray.from_arrays([0], [1], ONE), ": polars cannot read list_view; cast it"),
        ("arrow", pa.StructArray.from_arrays([ONE, ONE], ["x", "x"]), ': two fields are named "x"; rename one'),
        (
            "arrow",
            pa.array([[1], None], pa.list_(pa.decimal64(16, 5))),
            r": decimal64\(.*\) in a list: cast it to 128 bits",
        ),
        ("arrow", MIDNIGHT, ": a time of day is not between 0:00 and 24:00; remove its rows"),
        ("arrow", pa.ListArray.from_arrays([0, 2], MIDNIGHT), ": a time of day is not between 0:00 and 24:00"),
        ("arrow", pa.StructArray.from_arrays([MIDNIGHT], ["x"]), ": a time of day is not between 0:00 and 24:00"),
    ],
)
def test_types_and_times_that_polars_does_not_know_or_makes_others_of_are_refused_in_a_line(
    suffix: str, column: pa.Array, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"a": column})
    with pytest.raises(LabError, match=f'^column "a"{said}'):
        data.from_file(written(table, tmp_path / f"rows.{suffix}"))
    with pytest.raises(LabError, match=f'^column "a"{said}'):
        data.from_frame(reading.of_memory(table))
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("dtype", [pl.Int128, pl.UInt128])
def test_integers_of_128_bits_are_refused_with_their_column(dtype: Any, suffix: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1], "a": pl.Series([2**100], dtype=dtype)})
    path = tmp_path / f"rows.{suffix}"
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ipc(path)
    with pytest.raises(LabError, match=f'column "a": {dtype} is wider than 64 bits; cast it to 64 bits'):
        data.from_file(path)


def test_floats_of_16_bits_become_those_of_32() -> None:
    own = data.from_frame(pl.DataFrame({"a": pl.Series([0.1, None, float("-inf"), 65504.0], dtype=pl.Float16)}))
    assert own.logical_types == {"a": "float32"}
    assert own.frame["a"].to_list() == [0.0999755859375, None, float("-inf"), 65504.0]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, "x"], r'column "a": no type of Arrow holds all these values \(Could not convert'),
        ([2**70, 1], r'column "a": no type of Arrow holds all these values \(Python int too large'),
        (
            ["\ud800"],
            r'column "a": no type of Arrow holds all these values \(.*surrogates not allowed',
        ),
        (
            [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)],
            'column "a": dates and timestamps are mixed; make all of them timestamps',
        ),
        ([b"a", "b"], 'column "a": bytes and strings are mixed; make all of them strings'),
        (
            pd.period_range("2020", periods=2, freq="M"),
            'column "a": a database has no periods; make it a timestamp',
        ),
    ],
)
def test_objects_of_pandas_that_would_be_others_are_refused_with_their_column(values: Any, said: str) -> None:
    frame = pd.DataFrame({"id": range(len(values)), "a": pd.Series(values, dtype=getattr(values, "dtype", object))})
    with pytest.raises(LabError, match=said):
        reading.of_memory(frame)


def test_objects_of_pandas_are_what_they_are() -> None:
    columns = {"id": [SOME_ID, None], "price": [Decimal("1" * 45 + ".5"), None], "at": [dt.time(1, 2), None]}
    own = data.from_frame(reading.of_memory(pd.DataFrame(columns, dtype=object)))
    assert own.logical_types == {"id": "uuid", "price": "decimal(46, 1)", "at": "time"}
    assert own.frame.to_dicts()[0] == {"id": str(SOME_ID), "price": "1" * 45 + ".5", "at": dt.time(1, 2)}


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_large_integers_that_are_objects_of_pandas_are_uint64(missing: Any) -> None:
    values = pd.Series([5, missing, 2**64 - 1], dtype=object, index=[1, 1, 1])
    found = reading.of_memory(pd.DataFrame({"a": values}))["a"]
    assert (found.dtype, found.to_list()) == (pl.UInt64, [5, None, 2**64 - 1])


@pytest.mark.parametrize(
    ("system", "values", "said"),
    [
        (
            "clickhouse",
            pl.Series([dt.timedelta(hours=1)]),
            r'column "a": ClickHouse has no type for duration \(Time64 ends at 999:59:59\); make it a number',
        ),
        (
            "postgres",
            pl.Series([None, 2_000, 1], dtype=pl.Datetime("ns")),
            r'column "a", row 2: Postgres has no type for timestamp_ns \(its timestamps count microseconds\); round',
        ),
        (
            "clickhouse",
            pl.Series([FAR_DAY]),
            'column "a", row 0: ClickHouse holds dates from 1900-01-01 to 2299-12-31',
        ),
        (
            "clickhouse",
            pl.Series([{"x": [OLD_DAY]}, {"x": [LAST_DAY, FAR_DAY]}]),
            'column "a", row 1: ClickHouse holds dates from 1900-01-01 to 2299-12-31',
        ),
        (
            "clickhouse",
            pl.Series([1, None, -(2**61) + 1], dtype=pl.Datetime("ns", "UTC")),
            'column "a", row 2: ClickHouse holds dates from 1900-01-01 to 2299-12-31',
        ),
        (
            "clickhouse",
            pl.Series([[[1], []], [], [[1], None]]),
            'column "a", row 2: an Array of ClickHouse cannot be null, nor a list, a struct or a map in it; make',
        ),
        ("clickhouse", pl.Series([[1], None]), 'column "a", row 1: an Array of ClickHouse cannot be null'),
        ("clickhouse", pl.Series([{"x": [1]}, None]), 'column "a", row 1: a Tuple of ClickHouse cannot be null'),
        (
            "clickhouse",
            pl.Series([{"x": [1]}, {"x": None}]),
            'column "a", row 1: a Tuple of ClickHouse cannot be null, nor a list',
        ),
        (
            "clickhouse",
            pl.Series([[{"x": 1}], [{"x": 2}, None]]),
            'column "a", row 1: an Array of ClickHouse cannot be null',
        ),
        (
            "postgres",
            pl.Series([{"x": 1}]),
            r'column "a": .* no type for nested\(\{"x": "int64"\}\) \(the table would need .* string of JSON',
        ),
        (
            "postgres",
            pl.Series([[[1]], None, [[1], [2, 3]]]),
            'column "a", row 2: an array of Postgres cannot hold lists of other lengths',
        ),
        (
            "postgres",
            pl.Series([[], [[], []]]),
            'column "a", row 1: an array of Postgres cannot hold lists of other lengths, or empty ones',
        ),
        (
            "postgres",
            pl.Series([[[[1]], [[2], [3]]]]),
            'column "a", row 0: an array of Postgres cannot hold lists of other lengths',
        ),
        (
            "postgres",
            pl.Series([[[1]], [[1], None]]),
            'column "a", row 1: an array of Postgres cannot hold a list that is null',
        ),
        ("postgres", pl.Series([[[[[[[[1]]]]]]]]), 'column "a": an array of Postgres has at most 6 dimensions'),
        (
            "postgres",
            pl.Series([{"a": 1}], dtype=pl.Map(pl.String, pl.Int8)),
            r"Postgres has no type for map\(.*\(hstore",
        ),
        ("postgres", pl.Series([["a", None], ["b\0"]]), r'"a", row 1: text of Postgres has no U\+0000'),
        (
            "clickhouse",
            pl.Series([{"a": 1}, None], dtype=pl.Map(pl.String, pl.Int8)),
            "row 1: a Map of ClickHouse cannot",
        ),
        (
            "clickhouse",
            pl.Series([{}, {"a": None}], dtype=pl.Map(pl.String, pl.List(pl.Int8))),
            "row 1: a Map of ClickHouse cannot be null, nor a list",
        ),
    ],
)
def test_what_one_database_has_no_type_for_is_refused_with_what_to_do(
    system: str, values: pl.Series, said: str
) -> None:
    own = data.from_frame(values.to_frame("a"))
    with pytest.raises(LabError, match=said):
        SYSTEMS[system].tables.definition(own.specification, "keyed")


def test_lists_of_lists_are_arrays_of_as_many_levels() -> None:
    values = {"pairs": [[[1, 2], [3, None]], []], "cubes": [[[["x"]]], [[["y"]]]], "fixed": [[[1, 2]], [[3, 4]]]}
    frame = pl.DataFrame(values).with_columns(pl.col("fixed").cast(pl.Array(pl.Array(pl.Int64, 2), 1)))
    own = data.from_frame(frame)
    assert own.logical_types == {
        "pairs": "array(array(int64))",
        "cubes": "array(array(array(text)))",
        "fixed": "array(array(int64))",
    }
    assert {name: own.frame[name].to_list() for name in values} == values
    made = {name: str(system.tables.definition(own.specification, "keyed")) for name, system in SYSTEMS.items()}
    assert '"pairs" bigint[][] NOT NULL, "cubes" text[][][] NOT NULL' in made["postgres"]
    assert "`pairs` Array(Array(Nullable(Int64))), `cubes` Array(Array(Array(Nullable(String))))" in made["clickhouse"]


def test_structs_are_tuples_of_their_fields_and_keep_their_names_to_themselves() -> None:
    values = [{"x": 1, 'a "b"': [{"in": None}, {"in": "é\n"}]}, {"x": None, 'a "b"': []}]
    own = data.from_frame(pl.DataFrame({"a": values}))
    assert own.frame["a"].to_list() == values
    made = str(SYSTEMS["clickhouse"].tables.definition(own.specification, "keyed"))
    assert '`a` Tuple(`x` Nullable(Int64), `a "b"` Array(Tuple(`in` Nullable(String))))' in made
    hidden = own.without_names()
    assert hidden.logical_types == {
        "column_1": 'nested({"field_1": "int64", "field_2": "array(nested({\\"field_1\\": \\"text\\"}))"})'
    }
    assert hidden.frame["column_1"].to_list() == [
        {"field_1": 1, "field_2": [{"field_1": None}, {"field_1": "é\n"}]},
        {"field_1": None, "field_2": []},
    ]
    assert 'a "b"' not in repr(hidden) + repr(hidden.specification)
    again = hidden.with_names()
    assert (again.logical_types, again.frame["a"].to_list()) == (own.logical_types, values)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([FIRST_DAY, LAST_DAY], "`a` Date)"),
        ([OLD_DAY], "`a` Date32)"),
        ([[LAST_DAY], []], "`a` Array(Nullable(Date)))"),
        ([[[LAST_DAY], [None, OLD_DAY]]], "`a` Array(Array(Nullable(Date32))))"),
        ([{"x": [OLD_DAY], "y": 1}], "`a` Tuple(`x` Array(Nullable(Date32)), `y` Nullable(Int64)))"),
    ],
)
def test_days_at_any_depth_are_of_the_type_that_holds_them(values: list[Any], column: str) -> None:
    own = data.from_frame(pl.DataFrame({"a": values}))
    assert column in str(SYSTEMS["clickhouse"].tables.definition(own.specification, "keyed"))


def test_a_refusal_is_one_line_whatever_the_name_of_a_column(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a\nb": [dt.time(1)]}).with_columns(pl.all().cast(pl.Int64).add(1).cast(pl.Time))
    frame.write_parquet(tmp_path / "a.parquet")
    for refused in (lambda: data.from_frame(frame), lambda: data.from_file(tmp_path / "a.parquet")):
        with pytest.raises(LabError, match=r'^column "a\\nb", row 0: a time of day with nanoseconds'):
            refused()
    with pytest.raises(LabError, match=r'^column "a\\nb": a dataframe has no month_day'):
        reading.of_memory(pa.table({"a\nb": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}))


def test_a_column_whose_name_is_a_pattern_is_a_column(tmp_path: Path) -> None:
    frame = pl.DataFrame({"*": [1, 2], "a": ["x", "y"]})
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        assert data.from_file(tmp_path / name, key=("*",)).frame.equals(frame)
    (tmp_path / "b.csv").write_text("^a$,b\n1,2\n")
    with pytest.raises(LabError, match=r'polars takes the name of column "\^a\$" for a pattern; rename it'):
        data.from_file(tmp_path / "b.csv")
    for frame in (pl.DataFrame({"^$": ["x"]}), pl.DataFrame({"^$": ["x"]}).to_pandas()):
        with pytest.raises(LabError, match=r'polars takes the name of column "\^\$" for a pattern; rename it'):
            data.from_memory(frame)


def test_fields_of_structs_whose_names_are_patterns_are_fields() -> None:
    values = [{"*": 1, "^a$": [2]}, None, {"*": None, "^a$": None}]
    own = data.from_frame(pl.DataFrame({"s": values}))
    assert own.frame["s"].to_list() == values
    assert own.specification.columns[0].rows["null"] == 1


def test_a_file_that_a_reader_cannot_decode_is_refused_in_one_line(tmp_path: Path) -> None:
    """pyarrow 26 writes this file, and cannot read it: "array slice would exceed array length"."""
    path = tmp_path / "a.parquet"
    of = pa.list_(pa.list_(pa.struct([("a", pa.bool_()), ("b", pa.int8())])), 2)
    column = pa.array([None] * 7 + [[None, [None]]], of)
    parquet.write_table(pa.table({"a": column}), path, row_group_size=1, data_page_size=1)
    with pytest.raises(LabError, match="cannot be read as parquet: ") as refused:
        reading.read(path)
    assert "\n" not in str(refused.value)
