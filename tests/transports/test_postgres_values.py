"""The Postgres transports beyond the published ones, on a real server and hostile rows, value by value."""

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
from harness.transports.postgres.psycopg import copy_csv as psycopg_csv
from tests.calls import called, each
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
from tests.waiting import until

OURS = [entry for entry in select("postgres.*") if entry.origin is Origin.BEYOND and not entry.needs]
WRITES = [entry for entry in OURS if entry.operation is Operation.WRITE]
READS = [entry for entry in OURS if entry.operation is Operation.READ]
LOST_HERE = {"backslash_n", "negative_zero", "null_words"}  # kinds that some are declared to change
# asyncpg encodes the dates of these from Python objects, and takes the first and the last date for infinite ones.
OF_DATE_OBJECTS = (
    "postgres.asyncpg.write_polars_executemany",
    "postgres.asyncpg.write_pandas_executemany",
    "postgres.asyncpg.write_polars_copy_binary_sorted",
)


def rows_for(entry: Transport) -> pl.DataFrame:
    return without_extreme_dates(hostile()) if entry.id in OF_DATE_OBJECTS else hostile()


def given(entry: Transport, frame: pl.DataFrame) -> pl.DataFrame | pd.DataFrame:
    return frame if entry.frame == "polars" else for_pandas(frame)


def kept(entry: Transport, frame: pl.DataFrame) -> pl.DataFrame:
    """Return what a transport keeps of these rows: pandas has NaN for a null, and some lose NaN or empty strings."""
    if entry.frame == "pandas" or "nan" in entry.lossy:
        frame = missing_floats_as(frame, None if "nan" in entry.lossy else float("nan"))
    return frame.with_columns(pl.col("text, mostly").replace("", None)) if "empty_text" in entry.lossy else frame


@pytest.mark.long
@each(entry for entry in WRITES if not LOST_HERE & entry.lossy.keys())
def test_a_write_keeps_every_value_that_it_does_not_declare_to_lose_and_others_see_it_at_once(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    frame = rows_for(entry)
    seen = called(entry, uri, given(entry, frame), TABLE, then=lambda _: stored(server))
    assert wrong(kept(entry, frame), seen) == []


@pytest.mark.parametrize("name", OF_DATE_OBJECTS)
def test_asyncpg_stores_the_first_and_the_last_date_of_python_as_infinite(
    name: str, uri: str, server: psycopg.Connection
) -> None:
    frame = hostile(2).with_columns(pl.Series("Day", [date.min, date.max]))
    frame = frame.with_columns(pl.lit(1, pl.Int32).alias("number of"), pl.lit("x").alias("text, mostly"))
    called(one(name), uri, frame if "polars" in name else for_pandas(frame), TABLE)
    days = server.execute(f'SELECT "Day"::text FROM "{TABLE}" ORDER BY "Day"').fetchall()
    assert days == [("-infinity",), ("infinity",)]


@pytest.mark.long
@each(entry for entry in READS if not LOST_HERE & entry.lossy.keys())
def test_a_read_keeps_every_value_that_it_does_not_declare_to_lose(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    fill(server, hostile())
    if "partition_on" in entry.id:
        server.execute(f'ALTER TABLE "{TABLE}" ADD serial int GENERATED ALWAYS AS IDENTITY')
    found, _ = canonicalise(called(entry, uri, TABLE)[list(COLUMNS)], LOGICAL_TYPES)
    assert wrong(kept(entry, hostile()), kept(entry, found)) == []  # of pandas a null may be one, too


@pytest.mark.long
@each([*WRITES, *READS])
def test_no_rows_nulls_only_and_columns_in_another_order_are_no_error(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    if entry.operation is Operation.READ:
        server.execute(f'ALTER TABLE "{TABLE}" ALTER "number of" SET NOT NULL')
        returned = called(entry, uri, TABLE)
        assert (list(returned.columns), len(returned)) == (list(COLUMNS), 0)
        return
    nulls = hostile(2).with_columns(pl.lit(None, hostile(0)[name].dtype).alias(name) for name in [*COLUMNS][1:])
    for frame in (hostile(0), nulls, hostile(9)[7:].select(reversed(COLUMNS))):
        server.execute(f'TRUNCATE "{TABLE}"')
        called(entry, uri, given(entry, frame), TABLE)
        assert wrong(kept(entry, frame.select([*COLUMNS])), stored(server)) == []


@pytest.mark.long
@each(READS)
def test_a_read_leaves_no_transaction_open(entry: Transport, uri: str, server: psycopg.Connection) -> None:
    server.execute(f'ALTER TABLE "{TABLE}" ALTER "number of" SET NOT NULL')
    held = "SELECT count(*) FROM pg_locks WHERE relation = %s::regclass AND pid <> pg_backend_pid()"
    # A client that has closed its own connection does not wait for the server.
    free = lambda: server.execute(held, [f'"{TABLE}"']).fetchone() == (0,)  # noqa: E731
    called(entry, uri, TABLE, then=lambda _: until(free))


@each(entry for entry in WRITES if "sorted" in entry.id)
def test_a_sorted_write_stores_the_rows_in_the_order_of_the_key(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    server.execute(f'ALTER TABLE "{TABLE}" ADD PRIMARY KEY ("number of", "select")')
    frame = rows_for(entry)
    frame = frame.with_columns(pl.int_range(len(frame), dtype=pl.Int32).mod(5).alias("number of"))
    called(entry, uri, given(entry, frame), TABLE)
    found = stored(server).select("number of", "select")
    slices = 2 if "parallel" in entry.id else 1  # they are in the table in any order, block by block
    descents = sum(later < earlier for earlier, later in zip(found.rows(), found.rows()[1:], strict=False))
    assert found.n_unique() == len(frame)
    assert descents < slices * 2


def test_without_a_key_the_order_stays(uri: str, server: psycopg.Connection) -> None:
    called(one("postgres.pgpq.write_polars_copy_binary_sorted"), uri, hostile(), TABLE)
    assert stored(server)["select"].to_list() == hostile()["select"].to_list()


def test_connectorx_divides_no_table_without_an_integer_column_that_is_not_null(
    uri: str, server: psycopg.Connection
) -> None:
    with pytest.raises(Unsupported, match="no integer column"):
        called(one("postgres.connectorx.read_polars_partition_on"), uri, TABLE)


def test_a_uuid_text_becomes_its_16_bytes_and_a_missing_one_stays_missing() -> None:
    strings = pa.chunked_array([["ffffffff-ffff-ffff-ffff-fffffffffff1"], [None, str(uuid.UUID(int=7))]])
    values = [uuid.UUID("ffffffff-ffff-ffff-ffff-fffffffffff1").bytes, None, uuid.UUID(int=7).bytes]
    assert uuid_bytes(strings).to_pylist() == values
    assert uuid_bytes(strings.slice(1)).to_pylist() == values[1:]
    assert uuid_bytes(strings.slice(3)).to_pylist() == []


@pytest.mark.parametrize("text", ["", "no uuid", "0" * 31, "0" * 33, "0" * 31 + " ", "g" * 32])
def test_a_malformed_uuid_is_refused_also_where_its_neighbour_makes_up_for_its_length(text: str) -> None:
    neighbour = "0" * (64 - len(text))
    with pytest.raises(ValueError, match="hexadecimal"):
        uuid_bytes(pa.chunked_array([[text, neighbour]]))


@each(entry for entry in WRITES if entry.frame == "pandas" and entry.client == "pgpq")
def test_pgpq_refuses_a_time_of_day_where_the_table_has_a_date(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    frame = for_pandas(hostile(3))
    frame["Day"] = pd.Series(pd.Timestamp("2025-03-01 12:00"), index=frame.index).astype("datetime64[us]")
    with pytest.raises(ValueError, match='"Day" is a date in the table'):
        called(entry, uri, frame, TABLE)
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
        called(one(f"postgres.{name}"), uri, hostile(), TABLE)
        assert wrong(hostile(), stored(server)) == []
    assert wrong(hostile(), called(one("postgres.asyncpg.read_polars_copy_binary"), uri, TABLE)) == []


@pytest.mark.parametrize(
    ("size", "value", "name"),
    [
        ("SLICE_ROWS", 4, "write_polars_copy_csv_slices"),
        ("SLICE_ROWS", 4, "write_pandas_copy_csv_slices"),
        ("BLOCK_BYTES", 7, "write_polars_copy_csv_blocks"),
    ],
)
def test_slices_and_blocks_that_do_not_divide_the_rows_are_all_sent(
    size: str, value: int, name: str, uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psycopg_csv, size, value)
    entry, frame = one(f"postgres.psycopg.{name}"), hostile(39)
    called(entry, uri, given(entry, frame), TABLE)
    assert wrong(kept(entry, frame), stored(server)) == []


@pytest.mark.parametrize(
    ("strings", "mark"), [(["a"], r"\N"), ([r"\N"], r"\NN"), ([r"\NN", None, r"\N"], r"\NNN"), ([r"a\N"], r"\N")]
)
def test_the_mark_of_what_is_missing_is_no_text_of_the_frame(strings: list[str | None], mark: str) -> None:
    _, found = psycopg_csv._writable(pd.DataFrame({"a": pd.Series(strings, dtype="str"), "b": 1}))
    assert found == mark


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
