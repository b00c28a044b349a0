"""Rows that a table has before a write: other keys, removed again before the written ones are compared."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.datasets.specification import Specification
from harness.lab.embedded import EmbeddedLab
from harness.model import LabError
from harness.systems.postgres import client, settings

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
    with pytest.raises(LabError, match="rows_before: the key of before is not a uuid; leave the parameter out"):
        settings.filled(Specification("before", 1, {"n": "int32"}, ("n",), 9, SPEC.build), "written", "source", 1)
