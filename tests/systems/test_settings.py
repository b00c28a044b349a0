"""Settings of servers that are parameters of a case, on real servers."""

import psycopg
import pytest

from harness.datasets import store
from harness.model import LabError
from harness.systems import SYSTEMS

SPEC = store.specification("analytics_metrics")


@pytest.mark.parametrize("value", ["on", "off"])
def test_a_session_of_postgres_commits_as_asked_and_keeps_its_search_path(value, embedded_lab):
    of = SYSTEMS["postgres"]
    uri = of.client.transport_uri("postgres", embedded_lab.endpoints["postgres"])
    with psycopg.connect(of.settings.address(uri, {"synchronous_commit": value})) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == (value,)
        assert connection.execute("SHOW search_path").fetchone() == ("dataframe_io_lab",)


def test_an_unknown_way_to_commit_and_more_indexes_than_columns_are_refused():
    settings = SYSTEMS["postgres"].settings
    with pytest.raises(LabError, match="expected synchronous_commit to be on or off, found sometimes"):
        settings.address("postgresql://h/d", {"synchronous_commit": "sometimes"})
    with pytest.raises(LabError, match="expected at most 12 indexes of analytics_metrics, found 13"):
        settings.statements(SPEC, "t", {"indexes": 13})


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_a_parameter_nothing_is_set(system):
    settings = SYSTEMS[system].settings
    assert settings.address("made://up/?a=b", {"rows": 1}) == "made://up/?a=b"
    assert settings.statements(SPEC, "t", {"rows": 1}) == []


def test_blocks_of_clickhouse_are_set_beside_what_the_address_has():
    address = SYSTEMS["clickhouse"].settings.address("http://h:1/?database=d", {"insert_block_rows": 7})
    assert address.startswith("http://h:1/?database=d&max_insert_block_size=7&")
    assert "min_insert_block_size_bytes=0" in address
