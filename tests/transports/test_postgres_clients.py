"""Transports of ADBC, SQLAlchemy and psycopg beyond the published ones, on a real Postgres with hostile values."""

import datetime as dt
import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import psycopg
import pytest

from harness.lab.embedded import EmbeddedLab
from harness.model import Operation, Origin, Transport
from harness.registry import connect_of, one, select
from harness.transports.postgres.psycopg import copy_csv
from tests.calls import called, each
from tests.waiting import until

HAVE_THEIR_OWN_TESTS = (".parallel", ".tuned")
OURS = [
    entry
    for entry in select("postgres.adbc.*,postgres.psycopg.*,postgres.psycopg2.write_*,postgres.sqlalchemy.*")
    if entry.origin is Origin.BEYOND and not entry.function.__module__.endswith(HAVE_THEIR_OWN_TESTS)
]
# The shared kinds of hostile values here: a transport that declares none of them must preserve every value.
LOST_HERE = {"nan", "negative_zero", "empty_text", "int64_beside_null"}
WRITES = [entry for entry in OURS if entry.operation is Operation.WRITE]
READS = [entry for entry in OURS if entry.operation is Operation.READ]
TABLE = 'the "table"'
COLUMNS = {
    "id": ("integer PRIMARY KEY", pl.Int32),
    "a_uuid": ("uuid", pl.String),
    "a date": ("date", pl.Date),
    "select": ("integer", pl.Int32),
    "a_bigint": ("bigint", pl.Int64),
    'a "text"': ("text", pl.String),
    "a_float": ("double precision", pl.Float64),
}
TEXTS = [
    "",
    None,
    r"\N",
    "NULL",
    "NA",
    "null",
    "NaN",
    "a\tb",
    "a\nb",
    "a\rb",
    "a\r\nb",
    'a"b',
    '"',
    "a\\b",
    "\\",
    r"\t",
]
TEXTS += ["a,b", "\U0001f98a", " a ", r"\.", r"\\N", "007", "%s", "\x01", "\x0b\x0c\x08", "\u2028", "'", r"\NN", "{}"]
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 2.225073858507201e-308, 1.7976931348623157e308, 1 / 3, 1e23]
UUIDS = ["00000000-0000-0000-0000-000000000000", None, "ffffffff-ffff-ffff-ffff-ffffffffffff"]
DATES = [dt.date(1, 1, 1), dt.date(1969, 12, 31), None, dt.date(9999, 12, 31)]
INTEGERS, BIGINTS = [2**31 - 1, -(2**31), None, 0], [2**53 + 1, None, -(2**63), 2**63 - 1]
FRAME = pl.DataFrame(
    [
        pl.Series(name, [values[row % len(values)] for row in range(len(TEXTS) + 1)], dtype, strict=True)
        for (name, (_, dtype)), values in zip(
            COLUMNS.items(),
            [range(len(TEXTS) + 1), UUIDS, DATES, INTEGERS, BIGINTS, TEXTS, [*FLOATS, None]],
            strict=True,
        )
    ]
)


def without_loss(entries: list[Transport]) -> list[Transport]:
    return [entry for entry in entries if not LOST_HERE & set(entry.lossy)]


@pytest.fixture
def uri(embedded_lab: EmbeddedLab) -> Iterator[str]:
    """A database with the empty table, in a schema that only the search path names."""
    address = embedded_lab.endpoints["postgres"]
    columns = ", ".join(f"{quoted(name)} {definition}" for name, (definition, _) in COLUMNS.items())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA clients CREATE TABLE {quoted(TABLE)} ({columns})")
        yield f"{address}?options=-csearch_path%3Dclients"
        connection.execute("DROP SCHEMA clients CASCADE")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fill(uri: str, frame: pl.DataFrame) -> None:
    """Insert the rows with parameters: nothing is written as text by hand."""
    insert = f"INSERT INTO {quoted(TABLE)} VALUES ({', '.join(['%s'] * len(COLUMNS))})"
    with psycopg.connect(uri) as connection, connection.cursor() as cursor:
        cursor.executemany(insert, frame.rows())


def stored(uri: str) -> pl.DataFrame:
    with psycopg.connect(uri) as connection:
        rows = connection.execute(f"SELECT * FROM {quoted(TABLE)} ORDER BY id").fetchall()
    values = [
        [str(value) if name == "a_uuid" and value else value for name, value in zip(COLUMNS, row, strict=True)]
        for row in rows
    ]
    return pl.DataFrame(values, schema=FRAME.schema, orient="row")


def as_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """Return the frame with the dtypes of a careful user of pandas; a null float can only be NaN there."""
    dtypes = {pl.Int32: "Int32", pl.Int64: "Int64", pl.String: "str", pl.Date: "datetime64[us]", pl.Float64: "float64"}
    return pd.DataFrame(
        {series.name: pd.Series(series.to_list(), dtype=dtypes[type(series.dtype)]) for series in frame}
    )


def given(entry: Transport, frame: pl.DataFrame = FRAME) -> Any:
    return frame if entry.frame == "polars" else as_pandas(frame)


def plain(value: Any) -> Any:
    """Return a value as it is in FRAME: every missing value is None, but NaN stays NaN."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bytes):
        value = value.hex()
        return "-".join((value[:8], value[8:12], value[12:16], value[16:20], value[20:]))
    return value.date() if isinstance(value, dt.datetime) else value


def values_of(returned: Any, name: str, nan_is_null: bool) -> list[str]:
    """Return one column in the order of the key, each value as a string, so that -0.0 and NaN compare exactly."""
    keys, column = returned["id"].to_list(), [plain(value) for value in returned[name].to_list()]
    if name == "a_uuid":
        column = [value if value is None or value != value else str(value) for value in column]
    if nan_is_null or name != "a_float":
        column = [None if value != value else value for value in column]
    return [repr(value) for _, value in sorted(zip(keys, column, strict=True))]


def assert_same(entry: Transport, found: Any) -> None:
    pandas = entry.frame == "pandas"
    for name in COLUMNS:
        assert values_of(found, name, pandas) == values_of(FRAME, name, pandas), name


@each(without_loss(WRITES))
def test_a_write_brings_every_hostile_value_through(entry: Transport, uri: str) -> None:
    with connect_of(entry)(uri) as connection:
        entry.function(connection, given(entry), TABLE)
        assert_same(entry, stored(uri))  # while the connection is open: other sessions already see the rows


@each(without_loss(READS))
def test_a_read_brings_every_hostile_value_through(entry: Transport, uri: str) -> None:
    fill(uri, FRAME)
    assert_same(entry, called(entry, uri, TABLE))


@each(without_loss([entry for entry in WRITES if entry.frame == "pandas"]))
def test_a_nan_of_pandas_arrives_as_nan_and_not_as_null(entry: Transport, uri: str) -> None:
    called(entry, uri, given(entry), TABLE)
    assert stored(uri)["a_float"].null_count() == 0


@each([entry for entry in WRITES if "nan" in entry.lossy])
def test_a_write_that_declares_to_lose_nan_stores_null(entry: Transport, uri: str) -> None:
    called(entry, uri, given(entry, FRAME.head(3)), TABLE)
    assert stored(uri)["a_float"].to_list() == [0.0, 0.0, None]


def test_the_recipe_of_pandas_for_copy_turns_an_empty_text_into_null(uri: str) -> None:
    entry = one("postgres.sqlalchemy.write_pandas_to_sql_copy")
    called(entry, uri, given(entry, FRAME.head(3)), TABLE)
    assert stored(uri)['a "text"'].to_list() == [None, None, r"\N"]


@pytest.mark.long
@each(WRITES)
def test_a_frame_of_nulls_only_and_one_without_rows_can_be_written(entry: Transport, uri: str) -> None:
    nulls = FRAME.head(2).with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in FRAME.schema.items() if name != "id"
    )
    with connect_of(entry)(uri) as connection:
        entry.function(connection, given(entry, FRAME.head(0)), TABLE)
        assert stored(uri).is_empty()
        entry.function(connection, given(entry, nulls), TABLE)
    expected = nulls if entry.frame == "polars" else nulls.with_columns(pl.col("a_float").fill_null(math.nan))
    found = stored(uri)
    assert found.equals(nulls) or found.equals(expected)


@pytest.mark.long
@each(WRITES)
def test_columns_are_matched_by_name_whatever_their_order(entry: Transport, uri: str) -> None:
    frame = FRAME.head(2).select(reversed(FRAME.columns))
    called(entry, uri, given(entry, frame), TABLE)
    assert stored(uri)["a_bigint"].to_list() == [2**53 + 1, None]


@pytest.mark.long
@each(READS)
def test_a_table_without_rows_gives_a_frame_with_all_its_columns(entry: Transport, uri: str) -> None:
    frame = called(entry, uri, TABLE)
    assert len(frame) == 0
    assert list(frame.columns) == list(COLUMNS)


@pytest.mark.long
@each(READS)
def test_a_read_leaves_no_transaction_open(entry: Transport, uri: str) -> None:
    held = "SELECT count(*) FROM pg_locks WHERE relation = %s::regclass AND pid <> pg_backend_pid()"
    with psycopg.connect(uri, autocommit=True) as other, connect_of(entry)(uri) as connection:
        entry.function(connection, TABLE)
        # A client that has closed its own connection does not wait for the server.
        until(lambda: other.execute(held, [quoted(TABLE)]).fetchone() == (0,))


@each([entry for entry in WRITES if entry.function.__module__.endswith("psycopg.rows")])
def test_inserts_row_by_row_are_one_transaction(entry: Transport, uri: str) -> None:
    fill(uri, FRAME.slice(5, 1))
    with pytest.raises(psycopg.errors.UniqueViolation):
        called(entry, uri, given(entry), TABLE)
    assert len(stored(uri)) == 1


@pytest.mark.parametrize("frame", ["polars", "pandas"])
def test_slices_that_do_not_divide_the_rows_are_all_sent(frame: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_csv, "SLICE_ROWS", 4)
    entry = one(f"postgres.psycopg.write_{frame}_copy_csv_slices")
    called(entry, uri, given(entry), TABLE)
    assert_same(entry, stored(uri))


def test_blocks_that_do_not_divide_the_bytes_are_all_sent(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_csv, "BLOCK_BYTES", 7)
    entry = one("postgres.psycopg.write_polars_copy_csv_blocks")
    called(entry, uri, FRAME, TABLE)
    assert_same(entry, stored(uri))


@pytest.mark.parametrize(
    ("texts", "mark"), [(["a"], r"\N"), ([r"\N"], r"\NN"), ([r"\NN", None, r"\N"], r"\NNN"), ([r"a\N"], r"\N")]
)
def test_the_mark_of_what_is_missing_is_no_text_of_the_frame(texts: list[str | None], mark: str) -> None:
    _, found = copy_csv._writable(pd.DataFrame({"a": pd.Series(texts, dtype="str"), "b": 1}))
    assert found == mark
