"""Own data of types that only some databases have: their types, and refusals."""

import datetime as dt
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.datasets.user_data import data, reading
from harness.model import LabError
from harness.systems import SYSTEMS


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


def test_days_in_lists_and_structs_are_of_the_type_that_holds_them_or_refused_with_their_row() -> None:
    def made(*values: object) -> str:
        own = data.from_frame(pl.DataFrame({"a": values}))
        return str(SYSTEMS["clickhouse"].tables.definition(own.specification, "keyed"))

    usual, old, far = dt.date(2149, 6, 6), dt.date(1969, 12, 31), dt.date(1899, 12, 31)
    assert "`a` Array(Nullable(Date)))" in made([usual], [])
    assert "`a` Array(Array(Nullable(Date32))))" in made([[usual], [None, old]], [])
    assert "`a` Tuple(`x` Array(Nullable(Date32)), `y` Nullable(Int64)))" in made({"x": [old], "y": 1})
    with pytest.raises(LabError, match='column "a", row 1: ClickHouse holds dates from 1900-01-01 to 2299-12-31'):
        made({"x": [old]}, {"x": [usual, far]})


def test_a_refusal_is_one_line_whatever_the_name_of_a_column(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a\nb": [dt.time(1)]}).with_columns(pl.all().cast(pl.Int64).add(1).cast(pl.Time))
    frame.write_parquet(tmp_path / "a.parquet")
    for refused in (lambda: data.from_frame(frame), lambda: data.from_file(tmp_path / "a.parquet")):
        with pytest.raises(LabError, match=r'^column "a\\nb", row 0: a time of day with nanoseconds'):
            refused()
    with pytest.raises(LabError, match=r'^column "a\\nb": a dataframe has no month_day'):
        reading.of_memory(pa.table({"a\nb": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}))


def test_decimals_of_which_polars_makes_other_numbers_are_refused() -> None:
    values = pa.array([[1], None], pa.list_(pa.decimal64(16, 5)))
    with pytest.raises(LabError, match=r'column "a": decimal64\(.*\) in a list: cast it to 128 bits'):
        reading.of_memory(pa.table({"a": values}))


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
