"""A tuned write over several connections leaves all rows or none, whatever ends it, and no prepared transaction."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest
from arrow_wire import postgres_transactions, postgres_write

from harness.transports.postgres.psycopg import tuned
from harness.transports.postgres.tables import TURN
from tests.transports.tuned_calls import WRITES, frame_of, writing
from tests.waiting import until

ROWS, SLICE_ROWS = 6_000, 2_000  # enough for three connections
Write = Callable[..., None]


FRAME = frame_of(ROWS)


@pytest.fixture(autouse=True)
def _few_rows_are_worth_a_connection() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_write, "SLICE_ROWS", SLICE_ROWS)
        yield


@pytest.fixture
def server(uri: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("CREATE TABLE together (number integer PRIMARY KEY, text text)")
        # A write to a table with a page uses several connections: test_postgres_index_afterwards.py has the other case.
        connection.execute("INSERT INTO together VALUES (1, '')")
        connection.execute("DELETE FROM together")
        yield connection
        postgres_transactions.settle(connection)
        connection.execute("DROP TABLE together")


@pytest.fixture(params=WRITES)
def write(request: pytest.FixtureRequest, writers: list[psycopg.Connection], tmp_path: Path) -> Write:
    """Each of the tuned writes, of a polars frame."""
    call = writing(request.param, tuned, writers, "together", tmp_path)
    return lambda frame=FRAME: call(frame)


def left(server: psycopg.Connection) -> tuple[int, int]:
    """Return how many rows there are, and how many prepared transactions of this table, which have no process."""
    (rows,) = server.execute("SELECT count(*) FROM together").fetchone()
    (prepared,) = server.execute(
        "SELECT count(DISTINCT virtualtransaction) FROM pg_locks WHERE relation = 'together'::regclass AND pid IS NULL"
    ).fetchone()
    return rows, prepared


def test_one_connection_writes_where_the_server_prepares_no_transaction(monkeypatch, server, writers):
    monkeypatch.setattr(postgres_write, "most_together", lambda _: 1)
    tuned.write_polars_tuned(writers, FRAME, "together")
    assert left(server) == (ROWS, 0)
    assert [one.info.transaction_status.name for one in writers] == ["IDLE"] * len(writers)


def after(monkeypatch: pytest.MonkeyPatch, module: object, name: str, then: Callable[[], object]) -> None:
    """Have something happen after each call of a function."""
    function = getattr(module, name)

    def called(*given: object) -> object:
        made = function(*given)
        then()
        return made

    monkeypatch.setattr(module, name, called)


def test_an_interruption_when_all_are_prepared_leaves_nothing(monkeypatch, server, write):
    def interrupt() -> None:
        raise KeyboardInterrupt

    after(monkeypatch, postgres_transactions, "_prepare", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write()
    assert left(server) == (0, 0)
    monkeypatch.undo()
    write()
    assert left(server) == (ROWS, 0)


def test_few_rows_end_what_a_writer_left_over_new_connections_or_after_an_error(server, uri):
    def leave(number: int) -> None:
        server.execute("BEGIN")
        (first,) = server.execute("SELECT pg_current_xact_id()::text").fetchone()
        server.execute("ROLLBACK")
        with psycopg.connect(uri, autocommit=True) as other:
            other.execute(f"BEGIN; INSERT INTO together VALUES ({number}); PREPARE TRANSACTION 'arrow-wire {first} 1'")

    with tuned.connect(uri) as connections:
        tuned.write_polars_tuned(connections, FRAME[0], "together")
        leave(-1)
        tuned.write_polars_tuned(connections, FRAME[1], "together")
        assert left(server) == (2, 1)
        with pytest.raises(psycopg.errors.UniqueViolation):
            tuned.write_polars_tuned(connections, FRAME[1], "together")
        tuned.write_polars_tuned(connections, FRAME[2], "together")
        assert left(server) == (3, 0)
        leave(-1)
    with tuned.connect(uri) as connections:
        tuned.write_polars_tuned(connections, FRAME[3], "together")
    assert left(server) == (4, 0)


@pytest.mark.long
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("when", ["_send", "_plan"])
def test_a_connection_that_the_server_ends_takes_all_rows_with_it(which, when, monkeypatch, server, writers, write):
    pid = writers[which].info.backend_pid
    after(monkeypatch, postgres_write, when, lambda: server.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]))
    with pytest.raises(psycopg.OperationalError, match="connection"):
        write()
    assert left(server) == (0, 0)


def test_a_first_connection_that_ends_when_all_are_prepared_leaves_nothing(monkeypatch, server, writers, write):
    pid = writers[0].info.backend_pid
    end = "SELECT pg_terminate_backend(%s, 5000)"
    after(monkeypatch, postgres_transactions, "_prepare", lambda: server.execute(end, [pid]))
    with pytest.raises(psycopg.OperationalError):
        write()
    assert left(server) == (0, 0)


@contextmanager
def in_the_way(monkeypatch: pytest.MonkeyPatch, uri: str, server: psycopg.Connection, number: int, wants: str):
    """Another session locks the row of this number, and waits for the lock `wants` as soon as our sessions have it."""
    waiting: list[Future[Any]] = []
    with psycopg.connect(uri) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SET deadlock_timeout = '1h'")  # so the server finds and ends our session
        other.execute("INSERT INTO together VALUES (%s)", [number])

        def wait() -> None:
            waiting.append(pool.submit(other.execute, wants))
            asked = "SELECT FROM pg_locks WHERE pid = %s AND NOT granted"
            until(lambda: server.execute(asked, [other.info.backend_pid]).fetchall())

        after(monkeypatch, postgres_write, "_slices", wait)
        yield
        for one in waiting:
            one.result(timeout=30)
        other.rollback()
    monkeypatch.undo()
    assert waiting, "expected another session to wait, found that it was never told to"


@pytest.mark.parametrize("number", [0, ROWS - 1], ids=["first connection", "last connection"])
def test_a_deadlock_of_any_connection_takes_all_rows_with_it(number, monkeypatch, uri, server, writers, write):
    """One waits for the other session's row, and that one for a lock on the table: the server ends ours."""
    for connection in writers:
        connection.execute("SET deadlock_timeout = '20ms'")
    with in_the_way(monkeypatch, uri, server, number, "LOCK TABLE together IN SHARE MODE"):
        with pytest.raises(psycopg.errors.DeadlockDetected, match="deadlock detected") as raised:
            write()
        assert left(server) == (0, 0)
    used = writers[: ROWS // SLICE_ROWS]
    ended = used[0 if number == 0 else -1].info.backend_pid
    assert f"blocked by process {ended}." in raised.value.diag.message_detail
    write()
    assert left(server) == (ROWS, 0)


def test_a_circle_that_the_server_does_not_see_ends_as_well(monkeypatch, uri, server, write):
    """The last connection waits for the other session's row, and that one for a lock of the first connection."""
    monkeypatch.setattr(postgres_write, "LOCK_TIMEOUT", "50ms")
    wants = f"SELECT pg_advisory_xact_lock({TURN} | 'together'::regclass::oid::bigint)"
    with in_the_way(monkeypatch, uri, server, ROWS - 1, wants):
        with pytest.raises(psycopg.errors.LockNotAvailable, match="due to lock timeout"):
            write()
        assert left(server) == (0, 0)
    write()
    assert left(server) == (ROWS, 0)


@pytest.mark.parametrize(("end", "rows"), [("COMMIT", 2), ("ROLLBACK", 0)])
def test_what_a_dead_writer_left_prepared_ends_as_its_first_transaction_did(end, rows, uri, server):
    with psycopg.connect(uri, autocommit=True) as first, psycopg.connect(uri, autocommit=True) as second:
        first.execute("BEGIN; INSERT INTO together VALUES (1)")
        (number,) = first.execute("SELECT pg_current_xact_id()::text").fetchone()
        name = f"{postgres_transactions.PREFIX} {number} 1"
        second.execute(f"BEGIN; INSERT INTO together VALUES (2); PREPARE TRANSACTION '{name}'")
        postgres_transactions.settle(server)
        assert left(server) == (0, 1), "its writer is still at it"
        first.execute(end)
    postgres_transactions.settle(server)
    assert left(server) == (rows, 0)


def test_prepared_transactions_of_others_stay(uri, server):
    with psycopg.connect(uri, autocommit=True) as other:
        other.execute("BEGIN; INSERT INTO together VALUES (1); PREPARE TRANSACTION 'somebody''s 1 1'")
    postgres_transactions.settle(server)
    assert left(server) == (0, 1)
    server.execute("ROLLBACK PREPARED 'somebody''s 1 1'")


def test_a_duplicate_in_any_slice_leaves_nothing(server, write):
    for number in (1, ROWS // 2, ROWS - 1):
        with pytest.raises(psycopg.errors.UniqueViolation, match=rf"Key \(number\)=\({number}\) already exists"):
            write(pl.concat([FRAME, FRAME.filter(pl.col("number") == number)]))
        assert left(server) == (0, 0)


def test_a_load_gathers_batches_into_pieces_and_sends_each_over_all_connections(tmp_path, monkeypatch, server, writers):
    sent, rows = [], 40_000
    frame_of(rows).write_parquet(tmp_path / "rows.parquet")
    send = postgres_write._send

    def noted(copy, encoder, order, row, end, tally):
        sent.append((copy.connection, end - row))
        send(copy, encoder, order, row, end, tally)

    monkeypatch.setattr(postgres_write, "_send", noted)
    tuned.load_tuned(writers, tmp_path / "rows.parquet", "together")
    assert {connection for connection, _ in sent} == {*writers}
    assert len(sent) == len(writers)  # one piece of the batches of 16,384 rows that a file is read by
    assert sum(size for _, size in sent) == rows
    assert left(server) == (rows, 0)
