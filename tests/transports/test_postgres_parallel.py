"""Rules of the Postgres transports over several connections: all rows or none, and one snapshot of the table."""

import inspect
import threading

import polars as pl
import psycopg
import pytest

from harness.check.canonical import canonicalise
from harness.model import Operation, Transport
from harness.registry import connect_of, one, select
from harness.transports.postgres.pgpq import parallel as pgpq
from harness.transports.postgres.psycopg import parallel as psycopg_parallel
from tests.calls import run
from tests.hostile_table import LOGICAL_TYPES, ROWS, TABLE, fill, for_pandas, hostile, stored, write_more, wrong
from tests.transports.tuned_calls import hurried

PARALLEL = [entry for entry in select("postgres.*") if entry.function.__module__.endswith(".parallel")]
WRITES = [entry for entry in PARALLEL if entry.operation is Operation.WRITE]
# The first of each module; connectorx opens its connections itself.
CONNECTED = {entry.client: entry for entry in reversed(PARALLEL) if entry.client != "connectorx"}
# Those whose line in the catalogue says so; connectorx starts its queries itself, see below.
UNDER_ONE_SNAPSHOT = [
    entry
    for entry in PARALLEL
    if entry.operation is Operation.READ and entry.frame == "polars" and "under one exported snapshot" in entry.summary
]
DIVIDED_HERE = [entry for entry in UNDER_ONE_SNAPSHOT if hasattr(inspect.getmodule(entry.function), "_queries")]
CONSISTENT = [*UNDER_ONE_SNAPSHOT, one("postgres.duckdb.read_polars_scan_small_tasks")]  # DuckDB has a snapshot itself


@pytest.mark.long
@pytest.mark.parametrize("client", CONNECTED)
@pytest.mark.parametrize(("cores", "connections"), [(1, 2), (3, 3), (64, 8)])
async def test_there_are_as_many_connections_as_cores_but_at_least_two_and_at_most_eight(
    client: str, cores: int, connections: int, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)), raising=False)
    connect = connect_of(CONNECTED[client])
    if inspect.isasyncgenfunction(inspect.unwrap(connect)):
        async with connect(uri) as opened:
            assert len(opened) == connections
    else:
        with connect(uri) as opened:
            assert len(opened) == connections


@pytest.mark.parametrize("entry", WRITES, ids=lambda entry: entry.id)
def test_an_error_in_one_slice_leaves_no_row_of_the_others(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    server.execute(f'ALTER TABLE "{TABLE}" ADD CHECK ("number of" <> 4711)')
    last = pl.Series([4711 if row == ROWS - 1 else row for row in range(ROWS)], dtype=pl.Int32)
    frame = hostile().with_columns(last.alias("number of"))
    with pytest.raises(psycopg.errors.CheckViolation):
        run(entry, uri, frame if entry.frame == "polars" else for_pandas(frame), TABLE)
    assert len(stored(server)) == 0


@pytest.mark.parametrize("module", [psycopg_parallel, pgpq])
def test_slices_with_the_same_key_fail_instead_of_waiting_for_each_other_for_ever(
    module: object, uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT", "100ms")
    server.execute(f'ALTER TABLE "{TABLE}" ADD UNIQUE ("select")')  # no primary key: so the order stays
    frame = pl.concat([hostile(10), hostile(10)])
    writes = [entry for entry in WRITES if inspect.getmodule(entry.function) is module and entry.frame == "polars"]
    for entry in writes:
        with pytest.raises((psycopg.errors.UniqueViolation, psycopg.errors.LockNotAvailable)):
            run(entry, uri, frame, TABLE)
        assert len(stored(server)) == 0


@pytest.mark.parametrize("entry", DIVIDED_HERE, ids=lambda entry: entry.id)
def test_what_is_written_after_the_snapshot_is_in_no_part(
    entry: Transport, uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server, hostile())
    module = inspect.getmodule(entry.function)
    divide = module._queries  # the first statement under the snapshot
    monkeypatch.setattr(module, "_queries", lambda *given: (write_more(server), divide(*given))[1])
    found, _ = canonicalise(run(entry, uri, TABLE), LOGICAL_TYPES)
    assert wrong(hostile(), found) == []
    assert len(stored(server)) == 2 * ROWS


def test_connectorx_starts_all_its_queries_under_the_exported_snapshot(
    uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    import connectorx

    fill(server, hostile())
    read = connectorx.read_sql
    monkeypatch.setattr(connectorx, "read_sql", lambda *given, **more: (write_more(server), read(*given, **more))[1])
    found = run(one("postgres.connectorx.read_polars_ctid_snapshot"), uri, TABLE)
    assert wrong(hostile(), found) == []
    assert len(stored(server)) == 2 * ROWS


@pytest.mark.long
@pytest.mark.parametrize("entry", CONSISTENT, ids=lambda entry: entry.id)
def test_a_parallel_read_sees_one_state_of_a_table_that_is_written_to(
    entry: Transport, uri: str, server: psycopg.Connection
) -> None:
    fill(server, hostile(8_000).with_columns(pl.lit(0, pl.Int32).alias("number of")))
    server.execute(f'ALTER TABLE "{TABLE}" SET (autovacuum_enabled = false)')
    server.execute(f'ANALYZE "{TABLE}"')  # DuckDB divides by the number of pages that the catalogue knows
    done = threading.Event()

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


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "asyncpg.read_polars_copy_csv_parallel",
        "adbc.read_polars_ctid_snapshot",
        "connectorx.read_polars_ctid_snapshot",
        "psycopg.read_polars_tuned",
    ],
)
def test_a_read_over_several_connections_waits_for_a_lock_only_so_long(
    name: str, uri: str, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server, hostile())
    entry = one(f"postgres.{name}")
    hurried(monkeypatch, entry)
    with psycopg.connect(uri) as other:
        other.execute(f'LOCK TABLE "{TABLE}"')
        with pytest.raises(Exception, match="lock timeout"):
            run(entry, uri, TABLE)
    assert len(run(entry, uri, TABLE)) == ROWS
