"""A tuned write into an empty table makes the index of its key once the rows are there, where nothing hangs on it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import psycopg
import pytest
from arrow_wire import postgres_write

from harness.transports.postgres.psycopg import tuned
from tests.transports.tuned_calls import WRITES, frame_of, writing

ROWS = postgres_write.SLICE_ROWS
CREATE = "CREATE TABLE later (number integer PRIMARY KEY, text text)"
Write = Callable[..., None]
KEY = """
SELECT c.conname, pg_get_constraintdef(c.oid), c.condeferrable, c.condeferred, c.convalidated, c.conislocal,
    pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisready,
    array_agg((a.attname, a.attnotnull)::text ORDER BY a.attnum)
FROM pg_constraint c JOIN pg_index i ON i.indexrelid = c.conindid JOIN pg_attribute a ON a.attrelid = c.conrelid
WHERE c.conrelid = 'later'::regclass AND c.contype = 'p' AND a.attnum > 0 GROUP BY c.oid, i.indexrelid"""


FRAME = frame_of(ROWS)


@pytest.fixture
def server(uri: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection
        connection.execute("DROP TABLE IF EXISTS later, refers CASCADE")


@pytest.fixture(params=WRITES)
def write(request: pytest.FixtureRequest, writers: list[psycopg.Connection], tmp_path: Path) -> Write:
    """Each of the tuned writes, of a polars frame."""
    call = writing(request.param, tuned, writers, "later", tmp_path)
    return lambda frame=FRAME: call(frame)


def index(server: psycopg.Connection) -> int:
    """Return the number that the server has for the index: another one where it was made anew."""
    find = "SELECT indexrelid FROM pg_index WHERE indrelid = 'later'::regclass AND indisprimary"
    (number,) = server.execute(find).fetchone()
    return number


def rows(server: psycopg.Connection) -> int:
    (count,) = server.execute("SELECT count(*) FROM later").fetchone()
    return count


@pytest.mark.long
@pytest.mark.parametrize(
    "definition",
    [
        "number integer PRIMARY KEY, text text",
        'number integer, text text, CONSTRAINT "odd ""name%s" PRIMARY KEY (text, number)',
        "number integer, text text, PRIMARY KEY (number) INCLUDE (text)",
        "number integer, text text, PRIMARY KEY (number) DEFERRABLE INITIALLY DEFERRED",
    ],
)
def test_the_index_is_made_anew_and_is_the_same(definition, server, write):
    server.execute(f"CREATE TABLE later ({definition})")
    before, number = server.execute(KEY).fetchall(), index(server)
    write()
    assert rows(server) == ROWS
    assert server.execute(KEY).fetchall() == before
    assert index(server) != number
    with pytest.raises(psycopg.errors.UniqueViolation):
        server.execute("INSERT INTO later SELECT * FROM later LIMIT 1")


LEFT_ALONE = {
    "a row": "INSERT INTO later VALUES (-1, '')",
    "another index": "CREATE INDEX ON later (text)",
    "a key that others refer to": "CREATE TABLE refers (number integer REFERENCES later)",
    "a view that depends on the key": "CREATE VIEW seen AS SELECT number, text FROM later GROUP BY number",
    "storage parameters": "ALTER INDEX later_pkey SET (fillfactor = 50)",
    "a comment on the index": "COMMENT ON INDEX later_pkey IS 'dear'",
    "a comment on the key": "COMMENT ON CONSTRAINT later_pkey ON later IS 'dear'",
    "an identity for replicas": "ALTER TABLE later REPLICA IDENTITY USING INDEX later_pkey",
    "an index to cluster by": "ALTER TABLE later CLUSTER ON later_pkey",
    "a child": "CREATE TABLE refers () INHERITS (later)",
}


@pytest.mark.long
@pytest.mark.parametrize("what", LEFT_ALONE)
def test_the_index_stays_as_it_is_where_more_hangs_on_it(what, server, writers):
    server.execute(CREATE)
    server.execute(LEFT_ALONE[what])
    number, before = index(server), rows(server)
    tuned.write_polars_tuned(writers, FRAME, "later")
    assert rows(server) == before + ROWS
    assert index(server) == number


def test_the_index_stays_as_it_is_while_the_table_is_read(uri, server, writers):
    server.execute(CREATE)
    number = index(server)
    with psycopg.connect(uri) as reader:
        assert reader.execute("SELECT count(*) FROM later").fetchone() == (0,)  # its transaction stays open
        tuned.write_polars_tuned(writers, FRAME, "later")
        assert rows(server) == ROWS
    assert index(server) == number


def test_the_index_stays_as_it_is_where_another_role_owns_the_table(uri, server):
    server.execute(CREATE)
    server.execute("DROP ROLE IF EXISTS only_writes")
    server.execute("CREATE ROLE only_writes")
    try:
        (schema,) = server.execute("SELECT quote_ident(current_schema())").fetchone()
        server.execute(f"GRANT USAGE ON SCHEMA {schema} TO only_writes")
        server.execute("GRANT SELECT, INSERT ON later TO only_writes")
        number = index(server)
        with tuned.connect(uri) as writers:
            for one in writers:
                one.execute("SET ROLE only_writes")
            tuned.write_polars_tuned(writers, FRAME, "later")
        assert rows(server) == ROWS
        assert index(server) == number
    finally:
        server.execute("DROP OWNED BY only_writes")
        server.execute("DROP ROLE only_writes")


def test_few_rows_are_not_worth_it(server, writers):
    server.execute(CREATE)
    number = index(server)
    tuned.write_polars_tuned(writers, frame_of(ROWS - 1), "later")
    assert (rows(server), index(server)) == (ROWS - 1, number)


def test_a_duplicate_leaves_nothing_and_the_index_as_it_was(server, write):
    server.execute(CREATE)
    number = index(server)
    with pytest.raises(psycopg.errors.UniqueViolation, match=r"Key \(number\)=\(7\) is duplicated"):
        write(pl.concat([FRAME, FRAME.filter(pl.col("number") == 7)]))
    assert (rows(server), index(server)) == (0, number)
    with pytest.raises(psycopg.errors.UniqueViolation):
        server.execute("INSERT INTO later VALUES (1, ''), (1, '')")


def test_a_connection_that_the_server_ends_leaves_nothing_and_the_index_as_it_was(monkeypatch, server, writers, write):
    server.execute(CREATE)
    number, pid, send = index(server), writers[0].info.backend_pid, postgres_write._send

    def cut(*given: object) -> None:
        send(*given)
        server.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    monkeypatch.setattr(postgres_write, "_send", cut)
    with pytest.raises(psycopg.OperationalError, match="connection"):
        write()
    assert (rows(server), index(server)) == (0, number)
