"""What holds for the Postgres transports of other engines and of several connections: on a real server, value by value.

The table is a hostile one: names that need quotes, nulls beside empty texts, texts that look like markers, extreme
numbers and dates.
"""

import asyncio
import inspect
import threading
import uuid
from collections.abc import Iterator
from datetime import date

import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest

from harness.canonical import canonicalise
from harness.embedded.lab import EmbeddedLab
from harness.model import Operation, Transport
from harness.registry import Unsupported, connect_of, one, select
from harness.systems import postgres
from harness.transports.postgres import asyncpg_binary, asyncpg_copy, pgpq, pgpq_parallel
from harness.transports.postgres import psycopg_parallel as psycopg_threads
from harness.verify import differences

OURS = select(
    "postgres.pgpq*,postgres.connectorx*,postgres.duckdb_*,postgres.asyncpg_*,postgres.adbc_parallel.*,"
    "postgres.psycopg_parallel.*"
)
WRITES = [entry for entry in OURS if entry.operation is Operation.WRITE]
READS = [entry for entry in OURS if entry.operation is Operation.READ]
PARALLEL = ("pgpq_parallel", "psycopg_parallel", "asyncpg_parallel", "adbc_parallel")
CONSISTENT = (
    "postgres.asyncpg_parallel.read_polars_copy_csv",
    "postgres.adbc_parallel.read_polars_ctid_snapshot",
    "postgres.connectorx_parallel.read_polars_ctid_snapshot",
    "postgres.duckdb_postgres.read_polars_scan_small_tasks",
)
# What asyncpg encodes from Python dates, of which it takes the first and the last for infinite ones.
OF_DATE_OBJECTS = (
    "postgres.asyncpg_copy.write_polars_executemany",
    "postgres.asyncpg_copy.write_pandas_executemany",
    "postgres.asyncpg_sorted.write_polars_copy_binary",
)
TABLE = "Hostile rows"
COLUMNS = {
    "select": ("uuid", "uuid"),
    "Day": ("date", "date"),
    "number of": ("integer", "int32"),
    "text, mostly": ("text", "text"),
    "größe": ("double precision", "float64"),
}
KINDS = {name: kind for name, (_, kind) in COLUMNS.items()}
TEXTS = [None, "", r"\N", "NULL", "NaN", 'say "x"', "a,b", "l\nm", "l\r\nm", "\r", r"\.", "\t", " x ", "'", "é😀", "\\"]
FLOATS = [None, float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 5e-324, 1e-310, 1.7976931348623157e308, 0.1]
DATES = [None, date(1, 1, 1), date(1969, 12, 31), date(2000, 1, 1), date(9999, 12, 31)]
NUMBERS = [None, 0, -1, 2**31 - 1, -(2**31)]
ROWS = 400


@pytest.fixture
def uri(embedded_lab: EmbeddedLab) -> str:
    """The URI of the lab's schema."""
    connection = postgres.open_connection(embedded_lab.endpoints)
    postgres.ensure_namespace(connection)
    connection.close()
    return postgres.transport_uri("postgres", embedded_lab.endpoints["postgres"])


@pytest.fixture
def server(uri: str) -> Iterator[psycopg.Connection]:
    """A connection beside those of the transports, with the hostile table, empty and without a key."""
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f'CREATE TABLE "{TABLE}" ({columns})')
        yield connection
        connection.execute(f'DROP TABLE "{TABLE}"')


def hostile(rows: int = ROWS) -> pl.DataFrame:
    """The hostile rows, each with a uuid of its own, not in its order."""
    keys = [str(uuid.UUID(int=(number * 7_919) % 100_003 << 96)) for number in range(rows)]
    values = (keys, DATES, NUMBERS, TEXTS, FLOATS)
    dtypes = (pl.String, pl.Date, pl.Int32, pl.String, pl.Float64)
    return pl.DataFrame(
        {
            name: pl.Series([some[row % len(some)] for row in range(rows)], dtype=dtype)
            for name, some, dtype in zip(COLUMNS, values, dtypes, strict=True)
        }
    )


def for_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """The same rows as pandas has them: integers with NA, and NaN where a float is null."""
    key, day, number, text, size = (frame[name].to_list() for name in COLUMNS)
    series = (
        pd.Series(key, dtype="str"),
        pd.Series(day, dtype="object").astype("datetime64[us]"),
        pd.Series(number, dtype="Int32"),
        pd.Series(text, dtype="str"),
        pd.Series(size, dtype="float64"),
    )
    return pd.DataFrame(dict(zip(COLUMNS, series, strict=True)))


def run(entry: Transport, uri: str, *arguments: object) -> object:
    """Call a transport once, over connections of its own."""

    async def call() -> object:
        async with connect_of(entry)(uri) as connection:
            return await entry.function(connection, *arguments)

    if entry.style == "async":
        return asyncio.run(call())
    with connect_of(entry)(uri) as connection:
        return entry.function(connection, *arguments)


def stored(server: psycopg.Connection) -> pl.DataFrame:
    """What the table holds, through a client that none of these transports reads with."""
    names = ", ".join(f'"{name}"' + ("::text" if kind == "uuid" else "") for name, kind in KINDS.items())
    rows = server.execute(f'SELECT {names} FROM "{TABLE}"', binary=True).fetchall()
    return pl.DataFrame(rows, schema=hostile(0).schema, orient="row")


def fill(server: psycopg.Connection, frame: pl.DataFrame) -> None:
    with server.cursor().copy(f'COPY "{TABLE}" FROM STDIN') as copy:
        for row in frame.iter_rows():
            copy.write_row(row)


def wrong(expected: pl.DataFrame, found: pl.DataFrame) -> list[str]:
    return differences(expected.sort("select"), found, ("select",))


def write_more(server: psycopg.Connection) -> None:
    """Change every row of the table, and add as many."""
    server.execute(f'UPDATE "{TABLE}" SET "number of" = 1')
    server.execute(f'INSERT INTO "{TABLE}" SELECT * FROM "{TABLE}"')


def without_extreme_dates(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(~pl.col("Day").is_in([date.min, date.max]).fill_null(False))


def missing_floats_as(frame: pl.DataFrame, value: float | None) -> pl.DataFrame:
    """The frame with nulls and NaN of its float column both as one of them."""
    column = pl.col("größe")
    return frame.with_columns(column.fill_nan(None) if value is None else column.fill_null(value))


@pytest.mark.parametrize("entry", [one for one in WRITES if one.frame == "polars"], ids=lambda entry: entry.id)
def test_a_write_from_polars_loses_no_hostile_value(entry: Transport, uri: str, server: psycopg.Connection) -> None:
    frame = without_extreme_dates(hostile()) if entry.id in OF_DATE_OBJECTS else hostile()
    run(entry, uri, frame, TABLE)
    assert wrong(frame, stored(server)) == []


@pytest.mark.parametrize("entry", [one for one in WRITES if one.frame == "pandas"], ids=lambda entry: entry.id)
def test_a_write_from_pandas_loses_at_most_the_nan_among_floats(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    frame = hostile()
    if entry.id in OF_DATE_OBJECTS:  # executemany, which takes no missing value of pandas either
        frame = without_extreme_dates(hostile().drop_nulls())
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
    found, _ = canonicalise(returned, KINDS)
    expected = hostile() if entry.frame == "polars" else missing_floats_as(hostile(), float("nan"))
    if entry.id.endswith("connectorx.read_polars_csv") or entry.id.endswith("connectorx.read_pandas_csv"):
        expected = expected.with_columns(pl.col("text, mostly").replace("", None))
    assert wrong(expected, found) == []


def _axis(entry: Transport) -> dict[str, str]:
    return {"axis": "columns"} if entry.frame == "pandas" else {}


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
    slices = 2 if "parallel" in entry.id else 1  # which lie in the table in any order, block by block
    descents = sum(later < earlier for earlier, later in zip(found.rows(), found.rows()[1:], strict=False))
    assert found.n_unique() == len(frame)
    assert descents < slices * 2


def test_without_a_key_the_order_stays(uri: str, server: psycopg.Connection) -> None:
    run(one("postgres.pgpq.write_polars_copy_binary_sorted"), uri, hostile(), TABLE)
    assert stored(server)["select"].to_list() == hostile()["select"].to_list()


@pytest.mark.parametrize("name", PARALLEL)
@pytest.mark.parametrize(("cores", "connections"), [(1, 2), (3, 3), (64, 8)])
async def test_there_are_as_many_connections_as_cores_but_at_least_two_and_at_most_eight(
    name: str, cores: int, connections: int, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)), raising=False)
    connect = connect_of(select(f"postgres.{name}.*")[0])
    if inspect.isasyncgenfunction(inspect.unwrap(connect)):
        async with connect(uri) as opened:
            assert len(opened) == connections
    else:
        with connect(uri) as opened:
            assert len(opened) == connections


@pytest.mark.parametrize("entry", [one for one in WRITES if "parallel" in one.id], ids=lambda entry: entry.id)
def test_an_error_in_one_slice_leaves_no_row_of_the_others(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    server.execute(f'ALTER TABLE "{TABLE}" ADD CHECK ("number of" <> 4711)')
    last = pl.Series([4711 if row == ROWS - 1 else row for row in range(ROWS)], dtype=pl.Int32)
    frame = hostile().with_columns(last.alias("number of"))
    with pytest.raises(psycopg.errors.CheckViolation):
        run(entry, uri, frame if entry.frame == "polars" else for_pandas(frame), TABLE)
    assert len(stored(server)) == 0


@pytest.mark.parametrize("module", [psycopg_threads, pgpq_parallel])
def test_slices_with_the_same_key_fail_instead_of_waiting_for_each_other_for_ever(
    module: object, uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT", "100ms")
    server.execute(f'ALTER TABLE "{TABLE}" ADD UNIQUE ("select")')  # no primary key: so the order stays
    frame = pl.concat([hostile(10), hostile(10)])
    name = module.__name__.rpartition(".")[2]
    writes = [entry for entry in WRITES if f".{name}." in entry.id and entry.frame == "polars"]
    for entry in writes:
        with pytest.raises((psycopg.errors.UniqueViolation, psycopg.errors.LockNotAvailable)):
            run(entry, uri, frame, TABLE)
        assert len(stored(server)) == 0


@pytest.mark.parametrize("name", ["asyncpg_parallel.read_polars_copy_csv", "adbc_parallel.read_polars_ctid_snapshot"])
def test_what_is_written_after_the_snapshot_is_in_no_part(
    name: str, uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server, hostile())
    entry = one(f"postgres.{name}")
    module = inspect.getmodule(entry.function)
    divide = module._queries  # the first that is done under the snapshot
    monkeypatch.setattr(module, "_queries", lambda *given: (write_more(server), divide(*given))[1])
    found, _ = canonicalise(run(entry, uri, TABLE), KINDS)
    assert wrong(hostile(), found) == []
    assert len(stored(server)) == 2 * ROWS


def test_connectorx_starts_all_its_queries_under_the_exported_snapshot(
    uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    import connectorx

    fill(server, hostile())
    read = connectorx.read_sql
    monkeypatch.setattr(connectorx, "read_sql", lambda *given, **more: (write_more(server), read(*given, **more))[1])
    found = run(one("postgres.connectorx_parallel.read_polars_ctid_snapshot"), uri, TABLE)
    assert wrong(hostile(), found) == []
    assert len(stored(server)) == 2 * ROWS


@pytest.mark.parametrize("name", CONSISTENT)
def test_a_parallel_read_sees_one_moment_of_a_table_that_is_written_to(
    name: str, uri: str, server: psycopg.Connection
) -> None:
    fill(server, hostile(8_000).with_columns(pl.lit(0, pl.Int32).alias("number of")))
    server.execute(f'ALTER TABLE "{TABLE}" SET (autovacuum_enabled = false)')
    server.execute(f'ANALYZE "{TABLE}"')  # DuckDB divides by the number of pages that the catalogue knows
    entry, done = one(name), threading.Event()

    def keep_writing() -> None:
        with psycopg.connect(uri, autocommit=True) as connection:
            while not done.is_set():
                connection.execute(f'UPDATE "{TABLE}" SET "number of" = "number of" + 1')

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        seen = [run(entry, uri, TABLE)["number of"] for _ in range(6)]
    finally:
        done.set()
        writer.join()
    assert {(len(numbers), numbers.n_unique()) for numbers in seen} == {(8_000, 1)}
    assert len({numbers[0] for numbers in seen}) > 1  # there was something to see


def test_connectorx_divides_no_table_without_an_integer_column_that_is_not_null(
    uri: str, server: psycopg.Connection
) -> None:
    with pytest.raises(Unsupported, match="no integer column"):
        run(one("postgres.connectorx_parallel.read_polars_partition_on"), uri, TABLE)


def test_a_uuid_text_becomes_its_16_bytes_and_a_missing_one_stays_missing() -> None:
    texts = pa.chunked_array([["ffffffff-ffff-ffff-ffff-fffffffffff1"], [None, str(uuid.UUID(int=7))]])
    values = [uuid.UUID("ffffffff-ffff-ffff-ffff-fffffffffff1").bytes, None, uuid.UUID(int=7).bytes]
    assert pgpq._uuid_bytes(texts).to_pylist() == values
    assert pgpq._uuid_bytes(texts.slice(1)).to_pylist() == values[1:]
    assert pgpq._uuid_bytes(texts.slice(3)).to_pylist() == []


@pytest.mark.parametrize("text", ["", "no uuid", "0" * 31, "0" * 33, "0" * 31 + " ", "g" * 32])
def test_a_malformed_uuid_is_refused_also_where_its_neighbour_makes_up_for_its_length(text: str) -> None:
    neighbour = "0" * (64 - len(text))
    with pytest.raises(ValueError, match="hexadecimal"):
        pgpq._uuid_bytes(pa.chunked_array([[text, neighbour]]))


@pytest.mark.parametrize("name", ["pgpq.write_pandas_copy_binary", "pgpq_parallel.write_pandas_copy_binary_sorted"])
def test_pgpq_refuses_a_time_of_day_where_the_table_has_a_date(name: str, uri: str, server: psycopg.Connection) -> None:
    frame = for_pandas(hostile(3))
    frame["Day"] = pd.Series(pd.Timestamp("2025-03-01 12:00"), index=frame.index).astype("datetime64[us]")
    with pytest.raises(ValueError, match='"Day" is a date in the table'):
        run(one(f"postgres.{name}"), uri, frame, TABLE)
    assert len(stored(server)) == 0


@pytest.mark.parametrize("block", [1, 7, ROWS, ROWS - 1])
def test_blocks_of_any_size_are_the_whole_frame(
    block: int, uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (asyncpg_copy, asyncpg_binary, pgpq):
        monkeypatch.setattr(module, "BLOCK_ROWS", block)
    for name in ("asyncpg_copy.write_polars_copy_csv_streamed", "pgpq.write_polars_copy_binary"):
        server.execute(f'TRUNCATE "{TABLE}"')
        run(one(f"postgres.{name}"), uri, hostile(), TABLE)
        assert wrong(hostile(), stored(server)) == []
    assert wrong(hostile(), run(one("postgres.asyncpg_binary.read_polars_copy_binary"), uri, TABLE)) == []


def payload_of(server: psycopg.Connection, query: str) -> bytes:
    with server.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
        return b"".join(bytes(block) for block in copy)


def test_a_binary_copy_that_is_cut_off_anywhere_is_refused(server: psycopg.Connection) -> None:
    payload = payload_of(server, "SELECT 1, 'text' UNION ALL SELECT NULL, NULL")
    types = {"number": "int4", "text": "text"}
    assert asyncpg_binary._decode(payload, types).to_pylist() == [
        {"number": 1, "text": "text"},
        {"number": None, "text": None},
    ]
    for length in range(len(payload)):
        with pytest.raises(ValueError, match=r"cut off|header"):
            asyncpg_binary._decode(payload[:length], types)


@pytest.mark.parametrize("types", [{"a": "int4"}, {"a": "int8", "b": "text"}, {"a": "uuid", "b": "text"}])
def test_a_binary_copy_of_other_columns_than_expected_is_refused(
    types: dict[str, str], server: psycopg.Connection
) -> None:
    with pytest.raises(ValueError, match="expected"):
        asyncpg_binary._decode(payload_of(server, "SELECT 1, 'text'"), types)


def test_what_the_binary_decoder_does_not_know_is_unsupported(server: psycopg.Connection) -> None:
    with pytest.raises(Unsupported, match='"a" has the type numeric'):
        asyncpg_binary._decode(payload_of(server, "SELECT 1::numeric"), {"a": "numeric"})
    with pytest.raises(Unsupported, match="infinite"):
        asyncpg_binary._decode(payload_of(server, "SELECT 'infinity'::date"), {"a": "date"})
