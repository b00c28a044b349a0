"""Rules of the Postgres transports without a server: declarations, statements, files, and when they connect."""

import os
import socket
import stat
from pathlib import Path

import psycopg
import pytest

from harness.model import SharedFolder
from harness.registry import select
from harness.transports.postgres import socket as bounds
from harness.transports.postgres import sqlalchemy
from harness.transports.postgres.pg_parquet import file as pg_parquet
from tests.every import every

POSTGRES = select("postgres.*")
PUBLISHED = [entry for entry in POSTGRES if entry.published]


@pytest.fixture
def closed_port():
    """A loopback port on which no process listens: it is bound for the length of the test, so none can take it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def strict_umask():
    """The umask of a cautious shell: no rights for the group and for other users."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@every(PUBLISHED)
def test_a_published_description_names_the_client_of_its_transport(entry):
    client = {"sqlalchemy": "SQLAlchemy"}.get(entry.client, entry.client)
    assert client in entry.published


def test_a_shared_file_has_the_same_place_on_both_sides(tmp_path):
    with pg_parquet._shared_file(SharedFolder(here=str(tmp_path), there="/server/io")) as (here, there):
        assert Path(here).relative_to(tmp_path) == Path(there).relative_to("/server/io")


@pytest.mark.usefixtures("strict_umask")
def test_a_server_under_another_user_may_enter_and_write_whatever_our_umask(tmp_path):
    with pg_parquet._shared_file(SharedFolder(str(tmp_path), str(tmp_path))) as (here, _):
        mode = stat.S_IMODE(Path(here).parent.stat().st_mode)
    assert mode & stat.S_IRWXO == stat.S_IRWXO


def test_two_shared_files_at_once_are_two_files(tmp_path):
    io = SharedFolder(str(tmp_path), str(tmp_path))
    with pg_parquet._shared_file(io) as first, pg_parquet._shared_file(io) as second:
        assert first != second


def test_nothing_stays_in_the_shared_folder_after_an_error(tmp_path):
    def fail_after_writing():
        with pg_parquet._shared_file(SharedFolder(str(tmp_path), str(tmp_path))) as (here, _):
            Path(here).write_bytes(b"PAR1")
            Path(here + "#1").write_bytes(b"what the server had not renamed yet")
            raise RuntimeError("the server went away")

    with pytest.raises(RuntimeError, match="went away"):
        fail_after_writing()
    assert list(tmp_path.iterdir()) == []


def test_an_engine_connects_when_it_is_made_and_not_inside_the_measured_call(closed_port, tmp_path):
    from sqlalchemy.exc import OperationalError

    uri = f"postgresql://lab:lab@127.0.0.1:{closed_port}/lab"
    with pytest.raises(OperationalError, match="refused"), sqlalchemy.connect(uri):
        pass
    with pytest.raises(OperationalError, match="refused"), pg_parquet.connect(uri, SharedFolder(str(tmp_path), "/io")):
        pass


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
