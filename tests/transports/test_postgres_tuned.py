"""The tuned Postgres transports on a real server: hostile values, whole tables, and nothing left after an error."""

import datetime as dt
import threading
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pandas as pd
import polars as pl
import psycopg
import pytest
from arrow_wire import UnsupportedType, postgres_read

from harness.transports.postgres.psycopg import tuned

TABLE, QUOTED = 'Tuned "table', '"Tuned ""table"'
COLUMNS = (
    "id uuid, day date, small smallint, number integer, large bigint, half real, float double precision, "
    '"select ""x""" text, yes boolean, moment timestamp'
)
ROWS = 60_000  # enough for a slice on every connection
LONG = "ä€𝄞x" * 120_000  # 1.2 MB
UUIDS = [str(uuid.UUID(int=number)) for number in (0, 2**128 - 1, 0x0123456789ABCDEF << 64, 0xFEDCBA9876543210)]
ROW = pl.DataFrame(
    {
        "id": [UUIDS[2]],
        "day": [dt.date(1, 1, 1)],
        "small": pl.Series([-32768], dtype=pl.Int16),
        "number": pl.Series([1], dtype=pl.Int32),
        "large": [2**53 + 1],
        "half": pl.Series([-0.0], dtype=pl.Float32),
        "float": [5e-324],
        'select "x"': ["𝄞"],
        "yes": [True],
        "moment": [dt.datetime(2026, 4, 7, 1, 2, 3, 4)],
    }
)


@pytest.fixture(scope="module")
def server(uri):
    """A connection of a witness: psycopg's own rows."""
    with psycopg.connect(uri, autocommit=True, prepare_threshold=None) as connection:
        yield connection


@pytest.fixture
def readers(uri):
    with tuned.connect(uri) as connections:
        yield connections


@pytest.fixture
def make(server):
    """Make the table of these columns and return its name; it is dropped in the end."""

    def new(columns):
        server.execute(f"CREATE TABLE {QUOTED} ({columns})")
        return TABLE

    yield new
    server.execute(f"DROP TABLE IF EXISTS {QUOTED} CASCADE")


def rows_of(server):
    return server.execute(f"SELECT * FROM {QUOTED}").fetchall()


def many(rows=ROWS):
    """Rows with random keys, long enough for several slices."""
    ids = [str(uuid.UUID(int=(number * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)) for number in range(rows)]
    return pl.DataFrame(
        {"id": ids, "number": pl.Series(range(rows), dtype=pl.Int32), "text": [f"{i:>60}" for i in ids]}
    )


def test_hostile_values_of_pandas_come_back_with_their_dtypes(make, writers, readers):
    table = make("id uuid, day date, number integer, large bigint, float double precision, text text")
    frame = pd.DataFrame(
        {
            "id": pd.Series([*UUIDS, None], dtype="str"),
            "day": pd.Series(["1969-12-31", "1970-01-01", "2000-01-01", "9999-12-31", None], dtype="datetime64[us]"),
            "number": pd.Series([1, None, 3, 4, 5], dtype="Int32"),
            "large": pd.Series([1, -(2**63), 2**53 + 1, 4, 5], dtype="int64"),
            "float": pd.Series([0.0, -0.0, float("nan"), float("inf"), float("-inf")], dtype="float64"),
            "text": pd.Series([LONG, "", None, r"\N", "NA"], dtype="str"),
        }
    )
    tuned.write_pandas_tuned(writers, frame, table)
    pd.testing.assert_frame_equal(tuned.read_pandas_tuned(readers, table), frame)


@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize("rows", [0, 1])
def test_a_frame_of_no_row_and_of_one_comes_through_with_its_types(rows, library, make, writers, readers):
    table, frame = make(COLUMNS), ROW.head(rows)
    if library == "pandas":
        frame = frame.select("number", 'select "x"').to_pandas()
    getattr(tuned, f"write_{library}_tuned")(writers, frame, table)
    found = getattr(tuned, f"read_{library}_tuned")(readers, table)[list(frame.columns)]
    assert found.equals(frame)
    assert list(found.dtypes) == list(frame.dtypes)


@pytest.mark.long
@pytest.mark.parametrize("keys", ["", ", PRIMARY KEY (id, number)", ", UNIQUE (number)", ", PRIMARY KEY (text)"])
def test_slices_hold_every_row_exactly_once(keys, make, server, writers, readers):
    table, frame = make(f"id uuid, number integer, text text{keys}"), many()
    tuned.write_polars_tuned(writers, frame, table)
    assert server.execute(f"SELECT pg_relation_size('{QUOTED}') / 8192").fetchone() > (512,)
    server.execute(f"DELETE FROM {QUOTED} WHERE number % 7 = 0 OR number BETWEEN 20000 AND 50000")
    left = frame.filter(pl.col("number") % 7 != 0, ~pl.col("number").is_between(20000, 50000))
    assert tuned.read_polars_tuned(readers, table).sort("number").equals(left)


def test_a_slice_or_a_frame_in_several_chunks_is_one_frame(make, monkeypatch, writers, readers):
    monkeypatch.setattr(postgres_read, "_ROWS", 1000)
    table, frame = make("id uuid, number integer, text text"), many(5000)
    pieces = pl.concat([frame.slice(start, 700) for start in range(0, 5000, 700)], rechunk=False)
    tuned.write_polars_tuned(writers, pieces, table)
    assert tuned.read_polars_tuned(readers, table).equals(frame)
    pd.testing.assert_frame_equal(
        tuned.read_pandas_tuned(readers, table), frame.to_pandas().astype({"id": "str", "text": "str"})
    )


def test_all_slices_see_one_snapshot(make, monkeypatch, server, writers, readers):
    table, frame, fetch, changed = (
        make("id uuid, number integer, text text"),
        many(),
        postgres_read._fetch,
        threading.Lock(),
    )
    tuned.write_polars_tuned(writers, frame, table)

    def change_then_fetch(*arguments):
        with changed:
            server.execute(f"DELETE FROM {QUOTED} WHERE number < 30000")
            server.execute(f"INSERT INTO {QUOTED} VALUES (NULL, -1, 'new')")
        return fetch(*arguments)

    monkeypatch.setattr(postgres_read, "_fetch", change_then_fetch)
    assert tuned.read_polars_tuned(readers, table).sort("number").equals(frame)


def test_a_view_is_read_as_one_slice(make, server, readers):
    make("number integer")
    server.execute(f"INSERT INTO {QUOTED} VALUES (1), (2); CREATE VIEW seen AS SELECT * FROM {QUOTED}")
    assert tuned.read_polars_tuned(readers, "seen")["number"].to_list() == [1, 2]


def test_rows_of_two_slices_that_clash_in_another_index_are_an_error_and_no_standstill(make, server, writers):
    table, frame = make("id uuid PRIMARY KEY, number integer UNIQUE, text text"), many()
    last = pl.lit(frame["id"][-1].upper())
    capitals = pl.when(pl.col("number") == 0).then(last).otherwise("id").alias("id")
    for clash in (pl.col("number") // 2, capitals):
        with pytest.raises(psycopg.errors.UniqueViolation):
            tuned.write_polars_tuned(writers, frame.with_columns(clash), table)
        assert rows_of(server) == []


@pytest.mark.parametrize("wrong", ["no uuid", "0" * 36, "g" + UUIDS[0][1:], UUIDS[0][:-1] + "\x10", "{" + UUIDS[0][1:]])
def test_a_text_that_is_no_uuid_is_refused_and_its_column_named(wrong, make, server, writers):
    table = make("key uuid, number integer")
    with pytest.raises(ValueError, match='"key"'):
        tuned.write_polars_tuned(writers, pl.DataFrame({"number": [1, 2], "key": [UUIDS[0], wrong]}), table)
    assert rows_of(server) == []


@pytest.mark.parametrize(
    ("sql_type", "values", "dtype"),
    [
        ("smallint", [32768], pl.Int32),
        ("integer", [2**31], pl.Int64),
        ("boolean", [2], pl.Int8),
        ("date", [dt.datetime(2026, 1, 1, 12)], pl.Datetime),
        ("date", [-(2**31) + 10957], pl.Date),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_refused(sql_type, values, dtype, make, server, writers):
    table = make(f'"mine" {sql_type}')
    frame = pl.DataFrame(
        {"mine": pl.Series(values).cast(dtype) if dtype == pl.Date else pl.Series(values, dtype=dtype)}
    )
    with pytest.raises(ValueError, match='"mine"'):
        tuned.write_polars_tuned(writers, frame, table)
    assert rows_of(server) == []


@pytest.mark.parametrize("value", ["infinity", "-infinity"])
@pytest.mark.parametrize("sql_type", ["date", "timestamp"])
def test_infinite_dates_are_refused_by_reads(sql_type, value, make, server, readers):
    table = make(f"day {sql_type}")
    server.execute(f"INSERT INTO {QUOTED} VALUES ('{value}')")
    with pytest.raises(ValueError, match=r'"day": row 0: .* has no infinity or NaN'):
        tuned.read_polars_tuned(readers, table)


def test_the_type_of_a_column_is_named_and_not_numbered(make, server, writers):
    server.execute("DROP TYPE IF EXISTS mood CASCADE; CREATE TYPE mood AS ENUM ('good')")
    table = make("now mood")
    with pytest.raises(UnsupportedType, match='column "now": int64 does not fit mood; cast it'):
        tuned.write_polars_tuned(writers, pl.DataFrame({"now": [1]}), table)


def test_a_type_without_one_in_arrow_comes_as_the_text_of_the_server(make, server, readers):
    table = make("place point, at inet, price numeric")
    server.execute(f"INSERT INTO {QUOTED} VALUES ('(1,2)', '10.0.0.1', 1.50)")
    assert tuned.read_polars_tuned(readers, table).rows() == [("(1,2)", "10.0.0.1", "1.50")]


@pytest.mark.usefixtures("make")
@pytest.mark.parametrize(("columns", "asked"), [(66, "yes"), (63, None)])
def test_of_many_columns_each_connection_is_prepared_and_every_value_comes(
    columns, asked, server, readers, monkeypatch
):
    monkeypatch.setattr(postgres_read, "_FREE_A_LARGE_PIECE", "SELECT set_config('lab.asked', 'yes', false)")
    values = ", ".join(f"(n * {place})::float8 AS c{place}" for place in range(columns))
    server.execute(f"CREATE TABLE {QUOTED} AS SELECT {values} FROM generate_series(1, 9000) n")  # two slices
    found = tuned.read_polars_tuned(readers, TABLE)
    told = "SELECT current_setting('lab.asked', true)"
    assert {one.execute(told).fetchone()[0] for one in readers[:2]} == {asked}
    expected = pl.DataFrame({f"c{at}": [float(row * at) for row in range(1, 9001)] for at in range(columns)})
    assert found.sort("c1").equals(expected)


def test_the_statement_for_many_columns_is_one_that_the_server_answers(server):
    (freed,) = server.execute(postgres_read._FREE_A_LARGE_PIECE).fetchone()
    assert freed > 1 << 18  # bytes: more than glibc's threshold of 128 kB, and than the blocks of a wide row


TEXTS = {
    "LATIN1": ["é", "ÿ¡", "plain", ""],
    "SQL_ASCII": ["é", "€𝄞", "plain", ""],
    "EUC_JP": ["日本", "ア", "plain", ""],
}
ROLE, PASSWORD = "speaks_latin", "an own one"


@pytest.fixture(params=TEXTS)
def database(request: pytest.FixtureRequest, embedded_lab) -> Iterator[str]:
    """The address of a database in another encoding, which has a table."""
    name, uri = f"in_{request.param.lower()}", embedded_lab.endpoints["postgres"]
    there = urlunsplit(urlsplit(uri)._replace(path=f"/{name}"))
    with psycopg.connect(uri, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING '{request.param}' LOCALE 'C' TEMPLATE template0")
        try:
            with psycopg.connect(there, client_encoding="utf8") as made:
                made.execute('CREATE TABLE spoken (number integer, "größe" text, words text[])')
            yield there
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_strings_of_a_database_in_another_encoding_come_through(database, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "latin1")
    strings = TEXTS[urlsplit(database).path.removeprefix("/in_").upper()]
    numbers = pl.Series(range(len(strings)), dtype=pl.Int32)
    frame = pl.DataFrame({"number": numbers, "größe": strings, "words": [[text, text] for text in strings]})
    with tuned.connect(database) as connections:
        tuned.write_polars_tuned(connections, frame, "spoken")
    with psycopg.connect(database, client_encoding="utf8") as witness:
        assert witness.execute("SELECT * FROM spoken").fetchall() == frame.rows()
    with tuned.connect(database) as connections:
        assert tuned.read_polars_tuned(connections, "spoken").equals(frame)
        assert tuned.read_pandas_tuned(connections, "spoken")["größe"].to_list() == strings


def test_neither_address_nor_role_nor_database_makes_it_another_encoding(embedded_lab, monkeypatch):
    uri = embedded_lab.endpoints["postgres"]
    with psycopg.connect(uri, autocommit=True) as server:
        server.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
        server.execute(f"ALTER ROLE {ROLE} SET client_encoding = 'latin1'")
        server.execute(f"CREATE SCHEMA AUTHORIZATION {ROLE}; CREATE TABLE {ROLE}.spoken (text text)")
        server.execute(f"ALTER TABLE {ROLE}.spoken OWNER TO {ROLE}")
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        parts = urlsplit(uri)
        theirs = f"postgresql://{ROLE}@{parts.hostname}:{parts.port}{parts.path}"
        try:
            with psycopg.connect(theirs) as connection:
                assert connection.info.encoding == "iso8859-1", "the role's own encoding"
            for address in (theirs, f"{theirs}?client_encoding=latin1"):
                with tuned.connect(address) as connections:
                    tuned.write_polars_tuned(connections, pl.DataFrame({"text": ["é€"]}), "spoken")
                with tuned.connect(address) as connections:
                    assert set(tuned.read_polars_tuned(connections, "spoken")["text"]) == {"é€"}
        finally:
            server.execute(f"DROP SCHEMA {ROLE} CASCADE; DROP ROLE {ROLE}")


@pytest.mark.parametrize("database", ["LATIN1"], indirect=True)
def test_a_text_that_the_database_has_no_bytes_for_is_refused_and_leaves_nothing(database):
    frame = pl.DataFrame({"größe": ["é", "€"]})
    with tuned.connect(database) as connections, psycopg.connect(database) as witness:
        with pytest.raises(psycopg.DatabaseError, match='has no equivalent in encoding "LATIN1"'):
            tuned.write_polars_tuned(connections, frame, "spoken")
        assert witness.execute("SELECT count(*) FROM spoken").fetchone() == (0,)
