"""The bounds of Postgres that drop answers off the socket: every row was sent, and the connection can go on."""

import psycopg
import pytest

from harness.transports.postgres import socket as bounds

ROWS = 30_000
# Rows that contain the bytes of the end of an answer, everywhere.
TABLE = f"CREATE TABLE bound AS SELECT n, '\\x5a000000055a00000005'::bytea AS ends FROM generate_series(1, {ROWS}) n"


@pytest.fixture
def connections(uri):
    with bounds.connect(uri) as opened:
        opened[0].execute(TABLE)
        yield opened
        opened[0].execute("DROP TABLE bound")


def test_every_row_is_sent_and_the_connections_serve_the_next_query(connections):
    for bound in (bounds.read_select_binary_thrown_away, bounds.read_select_binary_thrown_away_parallel):
        for _ in range(2):
            assert bound(connections, "bound") == ROWS
    assert [connection.execute("SELECT 1").fetchone() for connection in connections] == [(1,)] * len(connections)


def test_an_empty_table_sends_no_row(connections):
    connections[0].execute("TRUNCATE bound")
    assert bounds.read_select_binary_thrown_away(connections, "bound") == 0
    assert bounds.read_select_binary_thrown_away_parallel(connections, "bound") == 0


@pytest.mark.parametrize("table", ["no such table", "bound_that_fails"])
def test_an_answer_that_ends_in_an_error_is_no_bound(connections, table):
    connections[0].execute("CREATE VIEW bound_that_fails AS SELECT 1 / (n - 20000) FROM bound")
    try:
        with pytest.raises(RuntimeError, match="the server broke its answer off"):
            bounds.read_select_binary_thrown_away(connections, table)
        assert connections[0].execute("SELECT 1").fetchone() == (1,)
    finally:
        connections[0].execute("DROP VIEW bound_that_fails")


def test_a_server_that_goes_away_is_said(connections, uri):
    with psycopg.connect(uri, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [connections[1].info.backend_pid])
    with pytest.raises((RuntimeError, OSError), match=r"broke its answer off|closed the connection|reset|pipe"):
        bounds._throw_away(connections[1], "SELECT pg_sleep(5)")
