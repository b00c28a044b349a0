"""A person's query is asked in their own session, and writes nothing: `--query` on real engines."""

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import httpx
import psycopg
import pytest

from harness.lab.embedded import EmbeddedLab
from harness.model import LabError
from harness.systems import SYSTEMS

ROLE, PASSWORD = "reads_apart", "of its own"


def answer(system: str, endpoints: dict[str, str], query: str) -> list[dict[str, object]]:
    return SYSTEMS[system].session.answer(endpoints, query)[0].to_pylist()


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE made_by_a_query (a int)",
        "INSERT INTO kept VALUES (2) RETURNING a",
        "WITH gone AS (DELETE FROM kept RETURNING a) SELECT a FROM gone",
        "SELECT nextval('counted')",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "COMMIT",
        "SELECT 1; DROP TABLE kept",
    ],
)
def test_a_query_to_postgres_writes_nothing(embedded_lab: EmbeddedLab, query: str) -> None:
    with psycopg.connect(embedded_lab.endpoints["postgres"], autocommit=True) as server:
        server.execute("CREATE TABLE kept AS SELECT 1 AS a; CREATE SEQUENCE counted")
        try:
            with pytest.raises(LabError, match=r"^postgres refused the query: |a query only reads$"):
                answer("postgres", embedded_lab.endpoints, query)
            assert server.execute("SELECT a FROM kept").fetchall() == [(1,)]
            assert server.execute("SELECT is_called FROM counted").fetchall() == [(False,)]
            assert server.execute("SELECT to_regclass('made_by_a_query')").fetchall() == [(None,)]
        finally:
            server.execute("DROP TABLE kept; DROP SEQUENCE counted; DROP TABLE IF EXISTS made_by_a_query")


@pytest.mark.parametrize("query", ["CREATE TABLE made (a Int32) ENGINE = Memory", "INSERT INTO kept VALUES (2)"])
def test_a_query_to_clickhouse_writes_nothing(embedded_lab: EmbeddedLab, query: str) -> None:
    with pytest.raises(LabError, match=r"^clickhouse refused the query: "):
        answer("clickhouse", embedded_lab.endpoints, query)
    asked = "SELECT toInt64(getSetting('readonly')) AS reads_alone"
    assert answer("clickhouse", embedded_lab.endpoints, asked) == [{"reads_alone": 2}]
    with pytest.raises(LabError, match="Cannot modify 'readonly' setting in readonly mode"):
        answer("clickhouse", embedded_lab.endpoints, "SELECT 1 AS n SETTINGS readonly = 0")


@pytest.fixture
def in_schemas(embedded_lab: EmbeddedLab) -> Iterator[str]:
    """The address of a role in a database of its own, with a table `here` in each of four schemas."""
    uri = embedded_lab.endpoints["postgres"]
    parts = urlsplit(uri)
    with psycopg.connect(uri, autocommit=True) as server:
        server.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
        server.execute("CREATE DATABASE with_paths")
        try:
            with psycopg.connect(urlunsplit(parts._replace(path="/with_paths")), autocommit=True) as made:
                for schema in ("public", "of_role", "of_database", "of_address"):
                    made.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}; GRANT USAGE ON SCHEMA {schema} TO {ROLE}")
                    made.execute(f"CREATE TABLE {schema}.here AS SELECT '{schema}' AS place")
                    made.execute(f"GRANT SELECT ON {schema}.here TO {ROLE}")
            where = f"{ROLE}:{PASSWORD.replace(' ', '%20')}@{parts.hostname}:{parts.port}"
            yield urlunsplit(parts._replace(netloc=where, path="/with_paths"))
        finally:
            server.execute("DROP DATABASE with_paths WITH (FORCE)")
            server.execute(f"DROP ROLE {ROLE}")


def test_a_query_finds_tables_where_its_role_database_and_address_say(
    embedded_lab: EmbeddedLab, in_schemas: str
) -> None:
    def place(of_address: str = "") -> object:
        return answer("postgres", {"postgres": f"{in_schemas}{of_address}"}, "SELECT place FROM here")[0]["place"]

    assert place() == "public"
    with psycopg.connect(embedded_lab.endpoints["postgres"], autocommit=True) as server:
        server.execute("ALTER DATABASE with_paths SET search_path = of_database")
        assert place() == "of_database"
        server.execute(f"ALTER ROLE {ROLE} SET search_path = of_role")
        assert place() == "of_role"
    assert place("?options=-csearch_path%3Dof_address") == "of_address"


def test_a_query_has_the_database_and_the_settings_of_its_address(embedded_lab: EmbeddedLab) -> None:
    url = embedded_lab.endpoints["clickhouse_http"]
    httpx.post(url, content="CREATE DATABASE in_address").raise_for_status()
    try:
        httpx.post(url, content="CREATE VIEW in_address.here AS SELECT 7 AS place").raise_for_status()
        asked = "SELECT place, toInt64(getSetting('max_threads')) AS threads FROM here; -- ;"
        for of_address in ("/?database=in_address&max_threads=3", "/in_address?max_threads=3"):
            endpoints = {"clickhouse_http": f"{url}{of_address}"}
            assert answer("clickhouse", endpoints, asked) == [{"place": 7, "threads": 3}]
    finally:
        httpx.post(url, content="DROP DATABASE in_address").raise_for_status()


def test_a_person_who_may_only_read_asks_as_anybody_else(embedded_lab: EmbeddedLab) -> None:
    """Their server refuses a change of any setting, also of the one that keeps a query from writing."""
    endpoints = {"clickhouse_http": f"{embedded_lab.endpoints['clickhouse_http']}/?readonly=1"}
    assert answer("clickhouse", endpoints, "SELECT toInt64(getSetting('readonly')) AS n") == [{"n": 1}]


def test_a_timeout_of_ones_own_is_said_in_the_words_of_the_server(embedded_lab: EmbeddedLab) -> None:
    endpoints = {"postgres": f"{embedded_lab.endpoints['postgres']}?options=-cstatement_timeout%3D50"}
    with pytest.raises(LabError, match="postgres refused the query: canceling statement due to statement timeout"):
        answer("postgres", endpoints, "SELECT pg_sleep(5)::text AS slept")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT '\\';' AS m -- ;",
        "SELECT $a$;--$a$ AS m /* a /* b */ ; */;;\n# x",
        "SELECT `m` FROM (SELECT 1 AS `m`) ;\n",
    ],
)
def test_a_query_to_clickhouse_may_end_as_people_end_them(embedded_lab: EmbeddedLab, query: str) -> None:
    assert len(answer("clickhouse", embedded_lab.endpoints, query)) == 1
