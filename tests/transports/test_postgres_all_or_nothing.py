"""A tuned write over several connections leaves all rows or none, whatever ends it, and no prepared transaction."""

from collections.abc import Callable, Iterator

import polars as pl
import psycopg
import pytest

from harness.transports.postgres.psycopg import tuned, tuned_write

ROWS = 60_000  # enough for a slice on every connection
FRAME = pl.DataFrame({"number": pl.Series(range(ROWS), dtype=pl.Int32), "text": [f"{n:>60}" for n in range(ROWS)]})


@pytest.fixture
def server(uri: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("CREATE TABLE together (number integer PRIMARY KEY, text text)")
        yield connection
        tuned.settle(connection)
        connection.execute("DROP TABLE together")


@pytest.fixture
def writers(uri: str) -> Iterator[list[psycopg.Connection]]:
    with tuned_write.connect(uri) as connections:
        yield connections


def left(server: psycopg.Connection) -> tuple[int, int]:
    """Return how many rows and how many prepared transactions there are."""
    (rows,) = server.execute("SELECT count(*) FROM together").fetchone()
    (prepared,) = server.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone()
    return rows, prepared


def write(writers: list[psycopg.Connection]) -> None:
    tuned_write.write_polars_tuned(writers, FRAME, "together")


def test_rows_of_all_connections_are_there_and_nothing_is_prepared(server, writers):
    write(writers)
    assert left(server) == (ROWS, 0)


def test_one_connection_writes_where_the_server_prepares_no_transaction(monkeypatch, server, writers):
    monkeypatch.setattr(tuned_write, "most_together", lambda _: 1)
    write(writers)
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


def test_an_interruption_when_all_are_prepared_leaves_nothing(monkeypatch, server, writers):
    def interrupt() -> None:
        raise KeyboardInterrupt

    after(monkeypatch, tuned, "_prepare", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(writers)
    assert left(server) == (0, 0)
    monkeypatch.undo()
    write(writers)
    assert left(server) == (ROWS, 0)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("when", ["_send", "_plan"])
def test_a_connection_that_the_server_ends_takes_all_rows_with_it(which, when, monkeypatch, server, writers):
    pid = writers[which].info.backend_pid
    after(monkeypatch, tuned_write, when, lambda: server.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]))
    with pytest.raises(psycopg.OperationalError):
        write(writers)
    assert left(server) == (0, 0)


def test_a_first_connection_that_ends_when_all_are_prepared_leaves_nothing(monkeypatch, server, writers):
    pid = writers[0].info.backend_pid
    after(monkeypatch, tuned, "_prepare", lambda: server.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]))
    with pytest.raises(psycopg.OperationalError):
        write(writers)
    assert left(server) == (0, 0)


@pytest.mark.parametrize(("end", "rows"), [("COMMIT", 2), ("ROLLBACK", 0)])
def test_what_a_dead_writer_left_prepared_ends_as_its_first_transaction_did(end, rows, uri, server):
    with psycopg.connect(uri, autocommit=True) as first, psycopg.connect(uri, autocommit=True) as second:
        first.execute("BEGIN; INSERT INTO together VALUES (1)")
        (number,) = first.execute("SELECT pg_current_xact_id()::text").fetchone()
        second.execute(f"BEGIN; INSERT INTO together VALUES (2); PREPARE TRANSACTION '{tuned.PREFIX} {number} 1'")
        tuned.settle(server)
        assert left(server) == (0, 1), "its writer is still at it"
        first.execute(end)
    tuned.settle(server)
    assert left(server) == (rows, 0)


def test_prepared_transactions_of_others_stay(uri, server):
    with psycopg.connect(uri, autocommit=True) as other:
        other.execute("BEGIN; INSERT INTO together VALUES (1); PREPARE TRANSACTION 'somebody''s 1 1'")
    tuned.settle(server)
    assert left(server) == (0, 1)
    server.execute("ROLLBACK PREPARED 'somebody''s 1 1'")


def test_a_duplicate_in_any_slice_leaves_nothing(server, writers):
    for number in (1, ROWS // 2, ROWS - 1):
        frame = pl.concat([FRAME, FRAME.filter(pl.col("number") == number)])
        with pytest.raises(psycopg.errors.UniqueViolation):
            tuned_write.write_polars_tuned(writers, frame, "together")
        assert left(server) == (0, 0)


def test_a_load_gathers_batches_into_pieces_and_sends_each_over_all_connections(tmp_path, monkeypatch, server, writers):
    sent = []
    FRAME.write_parquet(tmp_path / "rows.parquet")
    send = tuned_write._send

    def noted(copy, encoder, order, row, end):
        sent.append((copy.connection, end - row))
        send(copy, encoder, order, row, end)

    monkeypatch.setattr(tuned_write, "_send", noted)
    tuned_write.load_tuned(writers, tmp_path / "rows.parquet", "together")
    assert {connection for connection, _ in sent} == {*writers}
    assert len(sent) == len(writers)  # one piece of the batches of 16,384 rows that a file is read by
    assert sum(rows for _, rows in sent) == ROWS
    assert left(server) == (ROWS, 0)
