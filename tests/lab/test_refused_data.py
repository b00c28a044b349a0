"""Data that a server refuses from any client: one message, in the server's words, before a transport runs."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import polars as pl
import psycopg
import pytest
from adbc_driver_manager import AdbcStatusCode, ProgrammingError

from harness.datasets.user_data import data
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.model import LabError
from harness.systems.postgres import characters

LONG = "longer than the eight bytes that a pointer to it takes, thrice " * 3


def refusal(system: str, endpoints: dict[str, str], frame: pl.DataFrame, folder: Path) -> str:
    """Return the message about a frame; empty if the server takes it."""
    own = data.from_frame(frame)
    dataset, warmup = (own.dataset(folder, min(rows, own.rows), bytes(32)) for rows in (own.rows, 1_000))
    tables = Tables(References(endpoints), own.specification, dataset, warmup)
    try:
        tables.require_held(system)
    except LabError as error:
        return str(error)
    finally:
        assert tables.references.close(tables.drop) == []
    return ""


@pytest.mark.long
@pytest.mark.parametrize(
    ("system", "frame", "said"),
    [
        (
            "postgres",
            pl.DataFrame({"id": [1], "ctid": [2]}),
            'postgres refuses a table of these columns: column name "ctid" conflicts with a system column name',
        ),
        (
            "postgres",
            pl.DataFrame({f"c{number}": [LONG] for number in range(900)}),
            "postgres refuses these rows: row is too big: size 16224, maximum size 8160",
        ),
        (
            "clickhouse",
            pl.DataFrame({"_row_exists": [1]}),
            "clickhouse refuses a table of these columns: Cannot create table with column '_row_exists' for MergeTree",
        ),
        (
            "clickhouse",
            pl.DataFrame({"id": [1, 2], "a.x": [[1], [1]], "a.y": [[1], [1, 2]], "b.z": [[], []]}),
            'column "a.y", row 1: ClickHouse takes "a.x" and "a.y" for parts of one Nested "a", whose lists have one '
            "length in a row; rename one",
        ),
    ],
)
def test_what_no_transport_could_write_is_refused_with_the_reason(
    embedded_lab: EmbeddedLab, system: str, frame: pl.DataFrame, said: str, tmp_path: Path
) -> None:
    assert refusal(system, embedded_lab.endpoints, frame, tmp_path).startswith(said)


@pytest.mark.parametrize(
    ("system", "frame"),
    [
        ("postgres", pl.DataFrame({"oid": [1], "tableoid_": [2], "user": ["a"]})),
        ("clickhouse", pl.DataFrame({"a.x": [[1], []], "a.y": [[2], []], "b.x": [[], [1]], "a.n": [1, 2]})),
    ],
)
def test_what_a_server_takes_is_not_refused(
    embedded_lab: EmbeddedLab, system: str, frame: pl.DataFrame, tmp_path: Path
) -> None:
    assert refusal(system, embedded_lab.endpoints, frame, tmp_path) == ""


def test_a_category_that_a_database_of_another_encoding_lacks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": ["x", "Łódź"]}, {"a": pl.Categorical}).write_parquet(path)

    def ask(statement: str) -> list[tuple[str]]:
        if "convert_from" in statement:
            raise ProgrammingError("no equivalent", status_code=AdbcStatusCode.INVALID_DATA, sqlstate="22P05")
        return [("LATIN1",)]

    with pytest.raises(LabError, match='column "a", row 1: the database is in LATIN1'):
        characters.require_held(ask, path, {"a": "category"})


@pytest.fixture
def apart(embedded_lab: EmbeddedLab) -> Iterator[dict[str, str]]:
    """The endpoints of a lab whose Postgres database is its own, for triggers and settings."""
    uri = embedded_lab.endpoints["postgres"]
    with psycopg.connect(uri, autocommit=True) as server:
        server.execute("CREATE DATABASE refusing")
        try:
            yield {**embedded_lab.endpoints, "postgres": urlunsplit(urlsplit(uri)._replace(path="/refusing"))}
        finally:
            server.execute("DROP DATABASE refusing WITH (FORCE)")


def on_create_table(endpoints: dict[str, str], body: str) -> None:
    with psycopg.connect(endpoints["postgres"], autocommit=True) as server:
        server.execute(
            f"CREATE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN {body}; END $$;"  # type: ignore[arg-type]
            "CREATE EVENT TRIGGER watch ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION watch()"
        )


def test_a_rule_of_the_house_is_reported_in_its_own_words(apart: dict[str, str], tmp_path: Path) -> None:
    on_create_table(apart, "RAISE EXCEPTION 'tables are made by the release team alone'")
    said = refusal("postgres", apart, pl.DataFrame({"id": [1]}), tmp_path)
    assert said == "postgres refuses a table of these columns: tables are made by the release team alone"


@pytest.mark.long
def test_a_timeout_of_statements_says_so(apart: dict[str, str], tmp_path: Path) -> None:
    on_create_table(apart, "PERFORM pg_sleep(60)")
    with psycopg.connect(apart["postgres"], autocommit=True) as server:
        server.execute("ALTER DATABASE refusing SET statement_timeout = '2s'")
    said = refusal("postgres", apart, pl.DataFrame({"id": [1]}), tmp_path)
    assert said == "postgres refuses a table of these columns: canceling statement due to statement timeout"
