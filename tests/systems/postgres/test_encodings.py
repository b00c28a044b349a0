"""Databases of Postgres in other encodings than UTF-8: the server's own values count."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import polars as pl
import psycopg
import pytest

from harness.check.canonical import NotConvertible
from harness.datasets.specification import Specification
from harness.datasets.user_data import data
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.machine.variables import namespace
from harness.model import LabError, Status
from harness.results import runs_csv
from harness.systems.postgres import client, settings
from tests.commands import refused

Command = Callable[..., subprocess.CompletedProcess[str]]
STRINGS = {"LATIN1": ["é", "ÿ¡", "plain", ""], "SQL_ASCII": ["é", "€𝄞", "plain", ""]}
TRUSTS_THE_SESSION = "postgres.adbc.write_polars_ingest"  # it makes é two characters of LATIN1, and back
ASKS_FOR_UTF8 = "postgres.asyncpg.write_polars_copy_binary"


@pytest.fixture(params=STRINGS)
def database(request: pytest.FixtureRequest, embedded_lab: EmbeddedLab) -> Iterator[tuple[str, dict[str, str]]]:
    """An encoding, and the endpoints of a lab whose database is in it."""
    name, uri = f"held_in_{request.param.lower()}", embedded_lab.endpoints["postgres"]
    there = urlunsplit(urlsplit(uri)._replace(path=f"/{name}"))
    with psycopg.connect(uri, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING '{request.param}' LOCALE 'C' TEMPLATE template0")
        try:
            yield request.param, {**embedded_lab.endpoints, "postgres": there}
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def frame(encoding: str) -> pl.DataFrame:
    strings = STRINGS[encoding]
    return pl.DataFrame({"id": range(len(strings)), "word": strings, "words": [[one, one] for one in strings]})


@pytest.fixture
def tables(database: tuple[str, dict[str, str]], tmp_path: Path) -> Iterator[Tables]:
    encoding, endpoints = database
    own = data.from_frame(frame(encoding))
    dataset = own.dataset(tmp_path, own.rows, bytes(32))
    made = Tables(References(endpoints), own.specification, dataset, dataset)
    yield made
    made.references.close(made.drop)


def in_bytes(endpoints: dict[str, str], table: str) -> list[tuple[bytes | None, ...]]:
    """Return the server's value in UTF-8, for any encoding of the connection."""
    encoding = "CASE getdatabaseencoding() WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END"
    asked = (
        f"SELECT convert_to(word, {encoding}), convert_to(words[1], {encoding}) FROM {namespace()}.{table} ORDER BY id"
    )
    with psycopg.connect(endpoints["postgres"]) as connection:
        return connection.execute(asked).fetchall()


@pytest.mark.long
@pytest.mark.parametrize("of_session", ["", "latin1"])
def test_the_reference_connection_loads_and_brings_what_the_server_holds(
    database: tuple[str, dict[str, str]], tables: Tables, of_session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding, endpoints = database
    if of_session:
        monkeypatch.setenv("PGCLIENTENCODING", of_session)
    table, _ = tables.for_read("postgres")
    assert in_bytes(endpoints, table) == [(one.encode(), one.encode()) for one in STRINGS[encoding]]
    assert tables.differences_in_table("postgres", table) == []


@pytest.mark.parametrize("database", ["LATIN1"], indirect=True)
def test_the_witness_asks_the_server_for_bytes_and_believes_no_encoding_of_the_connection(
    database: tuple[str, dict[str, str]], tables: Tables
) -> None:
    table, _ = tables.for_read("postgres")
    opened = client.open_connection(database[1])
    try:
        client.say(opened, "SET client_encoding = 'LATIN1'")
        found = client.fetch(opened, table).sort_by("id")
    finally:
        opened.close()
    assert found["word"].to_pylist() == STRINGS["LATIN1"]
    assert found["words"].to_pylist() == [[one, one] for one in STRINGS["LATIN1"]]


@pytest.mark.parametrize("database", ["SQL_ASCII"], indirect=True)
@pytest.mark.parametrize("column", ["word", "words[1]"])
def test_bytes_of_sql_ascii_that_are_no_utf_8_are_a_difference(
    database: tuple[str, dict[str, str]], tables: Tables, column: str
) -> None:
    table, _ = tables.for_read("postgres")
    with psycopg.connect(database[1]["postgres"], autocommit=True, client_encoding="sql_ascii") as connection:
        connection.execute(f"UPDATE {namespace()}.{table} SET {column} = E'caf\\xe9' WHERE id = 1".encode())
    said = f"{column.removesuffix('[1]')}: text(\\[\\])? does not convert to strings, its bytes are not UTF-8"
    with pytest.raises(NotConvertible, match=said):
        tables.differences_in_table("postgres", table)


@pytest.mark.long
@pytest.mark.parametrize("database", ["LATIN1"], indirect=True)
def test_verdicts_are_by_what_the_server_holds(
    database: tuple[str, dict[str, str]], lab: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "words.parquet"
    frame("LATIN1").select("id", "word").write_parquet(file)
    only = f"{TRUSTS_THE_SESSION},{ASKS_FOR_UTF8}"
    asked = ("run", "--data", str(file), "--passes", "1", "--external", "--only", only, "--experiment", "matrix")
    done = lab(*asked, env=environment | {"LAB_POSTGRES_URI": database[1]["postgres"]})
    assert done.returncode == 1, done.stdout + done.stderr
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).glob("2*")
    rows = {row.transport: row for row in runs_csv.load(folder / "runs.csv")}
    assert {name: row.status for name, row in rows.items()} == {
        TRUSTS_THE_SESSION: Status.MISMATCH,
        ASKS_FOR_UTF8: Status.OK,
    }
    assert rows[TRUSTS_THE_SESSION].error == "word: 2 of 4 values differ"


@pytest.mark.parametrize("database", ["LATIN1"], indirect=True)
@pytest.mark.parametrize("column", ["city", "cities"])
def test_a_character_that_the_database_does_not_have_is_refused_with_its_row(
    database: tuple[str, dict[str, str]], column: str, tmp_path: Path
) -> None:
    cities = ["Kraków", None, "Łódź"]
    frame = pl.DataFrame({"id": [1, 2, 3], column: [[one] for one in cities] if column == "cities" else cities})
    own = data.from_frame(frame)
    opened = client.open_connection(database[1])
    try:
        path = own.dataset(tmp_path, own.rows, bytes(32)).path
        with pytest.raises(LabError, match=f'column "{column}", row 2: the database is in LATIN1, which does not have'):
            client.require_held(opened, path, own.logical_types)
    finally:
        opened.close()


@pytest.mark.parametrize("database", ["LATIN1"], indirect=True)
def test_a_race_on_such_characters_is_refused_before_it_begins(
    database: tuple[str, dict[str, str]], lab: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "cities.parquet"
    pl.DataFrame({"city": [f"Łódź {number}" for number in range(1_000)]}).write_parquet(file)
    asked = ("recommend", "--data", str(file), "--to", "postgres", "--external")
    said = refused(lab(*asked, env=environment | {"LAB_POSTGRES_URI": database[1]["postgres"]}))
    assert 'column "city", row 0: the database is in LATIN1' in said
    assert not list(Path(environment["LAB_RESULTS_DIR"]).glob("*/runs.csv"))


SPEC = Specification("before", 1, {"key": "uuid", "number": "int32"}, ("key",), 100, lambda rows, seed: iter(()))


@pytest.fixture
def connection(embedded_lab: EmbeddedLab) -> Iterator[Any]:
    found = client.open_connection(embedded_lab.endpoints)
    client.ensure_namespace(found)
    for table in ("source", "written"):
        client.say(found, f"CREATE TABLE {table} (key uuid PRIMARY KEY, number int)")
    client.say(found, "INSERT INTO source SELECT gen_random_uuid(), n FROM generate_series(1, 500) AS n")
    yield found
    for table in ("source", "written"):
        client.say(found, f"DROP TABLE {table}")
    found.close()


def test_the_rows_that_were_there_are_counted_and_only_the_written_ones_remain(connection: Any) -> None:
    for statement in settings.filled(SPEC, "written", "source", 300):
        client.say(connection, statement)
    client.say(connection, "INSERT INTO written SELECT * FROM source")  # none of its keys is there yet
    assert client.query(connection, "SELECT count(*) FROM written") == [(800,)]
    assert settings.remove_rows_before(connection, "written") == 300
    left = "SELECT count(*) FROM written JOIN source USING (key, number)"
    assert client.query(connection, left) == client.query(connection, "SELECT count(*) FROM written") == [(500,)]


def test_a_row_that_a_write_removed_is_missed(connection: Any) -> None:
    for statement in settings.filled(SPEC, "written", "source", 300):
        client.say(connection, statement)
    client.say(connection, "DELETE FROM written WHERE number = 7")
    assert settings.remove_rows_before(connection, "written") == 299


def test_a_dataset_without_a_uuid_as_its_key_is_refused() -> None:
    with pytest.raises(LabError, match="rows_before: the key of before is not a uuid; remove the parameter"):
        settings.filled(Specification("before", 1, {"n": "int32"}, ("n",), 9, SPEC.build), "written", "source", 1)
