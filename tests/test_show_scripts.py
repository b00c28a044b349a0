"""The scripts that `lab show` prints do what their transports do, on real engines and without this project."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from harness import registry
from harness.check import stores, sums, unloaded
from harness.datasets import benchmark_input, lineitem, raw_csv, store
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.lineitem import Layout
from harness.datasets.user_data import data
from harness.fidelity import tables
from harness.lab.availability import missing_package
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.model import Operation, Origin, Transport
from harness.show import TYPE, ZONE, script
from harness.systems import SYSTEMS
from tests.scripts import Scripts

IN_DATABASES = registry.select("postgres.*,clickhouse.*")
WITHOUT = {"pg_parquet", "s3"}  # what the servers of these tests do not have
RUNNABLE = [
    entry
    for entry in IN_DATABASES
    if entry.origin not in (Origin.LIMIT, Origin.CONTROL)
    and not WITHOUT & {*entry.needs}
    and entry.settings.get("async_insert") != "1"  # which the embedded engine cannot do, and says so
]
# Of each module beyond the article the first write and the first read: a script is made from its module.
FIRST = {(entry.function.__module__, entry.operation): entry for entry in reversed(RUNNABLE) if not entry.published}
PARTS = (Operation.LOAD, Operation.UNLOAD)
DATABASES = [
    entry for entry in RUNNABLE if entry.operation not in PARTS and (entry.published or entry in FIRST.values())
]
# Of one process, in this environment; those of engines have tests of their own (tests/transports).
STREAMS = [entry for entry in RUNNABLE if entry.operation in PARTS and not entry.engine and entry.client != "daft"]
BOUNDS = [entry for entry in IN_DATABASES if entry.origin is Origin.LIMIT]
SCANS = registry.select("parquet.*")
TRANSFORMS = registry.select("elt.*")
TABLE = "the table"
JOBS = {
    "tuning.duckdb.group_by": (TABLE, "2"),
    "tuning.duckdb.jaro_winkler": (TABLE, "2"),
    "tuning.duckdb.side_by_side": (TABLE, "2", "2"),
    "tuning.duckdb.in_a_row": (TABLE, "2", "2"),
    "tuning.duckdb.create_table": (TABLE, "made.duckdb"),
    "tuning.duckdb.create_table_with_wal": (TABLE, "made.duckdb"),
    "tuning.posix.sequential_write": ("written", "100"),
    "tuning.numexpr.triad": ("1000", "1"),
}  # the others need an S3 server, or counters
CREATES = registry.select("stores_*.create")
ROWS = 500
STORED_ROWS = 5_000  # about 5 of them pass the filter


def first_of_each(entries: list[Transport]) -> list[object]:
    """Mark as long all but the first of each system and operation; those are dealt out in three parts."""
    first = {(entry.system, entry.operation): entry for entry in reversed(entries)}
    others = [entry for entry in entries if entry not in first.values()]
    return [
        *(pytest.param(entry, id=entry.id) for entry in first.values()),
        *(pytest.param(entry, id=f"{entry.id}@{n % 3}", marks=pytest.mark.long) for n, entry in enumerate(others)),
    ]


Output = Callable[..., str]


@pytest.fixture
def output(scripts: Scripts, tmp_path: Path) -> Output:
    """Run a transport's script as a person does who has only the script, and return what it prints."""

    def of(entry: Transport, *arguments: object) -> str:
        path = tmp_path / f"{entry.id}.py"
        path.write_text(script(entry))
        done = scripts.run(path, *arguments, modules=entry.requires)
        if re.match(r"(\S+\.)?Unsupported(Type)?: ", last := (done.err.splitlines() or [""])[-1]):
            pytest.skip(last)
        assert done.status == 0, done.err
        return done.out

    return of


def last_number(printed: str) -> int:
    """Return the number in the last line: what stands before is a client's own log."""
    return int(printed.splitlines()[-1])


@pytest.mark.long
@pytest.mark.parametrize("entry", first_of_each(DATABASES))
def test_the_script_of_a_database_writes_or_reads_the_table(
    entry: Transport, embedded_lab: EmbeddedLab, dataset_folder: Path, output: Output
) -> None:
    dataset, warmup = (store.ensure(dataset_folder, "analytics_metrics", rows, 1) for rows in (ROWS, 1_000))
    tables = Tables(References(embedded_lab.endpoints), store.specification("analytics_metrics"), dataset, warmup)
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, embedded_lab.endpoints[entry.endpoint])
    if entry.operation is Operation.WRITE:
        table, _ = tables.for_write(entry.system)
        assert f"{ROWS} rows written" in output(entry, uri, table, dataset.path)
        assert tables.differences_in_table(entry.system, table) == []
    else:
        table, _ = tables.for_read(entry.system)
        assert str(ROWS) in output(entry, uri, table)
    tables.references.close(tables.drop)


MOVING = [entry for entry in RUNNABLE if ZONE in entry.lossy and TYPE not in entry.lossy]


@pytest.mark.long
@pytest.mark.parametrize("entry", MOVING, ids=lambda entry: entry.id)
def test_the_script_of_a_client_that_moves_timestamps_moves_none_in_another_zone(
    entry: Transport, embedded_lab: EmbeddedLab, tmp_path: Path
) -> None:
    """In a process of its own: clients remember the first zone that they find."""
    user_data = data.from_frame(tables.one(KINDS[ZONE], entry.system).rows)
    dataset = user_data.dataset(tmp_path, user_data.rows, bytes(32))
    of_lab = Tables(References(embedded_lab.endpoints), user_data.specification, dataset, dataset)
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, embedded_lab.endpoints[entry.endpoint])
    path, (table, _) = tmp_path / "moving.py", of_lab.for_write(entry.system)
    path.write_text(script(entry))
    variables = {"PATH": os.environ["PATH"], "TZ": KINDS[ZONE].zone}
    command = (sys.executable, str(path), uri, table, dataset.path)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert of_lab.differences_in_table(entry.system, table) == []
    of_lab.references.close(of_lab.drop)


@pytest.mark.long
@pytest.mark.parametrize("entry", first_of_each(STREAMS))
def test_the_script_of_a_stream_loads_or_unloads_the_table(
    entry: Transport, embedded_lab: EmbeddedLab, dataset_folder: Path, tmp_path: Path, output: Output
) -> None:
    dataset, warmup = (store.ensure(dataset_folder, "analytics_metrics", rows, 1) for rows in (ROWS, 1_000))
    tables = Tables(References(embedded_lab.endpoints), store.specification("analytics_metrics"), dataset, warmup)
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, embedded_lab.endpoints[entry.endpoint])
    if entry.operation is Operation.LOAD:
        table, _ = tables.for_write(entry.system)
        assert "done" in output(entry, uri, dataset.path, table)
        assert tables.differences_in_table(entry.system, table) == []
    else:
        table, _ = tables.for_read(entry.system)
        (folder := tmp_path / "unloaded").mkdir()
        assert "done" in output(entry, uri, table, folder)
        found, _ = unloaded.summed(folder, tables.logical_types)
        assert sums.differences(tables.expected_sums, found) == []
    tables.references.close(tables.drop)


@pytest.mark.long
@pytest.mark.parametrize("entry", BOUNDS, ids=lambda entry: entry.id)
def test_the_script_of_a_bound_does_what_it_says(
    entry: Transport, embedded_lab: EmbeddedLab, dataset_folder: Path, output: Output
) -> None:
    dataset, warmup = (store.ensure(dataset_folder, "analytics_metrics", rows, 1) for rows in (ROWS, 1_000))
    tables = Tables(References(embedded_lab.endpoints), store.specification("analytics_metrics"), dataset, warmup)
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, embedded_lab.endpoints[entry.endpoint])
    if entry.operation is Operation.WRITE:
        source, _ = tables.for_copying(entry.system, in_key_order=entry.frame == "sorted table")
        table, _ = tables.for_write(entry.system)
        assert "done" in output(entry, uri, source, table)
        assert tables.differences_in_table(entry.system, table) == []
    elif entry.operation is Operation.READ:
        table, _ = tables.for_read(entry.system)
        assert f"{ROWS} rows thrown away" in output(entry, uri, table)
    else:
        tables.references.greet(entry.system)  # which makes the namespace, if it is not there
        assert last_number(output(entry, uri)) == 1
    tables.references.close(tables.drop)


@pytest.mark.long
@pytest.mark.parametrize("entry", first_of_each(SCANS))
def test_the_script_of_a_scan_counts_the_rows_of_all_files(
    entry: Transport, dataset_folder: Path, tmp_path: Path, output: Output
) -> None:
    layouts = [Layout(0.02, 2, first, 1) for first in range(2)]
    files = lineitem.ensure_all(dataset_folder / "lineitem", layouts).values()
    printed = output(entry, tmp_path, *(file.path for file in files))
    assert last_number(printed) == sum(file.matches for file in files)


@pytest.mark.long
@pytest.mark.parametrize("entry", TRANSFORMS, ids=lambda entry: entry.id)
def test_the_script_of_a_transform_makes_one_file_of_all_rows(entry: Transport, tmp_path: Path, output: Output) -> None:
    tree, result = raw_csv.ensure(tmp_path, ROWS, 1, print), tmp_path / "result.parquet"
    (tmp_path / "scratch").mkdir()
    assert str(result) in output(entry, tmp_path / "scratch", tree.raw, result)
    assert len(pl.read_parquet(result)) == ROWS


@pytest.mark.long
@pytest.mark.parametrize(("name", "arguments"), JOBS.items(), ids=JOBS)
def test_the_script_of_a_job_prints_its_answer(
    name: str, arguments: tuple[str, ...], tmp_path: Path, output: Output
) -> None:
    entry = registry.one(name)
    if reason := missing_package(entry):
        pytest.skip(reason)
    table = benchmark_input.ensure(tmp_path, ROWS, 2, 1, print)
    given = [table.pattern if argument == TABLE else argument for argument in arguments]
    printed = output(entry, tmp_path, *given)
    known = {"group_by": str(table.answers.top), "side_by_side": str([table.answers.top] * 2), "triad": "[3.5]"}
    known |= {"jaro_winkler": f"{table.answers.similarity_sum:.6f}"[:-3], "sequential_write": "100"}
    assert known.get(entry.function.__name__, str(ROWS if "create" in name else table.answers.top)) in printed


@pytest.mark.long
@pytest.mark.parametrize("create", CREATES, ids=lambda entry: entry.id)
def test_the_scripts_of_a_store_create_read_and_query_it(
    create: Transport, dataset_folder: Path, tmp_path: Path, output: Output
) -> None:
    dataset, folder = store.ensure(dataset_folder, "integers", STORED_ROWS, 1), tmp_path / "store"
    folder.mkdir()
    expected = pl.read_parquet(dataset.path)
    assert f"{STORED_ROWS} rows stored" in output(create, folder, dataset.path)
    stored = pl.DataFrame(stores.fetch(create.client, folder, expected.columns))
    assert stored.sort(expected.columns).equals(expected.sort(expected.columns))
    read, query = (registry.one(create.id.replace("create", name)) for name in ("read", "query"))
    assert last_number(output(read, folder)) == STORED_ROWS
    wanted = expected.filter(pl.col("col1") > 100, pl.col("col97") < 1_000)
    assert last_number(output(query, folder)) == len(wanted) > 0
