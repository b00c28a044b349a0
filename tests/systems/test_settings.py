"""Parts that a database package may lack, and server settings that are parameters of a case, on real servers."""

import functools
import re

import psycopg
import pytest

from harness import registry
from harness.datasets import store
from harness.lab.embedded import EmbeddedLab
from harness.lab.labs import Lab
from harness.lab.reference import References
from harness.machine.variables import namespace
from harness.model import Case, LabError
from harness.run.rigs import server_parameters
from harness.systems import SYSTEMS, system

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
