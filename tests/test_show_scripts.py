"""The scripts that `lab show` prints do what their transports do, on real engines and without this project."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from harness.lab.embedded import EmbeddedLab
from harness.lab.packages import not_installed
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.model import Operation, Origin, Transport
from harness.show import TYPE, ZONE, script
from harness.systems import SYSTEMS
from tests.commands import succeeded
from tests.scripts import Scripts

IN_DATABASES = registry.select("postgres.*,clickhouse.*")
WITHOUT = {"pg_parquet", "s3"}  # extensions that the servers of these tests do not have
RUNNABLE = [
    entry
    for entry in IN_DATABASES
    if entry.origin not in (Origin.LIMIT, Origin.CONTROL)
    and not WITHOUT & {*entry.needs}
    and entry.settings.get("async_insert") != "1"  # which the embedded engine cannot do, and says so
]
# The first write and the first read of each module beyond the article, because a script is made from its module.
FIRST = {(entry.function.__module__, entry.operation): entry for entry in reversed(RUNNABLE) if not entry.published}
PARTS = (Operation.LOAD, Operation.UNLOAD)
DATABASES = [
    entry for entry in RUNNABLE if entry.operation not in PARTS and (entry.published or entry in FIRST.values())
]
# Transports of one process, in this environment; those of engines have separate tests (tests/transports).
STREAMS = [entry for entry in RUNNABLE if entry.operation in PARTS and not entry.engine and entry.client != "daft"]
SCANS = registry.select("parquet.*")
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
}  # the rest need an S3 server, or counters
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
    """Run a transport's script as a user who has only the script, and return its output."""

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
    """Return the number in the last line; the lines before it are a client's log."""
    return int(printed.splitlines()[-1])


@contextmanager
def tables_for(entry: Transport, lab: EmbeddedLab, folder: Path) -> Iterator[tuple[Tables, str, str]]:
    """Yield tables of the lab's data, the address that a script is given, and the file of the data."""
    dataset, warmup = (store.ensure(folder, "analytics_metrics", rows, 1) for rows in (ROWS, 1_000))
    made = Tables(References(lab.endpoints), store.specification("analytics_metrics"), dataset, warmup)
    made.references.greet(entry.system)  # which makes the namespace, if it is not there
    yield made, SYSTEMS[entry.system].client.transport_uri(entry.endpoint, lab.endpoints[entry.endpoint]), dataset.path
    made.references.close(made.drop)


@pytest.mark.long
@pytest.mark.parametrize(
    "entry",
    [
        *first_of_each(DATABASES),
        *first_of_each(STREAMS),
        *(pytest.param(one, id=one.id) for one in IN_DATABASES if one.origin is Origin.LIMIT),
    ],
)
def test_the_script_of_a_database_moves_the_table(
    entry: Transport, embedded_lab: EmbeddedLab, dataset_folder: Path, tmp_path: Path, output: Output
) -> None:
    with tables_for(entry, embedded_lab, dataset_folder) as (made, uri, path):
        bound = entry.origin is Origin.LIMIT
        if entry.operation is Operation.CALL:
            assert last_number(output(entry, uri)) == 1
        elif entry.operation is Operation.READ:
            found = output(entry, uri, made.for_read(entry.system)[0])
            assert (f"{ROWS} rows thrown away" if bound else str(ROWS)) in found
        elif entry.operation is Operation.UNLOAD:
            (folder := tmp_path / "unloaded").mkdir()
            assert "done" in output(entry, uri, made.for_read(entry.system)[0], folder)
            found, _ = unloaded.summed(folder, made.logical_types)
            assert sums.differences(made.expected_sums, found) == []
        else:
            source = made.for_copying(entry.system, in_key_order=entry.frame == "sorted table")[0] if bound else path
            table, _ = made.for_write(entry.system)
            done = "done" if bound or entry.operation is Operation.LOAD else f"{ROWS} rows written"
            given = (source, table) if done == "done" else (table, source)
            assert done in output(entry, uri, *given)
            assert made.differences_in_table(entry.system, table) == []


MOVING = [entry for entry in RUNNABLE if ZONE in entry.lossy and TYPE not in entry.lossy]


@pytest.mark.long
@pytest.mark.parametrize("entry", MOVING, ids=lambda entry: entry.id)
def test_the_script_of_a_client_that_moves_timestamps_moves_none_in_another_zone(
    entry: Transport, embedded_lab: EmbeddedLab, tmp_path: Path
) -> None:
    """In a separate process: clients remember the first zone that they find."""
    user_data = data.from_frame(tables.one(KINDS[ZONE], entry.system).rows)
    dataset = user_data.dataset(tmp_path, user_data.rows, bytes(32))
    of_lab = Tables(References(embedded_lab.endpoints), user_data.specification, dataset, dataset)
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, embedded_lab.endpoints[entry.endpoint])
    path, (table, _) = tmp_path / "moving.py", of_lab.for_write(entry.system)
    path.write_text(script(entry))
    variables = {"PATH": os.environ["PATH"], "TZ": KINDS[ZONE].zone}
    command = (sys.executable, str(path), uri, table, dataset.path)
    succeeded(subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, cwd=tmp_path))
    assert of_lab.differences_in_table(entry.system, table) == []
    of_lab.references.close(of_lab.drop)


@pytest.mark.long
@pytest.mark.parametrize("entry", first_of_each(SCANS))
def test_the_script_of_a_scan_counts_the_rows_of_all_files(
    entry: Transport, dataset_folder: Path, tmp_path: Path, output: Output
) -> None:
    layouts = [Layout(0.02, 2, first, 1) for first in range(2)]
    files = lineitem.ensure_all(dataset_folder / "lineitem", layouts, print).values()
    printed = output(entry, tmp_path, *(file.path for file in files))
    assert last_number(printed) == sum(file.matches for file in files)


@pytest.mark.long
@pytest.mark.parametrize("entry", registry.select("elt.*"), ids=lambda entry: entry.id)
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
    if reason := not_installed(entry.requires):
        pytest.skip(reason)
    table = benchmark_input.ensure(tmp_path, ROWS, 2, 1, print)
    given = [table.pattern if argument == TABLE else argument for argument in arguments]
    printed = output(entry, tmp_path, *given)
    known = {"group_by": str(table.answers.top), "side_by_side": str([table.answers.top] * 2), "triad": "[3.5]"}
    known |= {"jaro_winkler": f"{table.answers.similarity_sum:.6f}"[:-3], "sequential_write": "100"}
    assert known.get(entry.function.__name__, str(ROWS if "create" in name else table.answers.top)) in printed


@pytest.mark.long
@pytest.mark.parametrize("create", registry.select("stores_*.create"), ids=lambda entry: entry.id)
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
