"""Loads and unloads by Dask, on workers that are processes and on real servers: a few every day, all at length."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from harness import registry
from harness.check import sums
from harness.check.sums import Sums
from harness.lab.embedded import EmbeddedLab
from harness.model import Workers
from harness.transports.dask import client_of, done
from harness.transports.parts import row_groups
from harness.transports.postgres import dask as of_postgres
from tests.calls import each
from tests.every import every
from tests.streams import SPEC, Table

pytestmark = pytest.mark.long

ROWS, PARTS = 2_000, 4
OF_DASK = registry.select("*.dask.*")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """A scheduler with two workers, which all tests share; no process has its address yet."""
    folder = str(tmp_path_factory.mktemp("workers"))
    with client_of(Workers(2, "", folder=folder), []) as client:
        yield Workers(2, "", client.scheduler.address, folder)


@pytest.fixture
def table(embedded_lab: EmbeddedLab) -> Iterator[Callable[..., Table]]:
    """Make a table of a system; it is dropped at the end."""
    made: list[Table] = []

    def make(system: str, endpoint: str) -> Table:
        made.append(Table(system, endpoint, embedded_lab))
        return made[-1]

    yield make
    for one in made:
        one.discard()


def moved(entry: Any, made: Table, workers: Workers, source: str, folder: Path) -> Sums:
    """Call a transport on a table and return the sums of the rows it loaded or unloaded."""
    with registry.connect_of(entry)(made.uri, replace(workers, uri=made.uri)) as connection:
        return made.moved(entry, connection, source, folder)


@each(OF_DASK)
def test_what_dask_moves_arrives_exact(
    entry: Any, table: Callable[..., Table], cluster: Workers, source: str, tmp_path: Path
) -> None:
    found = moved(entry, table(entry.system, entry.endpoint), cluster, source, tmp_path / "unloaded")
    assert sums.differences(sums.of_parquet(source, SPEC.logical_types), found) == []


def test_its_own_workers_do_the_same(table: Callable[..., Table], source: str, tmp_path: Path) -> None:
    made = table("postgres", "postgres")
    (tmp_path / "workers").mkdir()
    own = Workers(2, made.uri, folder=str(tmp_path / "workers"))
    found = moved(registry.one("postgres.dask.load_copy"), made, own, source, tmp_path / "unloaded")
    assert sums.differences(sums.of_parquet(source, SPEC.logical_types), found) == []


def test_workers_of_another_version_are_refused(cluster: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", {"dask": "1.0"}.get)
    with (
        pytest.raises(RuntimeError, match=r"a worker runs .*dask 20.*, and the driver .*dask 1\.0"),
        client_of(cluster, ["pandas"]),
    ):
        pass


def test_a_cluster_of_fewer_workers_is_refused(cluster: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.transports.dask.PATIENCE_SECONDS", 1)
    with pytest.raises(TimeoutError, match="2/3 workers"), client_of(replace(cluster, number=3), []):
        pass


NUMBER, TIME = sa.Column("number", sa.BigInteger, nullable=False), sa.Column("time", sa.TIMESTAMP, nullable=False)
KEY, TEXT = sa.Column("key", sa.Integer, primary_key=True), sa.Column("text", sa.Text, nullable=False)


@every(
    [((NUMBER, TIME), "number"), ((TEXT, TIME, NUMBER), "time"), ((NUMBER, KEY), "key")],
    lambda case: case[1],
)
def test_a_table_is_divided_by_a_column_of_numbers_or_times_and_best_by_its_key(case: Any) -> None:
    made, wanted = case
    assert of_postgres._dividing(made) == wanted


def test_a_table_without_such_a_column_is_not_divided() -> None:
    nullable = sa.Column("number", sa.Integer)
    with pytest.raises(registry.Unsupported, match="whole numbers or timestamps without nulls"):
        of_postgres._dividing((TEXT, nullable))


@pytest.mark.parametrize(("system", "endpoint"), [("postgres", "postgres"), ("clickhouse", "clickhouse_http")])
def test_a_part_whose_worker_is_killed_after_it_is_there_twice_but_not_where_that_is_seen_to(
    system: str, endpoint: str, table: Callable[..., Table], source: str, tmp_path: Path
) -> None:
    made = table(system, endpoint)
    with client_of(Workers(2, made.uri, folder=str(tmp_path)), []) as client:
        made.killed_in_a_part(source, tmp_path, lambda dying: done(client, dying, row_groups(source)))


@pytest.mark.parametrize("name", ["postgres.dask.load_copy_staged", "clickhouse.dask.load_insert_staged"])
def test_a_part_that_fails_leaves_nothing_of_a_staged_load(
    name: str, table: Callable[..., Table], cluster: Workers, source: str, spoilt: str, tmp_path: Path
) -> None:
    entry = registry.one(name)
    made = table(entry.system, entry.endpoint)
    with pytest.raises(Exception, match=r"(?i)uuid"):
        moved(entry, made, cluster, spoilt, tmp_path / "unloaded")
    assert made.sums().rows == 0
    assert (
        sums.differences(sums.of_parquet(source, SPEC.logical_types), moved(entry, made, cluster, source, tmp_path))
        == []
    )
