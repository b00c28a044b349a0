"""Two parallel writers of one table that have the same keys: one gets all its rows in, the other none, in bounded time.

Each writer commits when all its connections are done. If each had a connection that waits for a row of the other,
Postgres would see no circle, and both would wait for ever.
"""

import multiprocessing
import queue
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations_with_replacement
from typing import Any

import polars as pl
import psycopg
import pytest

from harness.registry import connect_of, one
from tests.transports.tuned_calls import hurried

TABLE, ROWS, ROUNDS, BOUND_SECONDS = "two_writers", 100_000, 4, 60
WAYS = (
    "postgres.psycopg.write_polars_tuned",
    "postgres.psycopg.write_polars_copy_csv_parallel",
    "postgres.pgpq.write_polars_copy_binary_sorted_parallel",
)


@pytest.fixture
def server(embedded_lab) -> Iterator[psycopg.Connection]:
    with psycopg.connect(embedded_lab.endpoints["postgres"], autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
        connection.execute(f"CREATE TABLE {TABLE} (id uuid PRIMARY KEY, writer integer)")
        yield connection
        connection.execute("SET lock_timeout = '10s'")
        connection.execute(f"DROP TABLE {TABLE}")


def rows_of(writer: int) -> pl.DataFrame:
    """The same random keys for every writer, the second in another order, and the writer's number."""
    ids = [str(uuid.UUID(int=(n * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)) for n in range(ROWS)]
    frame = pl.DataFrame({"id": ids, "writer": pl.Series([writer] * ROWS, dtype=pl.Int32)})
    return frame.reverse() if writer else frame


def write_whenever_told(uri: str, way: str, writer: int, start: Any, outcomes: Any) -> None:
    """Write the same rows once a round, and say each time how it went."""
    entry, frame = one(way), rows_of(writer)
    with connect_of(entry)(uri) as connection:
        while True:
            start.wait()
            try:
                entry.function(connection, frame, TABLE)
                outcomes.put((writer, "wrote"))
            except psycopg.Error as error:
                is_unique = isinstance(error, psycopg.errors.UniqueViolation)  # or arrow-wire's subclass of it
                outcomes.put((writer, "UniqueViolation" if is_unique else type(error).__name__))


@contextmanager
def two_writers(uri: str, ways: tuple[str, str]) -> Iterator[tuple[Any, Any]]:
    """Start a process for each transport; yield the barrier that starts a round, and the queue of outcomes."""
    spawn = multiprocessing.get_context("spawn")
    start, outcomes = spawn.Barrier(3, timeout=BOUND_SECONDS), spawn.Queue()
    writers = [
        spawn.Process(target=write_whenever_told, args=(uri, way, number, start, outcomes), daemon=True)
        for number, way in enumerate(ways)
    ]
    for process in writers:
        process.start()
    try:
        yield start, outcomes
    finally:
        for process in writers:
            process.kill()
            process.join()


def outcomes_of_a_round(start: Any, outcomes: Any) -> dict[str, int]:
    """Let both write at the same time; return the writer of each outcome. Fail if a writer is not done in time."""
    start.wait()
    deadline, found = time.monotonic() + BOUND_SECONDS, {}
    try:
        while len(found) < 2:
            writer, outcome = outcomes.get(timeout=max(deadline - time.monotonic(), 0))
            found[outcome] = writer
    except queue.Empty:
        pytest.fail(f"writers were still waiting after {BOUND_SECONDS} s; done: {found}")
    return found


@pytest.mark.parametrize("ways", [*combinations_with_replacement(WAYS, 2)], ids="-".join)
@pytest.mark.long
def test_of_two_writers_with_the_same_keys_one_writes_all_and_the_other_none(
    ways: tuple[str, str], embedded_lab, server: psycopg.Connection
) -> None:
    with two_writers(embedded_lab.endpoints["postgres"], ways) as (start, outcomes):
        for _ in range(ROUNDS if ways[0] == ways[1] == WAYS[0] else 2):
            found = outcomes_of_a_round(start, outcomes)
            assert set(found) == {"wrote", "UniqueViolation"}
            written = server.execute(f"SELECT writer, count(*) FROM {TABLE} GROUP BY writer").fetchall()
            assert written == [(found["wrote"], ROWS)]
            server.execute(f"TRUNCATE {TABLE}")


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_a_row_that_another_transaction_holds_is_waited_for_only_so_long(
    way: str, embedded_lab, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, uri, frame = one(way), embedded_lab.endpoints["postgres"], rows_of(0)
    hurried(monkeypatch, entry)
    with connect_of(entry)(uri) as connection:
        with psycopg.connect(uri) as other:
            other.execute(f"INSERT INTO {TABLE} VALUES (%s, 2)", [frame["id"][-1]])
            with pytest.raises(psycopg.errors.LockNotAvailable):
                entry.function(connection, frame, TABLE)
            other.rollback()
        assert server.execute(f"SELECT count(*) FROM {TABLE}").fetchone() == (0,)
        entry.function(connection, frame, TABLE)
        assert server.execute(f"SELECT count(*) FROM {TABLE}").fetchone() == (ROWS,)
