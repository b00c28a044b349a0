"""A user's query runs in their session, writes nothing, and returns its rows unchanged, on real engines."""

import datetime as dt
import functools
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from urllib.parse import urlsplit, urlunsplit

import httpx
import psycopg
import pyarrow as pa
import pytest

from harness import address, registry
from harness.datasets import store
from harness.datasets.user_data import data, reading
from harness.lab import reference
from harness.lab.embedded import EmbeddedLab
from harness.lab.labs import Lab
from harness.lab.reference import NoAnswer, Reference, References, within
from harness.machine.variables import namespace
from harness.model import Case, LabError
from harness.run.rigs import server_parameters
from harness.systems import SYSTEMS, system
from harness.systems.clickhouse.asked import as_brought
from harness.systems.postgres import client as postgres
from tests.commands import one_line
from tests.waiting import until

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
    """The address of a role in a separate database, with a table `here` in each of four schemas."""
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
        for of_address in (
            "/?database=in_address&max_threads=3",
            "/in_address?max_threads=3&extremes=1",
            "/in_address?max_threads=3",
        ):
            endpoints = {"clickhouse_http": f"{url}{of_address}"}
            assert answer("clickhouse", endpoints, asked) == [{"place": 7, "threads": 3}]
    finally:
        httpx.post(url, content="DROP DATABASE in_address").raise_for_status()


def test_a_user_who_may_only_read_asks_like_any_other(embedded_lab: EmbeddedLab) -> None:
    """Their server refuses a change of any setting, even of the one that stops a query from writing."""
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


def brought(lab: EmbeddedLab, query: str) -> pa.Table:
    return SYSTEMS["postgres"].session.answer(lab.endpoints, query)[0]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "SELECT interval '1 day' AS d",
            r'column "d": .* interval unchanged; select extract\(epoch FROM "d"\), or give',
        ),
        (
            "SELECT ARRAY[interval '1 day'] AS d",
            r'column "d": .* interval\[\] unchanged; select "d"::text\[\], or give',
        ),
        ("SELECT inet '10.0.0.1' AS i", 'column "i": .* inet unchanged; select "i"::text, or give the data as a file'),
        ("SELECT int4range(1, 5) AS r", 'column "r": .* int4range unchanged; select "r"::text'),
        ("SELECT B'101' AS b", 'column "b": .* bit unchanged; select "b"::text'),
        ("SELECT tsvector 'a b' AS t", 'column "t": .* tsvector unchanged; select "t"::text'),
        ("SELECT row(1, 'a') AS r", 'column "r": .* record unchanged; select "r"::text'),
        ("SELECT ARRAY[1.5] AS a", r'column "a": .* numeric\[\] unchanged; select "a"::text\[\]'),
        ("SELECT '{1.5}'::money[] AS a", r'column "a": .* money\[\] unchanged; select "a"::text\[\]'),
        ("SELECT ARRAY[jsonb '{}'] AS a", r'column "a": .* jsonb\[\] unchanged; select "a"::text\[\]'),
        ("SELECT 7 AS n, ARRAY[1] AS flat, ARRAY[[1], [2]] AS deep;", 'column "deep": .* array of several dimensions'),
        (
            "SELECT timestamp 'infinity' AS t",
            'column "t": .* infinity or a timestamp after 294246; leave these rows',
        ),
        ("SELECT ARRAY[now(), '-infinity'] AS t", 'column "t": .* infinity'),
        ("SELECT date '-infinity' AS d UNION ALL SELECT current_date", 'column "d": .* infinity'),
        ("SELECT time '24:00' AS t", 'column "t": .* the time 24:00'),
        ("SELECT 1 AS n, 2 AS n", 'the answer of the query: two columns are named "n"; rename one'),
    ],
)
def test_a_query_whose_rows_would_come_as_others_is_refused(embedded_lab: EmbeddedLab, query: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        brought(embedded_lab, query)


@pytest.fixture
def types_of_ones_own(embedded_lab: EmbeddedLab) -> Iterator[None]:
    """An enum, a domain over money, and a composite type."""
    made = {"TYPE mood": "AS ENUM ('glad', 'sad')", "DOMAIN price": "AS money", "TYPE pair": "AS (a int, b int)"}
    made |= {"DOMAIN vague": "AS mood"}
    with psycopg.connect(embedded_lab.endpoints["postgres"], autocommit=True) as connection:
        for name, of in made.items():
            connection.execute(f"CREATE {name} {of}")
        yield
        for name in reversed(made):
            connection.execute(f"DROP {name}")


@pytest.mark.usefixtures("types_of_ones_own")
def test_money_comes_with_its_digits_enums_as_their_labels_and_an_oid_without_a_sign(embedded_lab: EmbeddedLab) -> None:
    query = """
        SELECT 1234.5::money AS "a""b", NULL::price AS price, 'sad'::mood AS mood, ARRAY['glad', NULL]::mood[] AS moods,
            'glad'::vague AS vague, 4294967295::oid AS oid, 7 AS n -- these
    """
    user_data = data.from_frame(reading.of_memory(brought(embedded_lab, query)))
    assert user_data.frame.to_dicts() == [
        {
            'a"b': Decimal("1234.50"),
            "price": None,
            "mood": "sad",
            "moods": ["glad", None],
            "vague": "glad",
            "oid": 4294967295,
            "n": 7,
        }
    ]
    with pytest.raises(LabError, match=r'column "p": .* pair unchanged; select "p"::text'):
        brought(embedded_lab, "SELECT (1, 2)::pair AS p")


def test_the_last_timestamps_that_postgres_and_a_frame_have_come_as_they_are(embedded_lab: EmbeddedLab) -> None:
    query = """
        SELECT t, t::date AS d, time '23:59:59.999999' AS h
        FROM unnest(ARRAY[timestamp '294246-12-31 23:59:59', '4713-01-01 BC']) t
    """
    found = brought(embedded_lab, query)
    days = [106_751_981, -2_440_550]
    assert [one.value // (86_400 * 10**6) for one in found["t"]] == days
    assert found["d"].cast(pa.int32()).to_pylist() == days
    assert found["h"].to_pylist() == [dt.time(23, 59, 59, 999_999)] * 2


@pytest.mark.parametrize(
    "query",
    [
        "WITH a AS (SELECT 1 AS n) SELECT * FROM a -- all",
        "SELECT 1 AS n;",
        "SELECT 1 AS n ; ",
        "SELECT 1 AS n; -- all; of it",
        "SELECT 1 AS n /* a /* b */ ; */ ;;\n-- x",
    ],
)
def test_a_query_may_end_as_people_end_them(embedded_lab: EmbeddedLab, query: str) -> None:
    assert brought(embedded_lab, query).to_pylist() == [{"n": 1}]


def test_a_query_with_arrays_brings_its_rows_and_no_more(embedded_lab: EmbeddedLab) -> None:
    query = "SELECT ARRAY[n, NULL] AS pairs, NULL::text[] AS words, n FROM generate_series(1, 2) n -- these"
    found = brought(embedded_lab, query)
    assert found.to_pylist() == [{"pairs": [n, None], "words": None, "n": n} for n in (1, 2)]


LABEL = "CAST('a', 'Enum8(\\'a\\' = 7)')"


def test_types_that_arrow_takes_for_numbers_come_as_they_are(embedded_lab: EmbeddedLab) -> None:
    query = f"""
        SELECT toDateTime('2024-03-31 02:30:00', 'UTC') AS `a"t`, CAST(NULL, 'Nullable(DateTime)') AS none,
            {LABEL} AS label, toIPv4('1.2.3.4') AS ip, toLowCardinality('x') AS few,
            toDateTime64(1, 3, 'UTC') AS fine, unhex('00FF') AS raw -- ;
    """
    own = data.from_frame(reading.of_memory(SYSTEMS["clickhouse"].session.answer(embedded_lab.endpoints, query)[0]))
    assert own.frame.to_dicts() == [
        {
            'a"t': dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC),
            "none": None,
            "label": "a",
            "ip": "1.2.3.4",
            "few": "x",
            "fine": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
            "raw": b"\x00\xff",
        }
    ]


def test_a_query_of_other_types_is_asked_as_it_is() -> None:
    assert (
        as_brought("SELECT 1 AS a", [("a", "UInt8"), ("b", "Enum"), ("c", "Tuple(`x` DateTime64(3))")])
        == "SELECT 1 AS a"
    )


@pytest.mark.parametrize(
    ("of", "named"),
    [
        ("Tuple(DateTime, String)", "DateTime"),
        ("Nullable(UInt256)", "UInt256"),
        ("Map(String, Enum8('DateTime' = 1))", "Enum8"),
        ("Array(Map(String, IPv4))", "IPv4"),
        ("IntervalDay", "IntervalDay"),
        ("Variant(Int32, String)", "Variant"),
        ("Array(Dynamic)", "Dynamic"),
    ],
)
def test_what_has_no_form_is_refused_with_its_column(of: str, named: str) -> None:
    said = f'column "a": a query returns {named} as another type; select toString\\(`a`\\), or give the data as a file'
    with pytest.raises(LabError, match=said):
        as_brought("SELECT a", [("a", of)])


def test_states_of_aggregates_are_refused_and_what_is_simply_aggregated_comes() -> None:
    with pytest.raises(LabError, match=r"returns AggregateFunction as another type; select finalizeAggregation\(`a`\)"):
        as_brought("SELECT a", [("a", "AggregateFunction(sum, UInt8)")])
    assert as_brought("SELECT a", [("a", "SimpleAggregateFunction(sum, UInt64)")]) == "SELECT a"


def test_items_of_lists_and_bytes_inside_others_come_as_they_are(embedded_lab: EmbeddedLab) -> None:
    query = f"""
        SELECT [toDateTime('2024-03-31 02:30:00', 'UTC')] AS moments, [[{LABEL}], []] AS labels,
            [toIPv4('1.2.3.4'), NULL] AS hosts, CAST(1.5, 'BFloat16') AS short,
            [CAST(NULL, 'Nullable(BFloat16)')] AS no,
            [unhex('00FF'), 'a'] AS raw, tuple('é', [unhex('00FF')])::Tuple(t String, r Array(String)) AS both
    """
    found = SYSTEMS["clickhouse"].session.answer(embedded_lab.endpoints, query)[0]
    assert found.to_pylist() == [
        {
            "moments": [dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC)],
            "labels": [["a"], []],
            "hosts": ["1.2.3.4", None],
            "short": 1.5,
            "no": [None],
            "raw": [b"\x00\xff", b"a"],
            "both": {"t": "é", "r": [b"\x00\xff"]},
        }
    ]
    assert str(found.schema.field("short").type) == "float"


SPEC = store.specification("analytics_metrics")


@pytest.mark.parametrize("value", ["on", "off"])
def test_a_session_of_postgres_commits_as_asked_and_keeps_its_search_path(value, embedded_lab):
    of = SYSTEMS["postgres"]
    uri = of.client.transport_uri("postgres", embedded_lab.endpoints["postgres"])
    with psycopg.connect(of.settings.address(uri, {"synchronous_commit": value})) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == (value,)
        assert connection.execute("SHOW search_path").fetchone() == (namespace(),)


def asked(rig, **parameters):
    entry = registry.one("postgres.psycopg.write_polars_tuned")
    case = Case(entry, "an experiment", "analytics_metrics", {"rows": 1, **parameters})
    lab, references, configured = rig
    server_parameters.configure(case, lab, references, configured)
    with psycopg.connect(lab.endpoints["postgres"]) as connection:
        names = ("wal_level", "max_wal_senders", "max_wal_size")
        return tuple(connection.execute(f"SHOW {name}").fetchone()[0] for name in names)


@pytest.mark.long
@pytest.mark.process
def test_the_whole_server_is_set_as_a_case_wants_it_and_as_usual_for_the_next_one(tmp_path):
    usual = ("replica", "10", "1GB")
    with EmbeddedLab(tmp_path, ["postgres"]) as servers:
        restarted = []

        def restart(name):
            restarted.append(name)
            servers.restart(name)

        lab = Lab("embedded", servers.folder, servers.endpoints, None, servers.dead, servers.revive, restart=restart)
        rig = lab, References(servers.endpoints), {}
        with psycopg.connect(servers.endpoints["postgres"], autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        assert asked(rig) == usual
        assert asked(rig, max_wal_mb=32) == ("replica", "10", "32MB")
        assert restarted == []
        assert asked(rig, wal_level="minimal") == ("minimal", "0", "1GB")
        assert asked(rig, wal_level="minimal") == ("minimal", "0", "1GB")
        assert restarted == ["postgres"]
        assert asked(rig, wal_level="logical", max_wal_mb=64) == ("logical", "10", "64MB")
        assert asked(rig) == usual
        assert restarted == ["postgres"] * 3
        with psycopg.connect(servers.endpoints["postgres"]) as connection:
            assert connection.execute("SELECT n FROM kept").fetchone() == (7,)
        with pytest.raises(LabError, match="wal_level most: choose from minimal, replica, logical"):
            asked(rig, wal_level="most")
        rig[1].close(lambda system: None)


def test_what_is_of_the_whole_server_is_not_set_on_servers_of_others():
    entry = registry.one("postgres.psycopg.write_polars_tuned")
    lab = Lab("external", None, {}, None, list, list)
    for name, of_all in (("wal_level", True), ("max_wal_mb", True), ("indexes", False)):
        reason = server_parameters.unavailable(
            Case(entry, "an experiment", "analytics_metrics", {"rows": 1, name: 1}), lab
        )
        assert (reason or "").startswith(f"{name} is of the whole server") is of_all


def test_the_log_and_the_checkpoints_of_a_write_are_counted(embedded_lab):
    of, references = SYSTEMS["postgres"], References(embedded_lab.endpoints)
    parameters = {"max_wal_mb": 1_024}
    ask = functools.partial(references.ask, "postgres")
    ask(of.client.create, "counted", of.tables.definition(SPEC, "heap"))
    for statement in of.settings.statements(SPEC, "counted", parameters):
        ask(of.client.say, statement)
    ask(of.client.say, "CREATE TABLE filling AS SELECT repeat(md5(n::text), 10) AS t FROM generate_series(1, 10000) n")
    ask(of.client.say, "CHECKPOINT")
    ask(of.client.say, "DROP TABLE filling")
    found = ask(of.settings.left, "counted", parameters)
    assert found["wal_bytes"] > 3_200_000
    assert found["checkpoints"] >= 1
    assert ask(of.settings.left, "counted", {}).keys() == {"table_bytes"}
    ask(of.client.drop, "counted")
    references.close(lambda system: None)


def test_an_unknown_way_to_commit_and_more_indexes_than_columns_are_refused():
    settings = SYSTEMS["postgres"].settings
    with pytest.raises(LabError, match="synchronous_commit sometimes: choose on or off"):
        settings.address("postgresql://h/d", {"synchronous_commit": "sometimes"})
    with pytest.raises(LabError, match="indexes 13: choose at most 12 for analytics_metrics"):
        settings.statements(SPEC, "t", {"indexes": 13})


@pytest.mark.parametrize("name", [name for name, of in SYSTEMS.items() if not of.lacks("settings")])
def test_without_a_parameter_nothing_is_set(name):
    settings = SYSTEMS[name].settings
    assert settings.address("made://up/?a=b", {"rows": 1}) == "made://up/?a=b"
    assert settings.statements(SPEC, "t", {"rows": 1}) == []


def test_blocks_of_clickhouse_are_set_next_to_what_the_address_has():
    address = SYSTEMS["clickhouse"].settings.address("http://h:1/?database=d", {"insert_block_rows": 7})
    assert address.startswith("http://h:1/?database=d&max_insert_block_size=7&")
    assert "min_insert_block_size_bytes=0" in address


@pytest.mark.parametrize("part", system.OPTIONAL)
def test_a_room_without_a_part_that_it_may_go_without_says_so_where_it_is_asked_for(part, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for of in SYSTEMS.values():
        said = f"harness/systems/{of.name}/{part}.py is missing: {system.OPTIONAL[part]}"
        assert of.lacks(part) == said
        with pytest.raises(LabError, match=re.escape(said)):
            getattr(of, part)


# Addresses that lead to a server, with their databases; files have none.
SERVED = {address.name: name for name, of in SYSTEMS.items() for address in of.addresses if address.port}


def test_a_wrong_password_is_reported_without_the_password(embedded_lab: EmbeddedLab) -> None:
    for name in SERVED:
        uri = embedded_lab.endpoints[name]
        user, _, rest = uri.partition("://")[2].partition(":")
        wrong = f"{uri.partition('://')[0]}://{user}:wr0ng-secret@{rest.partition('@')[2]}"
        with one_line(r"(?i)password|authentication") as caught:
            SYSTEMS[SERVED[name]].client.check(embedded_lab.endpoints | {name: wrong})
        assert "wr0ng-secret" not in str(caught.value)


@pytest.mark.parametrize("name", SERVED)
def test_an_unreachable_server_is_reported_at_once_with_host_and_port(name: str, embedded_lab: EmbeddedLab) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        port = taken.getsockname()[1]
        scheme = embedded_lab.endpoints[name].partition("://")[0]
        endpoints = embedded_lab.endpoints | {name: f"{scheme}://lab:secret@127.0.0.1:{port}/"}
        with pytest.raises(LabError, match=f"cannot reach 127.0.0.1:{port}"):
            SYSTEMS[SERVED[name]].client.check(endpoints)


def test_a_server_that_accepts_and_says_nothing_is_given_up(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "CONNECT_SECONDS", 2)
    with socket.socket() as silent, ThreadPoolExecutor() as at_once:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = f"127.0.0.1:{silent.getsockname()[1]}"

        def given_up(name: str) -> float:
            uri = f"{embedded_lab.endpoints[name].partition('://')[0]}://lab:secret@{place}/"
            started = time.monotonic()
            with pytest.raises(LabError, match=place):
                SYSTEMS[SERVED[name]].client.check(embedded_lab.endpoints | {name: uri})
            return time.monotonic() - started

        assert max(at_once.map(given_up, SERVED)) < 60  # clients alone would wait for ever


def test_the_servers_lock_names_the_run_that_holds_it(embedded_lab: EmbeddedLab) -> None:
    first, second = (postgres.open_connection(embedded_lab.endpoints) for _ in range(2))
    assert postgres.hold(first, "run-1") == ""
    assert postgres.hold(second, "run-2") == "run-1"
    first.close()
    until(lambda: postgres.hold(second, "run-2") == "")  # the server ends the process shortly after the good-bye
    second.close()


def test_a_client_that_tries_again_over_another_connection_is_cut_again():
    ends, used = [socket.socketpair() for _ in range(3)], []

    def persistent():
        for mine, _ in ends:
            used.append(mine)
            mine.recv(1)

    with pytest.raises(NoAnswer):
        within(0.2, "made up", "asking", persistent, lambda: used[-1].shutdown(socket.SHUT_RDWR))
    assert len(used) == 3
    assert not [thread for thread in threading.enumerate() if thread.name == "made up asking"]


def test_a_connection_is_not_closed_under_a_call_that_goes_on(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing it there crashes clients in C, and the lab with them."""
    monkeypatch.setattr(reference, "_CUT_SECONDS", 0.1)
    one = Reference(SYSTEMS["postgres"], embedded_lab.endpoints, 0.2)
    one.greet()
    closed: list[bool] = []
    monkeypatch.setattr(one._connection, "close", lambda: closed.append(True))
    goes_on, go = one._connection, threading.Event()
    with pytest.raises(NoAnswer, match="did not answer within 0 s"):
        one.ask(lambda _: go.wait(30))
    one.close()
    assert closed == []
    assert goes_on in reference._ABANDONED
    go.set()
    one.greet()  # over a new one
    one.close()


@pytest.mark.long
def test_a_connection_whose_calls_have_answered_is_closed(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the thread of the last call has answered but has not ended yet."""
    before = list(reference._ABANDONED)
    for _ in range(20):
        one = Reference(SYSTEMS["postgres"], embedded_lab.endpoints, 20.0)
        one.greet()
        closed: list[bool] = []
        close = one._connection.close
        monkeypatch.setattr(one._connection, "close", lambda closed=closed, close=close: closed.append(close() is None))
        one.close()
        assert closed == [True]
    assert before == reference._ABANDONED


def test_a_call_whose_thread_had_only_begun_when_a_signal_came_is_not_made(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is then closed; during a call, this crashed the lab."""
    one = Reference(SYSTEMS["postgres"], embedded_lab.endpoints, 20.0)
    one.greet()
    begun: list[threading.Thread] = []
    made: list[bool] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if not begun:
            begun.append(thread)
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.ask(lambda _: made.append(True))
    begun[0].join(60)
    assert not begun[0].is_alive()
    assert made == []
    assert one._connection is None
