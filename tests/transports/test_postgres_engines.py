"""Rules of the Postgres transports of other engines: on a real server and hostile rows, value by value."""

import uuid
from datetime import date

import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest

from harness.check.canonical import canonicalise
from harness.model import Operation, Origin, Transport
from harness.registry import Unsupported, one, select
from harness.transports.postgres.asyncpg import copy_binary, copy_csv
from harness.transports.postgres.binary_copy import uuid_bytes
from harness.transports.postgres.pgpq import copy_binary as pgpq
from tests.calls import run
from tests.hostile_table import (
    COLUMNS,
    LOGICAL_TYPES,
    ROWS,
    TABLE,
    fill,
    for_pandas,
    hostile,
    missing_floats_as,
    stored,
    without_extreme_dates,
    wrong,
)

OURS = [
    entry
    for entry in select("postgres.*")
    if entry.origin is Origin.BEYOND
    and (entry.client in ("pgpq", "connectorx", "duckdb", "asyncpg") or entry.function.__module__.endswith(".parallel"))
]
WRITES = [entry for entry in OURS if entry.operation is Operation.WRITE]
READS = [entry for entry in OURS if entry.operation is Operation.READ]
# asyncpg encodes the dates of these from Python objects, and takes the first and the last date for infinite ones.
OF_DATE_OBJECTS = (
    "postgres.asyncpg.write_polars_executemany",
    "postgres.asyncpg.write_pandas_executemany",
    "postgres.asyncpg.write_polars_copy_binary_sorted",
)


@pytest.mark.long
@pytest.mark.parametrize("entry", [one for one in WRITES if one.frame == "polars"], ids=lambda entry: entry.id)
def test_a_write_from_polars_loses_no_hostile_value(entry: Transport, uri: str, server: psycopg.Connection) -> None:
    frame = without_extreme_dates(hostile()) if entry.id in OF_DATE_OBJECTS else hostile()
    run(entry, uri, frame, TABLE)
    assert wrong(frame, stored(server)) == []


@pytest.mark.long
@pytest.mark.parametrize("entry", [one for one in WRITES if one.frame == "pandas"], ids=lambda entry: entry.id)
def test_a_write_from_pandas_loses_at_most_the_nan_among_floats(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    frame = without_extreme_dates(hostile()) if entry.id in OF_DATE_OBJECTS else hostile()
    run(entry, uri, for_pandas(frame), TABLE)
    keeps_nan = entry.client == "asyncpg"
    assert wrong(missing_floats_as(frame, float("nan") if keeps_nan else None), stored(server)) == []


@pytest.mark.parametrize("name", OF_DATE_OBJECTS)
def test_asyncpg_stores_the_first_and_the_last_date_of_python_as_infinite(
    name: str, uri: str, server: psycopg.Connection
) -> None:
    frame = hostile(2).with_columns(pl.Series("Day", [date.min, date.max]))
    frame = frame.with_columns(pl.lit(1, pl.Int32).alias("number of"), pl.lit("x").alias("text, mostly"))
    run(one(name), uri, frame if "polars" in name else for_pandas(frame), TABLE)
    days = server.execute(f'SELECT "Day"::text FROM "{TABLE}" ORDER BY "Day"').fetchall()
    assert days == [("-infinity",), ("infinity",)]


@pytest.mark.long
@pytest.mark.parametrize("entry", READS, ids=lambda entry: entry.id)
def test_a_read_loses_no_hostile_value_but_what_its_docstring_says(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    fill(server, hostile())
    if "partition_on" in entry.id:
        server.execute(f'ALTER TABLE "{TABLE}" ADD serial int GENERATED ALWAYS AS IDENTITY')
    returned = run(entry, uri, TABLE)
    if "partition_on" in entry.id:
        returned = returned.drop("serial" if entry.frame == "polars" else ["serial"], **_axis(entry))
    found, _ = canonicalise(returned, LOGICAL_TYPES)
    expected = hostile() if entry.frame == "polars" else missing_floats_as(hostile(), float("nan"))
    if entry.id.endswith("connectorx.read_polars_csv") or entry.id.endswith("connectorx.read_pandas_csv"):
        expected = expected.with_columns(pl.col("text, mostly").replace("", None))
    assert wrong(expected, found) == []


def _axis(entry: Transport) -> dict[str, str]:
    return {"axis": "columns"} if entry.frame == "pandas" else {}


@pytest.mark.long
@pytest.mark.parametrize("entry", [*WRITES, *READS], ids=lambda entry: entry.id)
def test_an_empty_table_and_an_empty_frame_are_no_error(entry: Transport, uri: str, server: psycopg.Connection) -> None:
    server.execute(f'ALTER TABLE "{TABLE}" ALTER "number of" SET NOT NULL')
    if entry.operation is Operation.WRITE:
        run(entry, uri, hostile(0) if entry.frame == "polars" else for_pandas(hostile(0)), TABLE)
        assert len(stored(server)) == 0
    else:
        returned = run(entry, uri, TABLE)
        assert list(returned.columns) == list(COLUMNS)
        assert len(returned) == 0


@pytest.mark.parametrize("entry", [one for one in WRITES if "sorted" in one.id], ids=lambda entry: entry.id)
def test_a_sorted_write_stores_the_rows_in_the_order_of_the_key(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    server.execute(f'ALTER TABLE "{TABLE}" ADD PRIMARY KEY ("number of", "select")')
    frame = without_extreme_dates(hostile()) if entry.id in OF_DATE_OBJECTS else hostile()
    frame = frame.with_columns(pl.int_range(len(frame), dtype=pl.Int32).mod(5).alias("number of"))
    run(entry, uri, frame if entry.frame == "polars" else for_pandas(frame), TABLE)
    found = stored(server).select("number of", "select")
    slices = 2 if "parallel" in entry.id else 1  # they are in the table in any order, block by block
    descents = sum(later < earlier for earlier, later in zip(found.rows(), found.rows()[1:], strict=False))
    assert found.n_unique() == len(frame)
    assert descents < slices * 2


def test_without_a_key_the_order_stays(uri: str, server: psycopg.Connection) -> None:
    run(one("postgres.pgpq.write_polars_copy_binary_sorted"), uri, hostile(), TABLE)
    assert stored(server)["select"].to_list() == hostile()["select"].to_list()


def test_connectorx_divides_no_table_without_an_integer_column_that_is_not_null(
    uri: str, server: psycopg.Connection
) -> None:
    with pytest.raises(Unsupported, match="no integer column"):
        run(one("postgres.connectorx.read_polars_partition_on"), uri, TABLE)


def test_a_uuid_text_becomes_its_16_bytes_and_a_missing_one_stays_missing() -> None:
    texts = pa.chunked_array([["ffffffff-ffff-ffff-ffff-fffffffffff1"], [None, str(uuid.UUID(int=7))]])
    values = [uuid.UUID("ffffffff-ffff-ffff-ffff-fffffffffff1").bytes, None, uuid.UUID(int=7).bytes]
    assert uuid_bytes(texts).to_pylist() == values
    assert uuid_bytes(texts.slice(1)).to_pylist() == values[1:]
    assert uuid_bytes(texts.slice(3)).to_pylist() == []


@pytest.mark.parametrize("text", ["", "no uuid", "0" * 31, "0" * 33, "0" * 31 + " ", "g" * 32])
def test_a_malformed_uuid_is_refused_also_where_its_neighbour_makes_up_for_its_length(text: str) -> None:
    neighbour = "0" * (64 - len(text))
    with pytest.raises(ValueError, match="hexadecimal"):
        uuid_bytes(pa.chunked_array([[text, neighbour]]))


@pytest.mark.parametrize(
    "entry", [one for one in WRITES if one.frame == "pandas" and one.client == "pgpq"], ids=lambda entry: entry.id
)
def test_pgpq_refuses_a_time_of_day_where_the_table_has_a_date(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    frame = for_pandas(hostile(3))
    frame["Day"] = pd.Series(pd.Timestamp("2025-03-01 12:00"), index=frame.index).astype("datetime64[us]")
    with pytest.raises(ValueError, match='"Day" is a date in the table'):
        run(entry, uri, frame, TABLE)
    assert len(stored(server)) == 0


@pytest.mark.long
@pytest.mark.parametrize("block", [1, 7, ROWS, ROWS - 1])
def test_blocks_of_any_size_are_the_whole_frame(
    block: int, uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (copy_csv, copy_binary, pgpq):
        monkeypatch.setattr(module, "BLOCK_ROWS", block)
    for name in ("asyncpg.write_polars_copy_csv_streamed", "pgpq.write_polars_copy_binary"):
        server.execute(f'TRUNCATE "{TABLE}"')
        run(one(f"postgres.{name}"), uri, hostile(), TABLE)
        assert wrong(hostile(), stored(server)) == []
    assert wrong(hostile(), run(one("postgres.asyncpg.read_polars_copy_binary"), uri, TABLE)) == []


def payload_of(server: psycopg.Connection, query: str) -> bytes:
    with server.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
        return b"".join(bytes(block) for block in copy)


@pytest.mark.long
def test_a_binary_copy_that_is_cut_off_anywhere_is_refused(server: psycopg.Connection) -> None:
    payload = payload_of(server, "SELECT 1, 'text' UNION ALL SELECT NULL, NULL")
    types = {"number": "int4", "text": "text"}
    assert copy_binary._decode(payload, types).to_pylist() == [
        {"number": 1, "text": "text"},
        {"number": None, "text": None},
    ]
    for length in range(len(payload)):
        with pytest.raises(ValueError, match=r"cut off|header"):
            copy_binary._decode(payload[:length], types)


@pytest.mark.parametrize("types", [{"a": "int4"}, {"a": "int8", "b": "text"}, {"a": "uuid", "b": "text"}])
def test_a_binary_copy_of_other_columns_than_expected_is_refused(
    types: dict[str, str], server: psycopg.Connection
) -> None:
    with pytest.raises(ValueError, match=r"too few or too many values|not as long as one of"):
        copy_binary._decode(payload_of(server, "SELECT 1, 'text'"), types)


def test_the_binary_decoder_knows_timestamps_and_truth_values(server: psycopg.Connection) -> None:
    query = (
        "SELECT '1969-12-31 23:59:59.000001'::timestamp, '0001-01-01 00:00+00'::timestamptz, true "
        "UNION ALL SELECT NULL, NULL, NULL UNION ALL SELECT '2025-01-01', '2025-01-01 12:00+02', false"
    )
    decoded = copy_binary._decode(payload_of(server, query), {"a": "timestamp", "b": "timestamptz", "c": "bool"})
    assert [[str(value) for value in row.values()] for row in decoded.to_pylist()] == [
        ["1969-12-31 23:59:59.000001", "0001-01-01 00:00:00+00:00", "True"],
        ["None", "None", "None"],
        ["2025-01-01 00:00:00", "2025-01-01 10:00:00+00:00", "False"],
    ]


def test_what_the_binary_decoder_does_not_know_is_unsupported(server: psycopg.Connection) -> None:
    with pytest.raises(Unsupported, match='"a" has the type numeric'):
        copy_binary._decode(payload_of(server, "SELECT 1::numeric"), {"a": "numeric"})
    with pytest.raises(Unsupported, match="infinite"):
        copy_binary._decode(payload_of(server, "SELECT 'infinity'::date"), {"a": "date"})
