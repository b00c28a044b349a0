"""The tuned Postgres transports know UTF-8 alone and ask for it, whatever a database, role or environment has."""

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import polars as pl
import psycopg
import pytest

from harness.transports.postgres.psycopg import tuned

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
