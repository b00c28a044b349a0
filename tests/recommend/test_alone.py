"""The column at which transports fail, found by calls with a single column on real engines."""

import datetime as dt
import time
from pathlib import Path

import polars as pl
import pytest

from harness import registry
from harness.datasets.user_data import data
from harness.lab.labs import Lab
from harness.lab.reference import References
from harness.machine.variables import namespace
from harness.model import Operation
from harness.recommend import judging
from harness.recommend.alone import failing
from harness.recommend.eligible import Asked
from harness.recommend.race import Race
from harness.recommend.racing import Racing, Track
from harness.run.rigs.databases import DatabaseRig
from harness.run.rigs.networks import Networks
from harness.systems.postgres import client

ALL, NO_TIME, NO_BYTES = (
    registry.one(f"postgres.{name}")
    for name in (
        "psycopg.write_polars_tuned",
        "pgpq.write_polars_copy_binary_sorted",
        "psycopg.write_polars_copy_csv_lossless",
    )
)
READS = registry.one("postgres.psycopg.read_polars_tuned")
OWN = data.from_frame(
    pl.DataFrame({"id": [1, 2], "raw": [b"\0\xff", None], "opens": [dt.time(9), None], "key": [b"a", b"b"]}), ["id"]
)


@pytest.fixture
def rig(lab_of_tests: Lab, tmp_path: Path) -> DatabaseRig:
    references = References(lab_of_tests.endpoints)
    return DatabaseRig(lab_of_tests, {}, references, {}, "no S3 in this test", "", tmp_path, Networks("no links"))


@pytest.mark.long
def test_each_transport_is_found_to_fail_at_the_columns_that_it_does_not_bring_through_and_nothing_is_left(
    rig: DatabaseRig,
) -> None:
    later = time.monotonic() + 60
    found = failing(rig, OWN, [ALL, NO_TIME, NO_BYTES, READS], ["raw", "opens"], later)
    assert found == {NO_TIME.id: {"opens"}, NO_BYTES.id: {"raw"}}
    question = f"SELECT tablename FROM pg_tables WHERE schemaname = '{namespace()}' AND tablename LIKE 'own_9%'"
    assert rig.references.ask("postgres", client.query, question) == []


def test_where_there_is_no_time_left_nothing_is_tried(rig: DatabaseRig) -> None:
    assert failing(rig, OWN, [NO_BYTES], ["raw"], time.monotonic() - 1) == {}


def test_a_race_that_none_comes_through_asks_for_one_column_of_each_type_that_none_declares() -> None:
    asked_for = []

    def alone(entries: object, columns: object) -> dict[str, set[str]]:
        asked_for.append((entries, columns))
        return {NO_TIME.id: {"opens"}, NO_BYTES.id: {"opens", "raw"}}

    asked = Asked(data=OWN, system="postgres", operation=Operation.WRITE, frame="polars", budget=60.0)
    entries = {entry.id: entry for entry in (NO_TIME, NO_BYTES)}
    track = Track("an-id", "embedded", Path(), lambda runs, on_row: None, alone=alone)  # type: ignore[arg-type]
    under_way = Racing(asked, Race(list(entries), OWN.rows, 1), entries, [], [], track, begun=True)
    under_way.race.out = dict.fromkeys(entries, 'unsupported: binary (column "raw" and 1 more) or time: TypeError')
    under_way.perform(lambda row: None)
    assert asked_for == [([NO_TIME, NO_BYTES], ["raw", "opens"])]
    assert 'column "opens" (time) alone rules out 2, column "raw" (binary) alone rules out 1' in judging._nobody(
        under_way
    )
