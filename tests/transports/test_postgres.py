"""Rules of the Postgres transports without a server: declarations, statements, files, and when they connect."""

import inspect
import os
import socket
import stat
import uuid
from pathlib import Path

import pytest

from harness.model import SharedFolder
from harness.registry import connect_of, select
from harness.transports.postgres import sqlalchemy
from harness.transports.postgres.asyncpg import published as asyncpg
from harness.transports.postgres.pg_parquet import file as pg_parquet
from harness.transports.postgres.psycopg.published import TABS
from harness.transports.postgres.sql import copy_from_stdin
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


@every(POSTGRES)
def test_a_transport_whose_connect_takes_the_shared_folder_declares_that_it_needs_it(entry):
    asked = inspect.signature(connect_of(entry)).parameters
    assert ("io" in asked) == ("shared_io" in entry.needs)


def test_copy_from_stdin_is_the_published_statement_with_every_name_quoted():
    statement = copy_from_stdin("Metrics", ["select", 'say "x"'], TABS)
    names, _, options = statement.partition(" FROM STDIN ")
    assert names == 'COPY "Metrics" ("select", "say ""x""")'
    assert options == r"WITH (FORMAT csv, DELIMITER E'\t', NULL '\N')"


def test_only_the_uuid_positions_of_a_row_become_uuid_objects():
    text = "00000000-0000-0000-0000-000000000007"
    assert list(asyncpg._with_uuids([(text, text, 1)], [0])) == [[uuid.UUID(int=7), text, 1]]


def test_a_malformed_uuid_stops_the_rows_instead_of_being_sent():
    rows = asyncpg._with_uuids([("00000000-0000-0000-0000-000000000007",), ("no uuid",)], [0])
    next(rows)
    with pytest.raises(ValueError, match="badly formed"):
        next(rows)


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
