"""The rig of databases: several sizes, datasets, calls and clients in one run, and a suite in one file."""

import tempfile
from collections import namedtuple
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import registry
from harness.datasets import store
from harness.lab.reference import References
from harness.lab.tables import MOST, Tables, places
from harness.machine import inventory
from harness.model import Case, LabError, Status
from harness.results import runs_csv
from harness.run.rigs import databases, elt, server_parameters, stores, tuning
from harness.settings import Settings
from harness.systems import SYSTEMS
from tests.commands import one_line, ran
from tests.run.rigs import orders
from tests.run.rigs.orders import case, order


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_tables_of_two_sizes_are_next_to_each_other_and_are_dropped_by_the_next_run(
    system, embedded_lab, dataset_folder
):
    spec, references = store.specification("analytics_metrics"), References(embedded_lab.endpoints)
    warmup = store.ensure(dataset_folder, spec.name, 1_000, 1)
    small, large = (
        Tables(references, spec, store.ensure(dataset_folder, spec.name, rows, 1), warmup, place)
        for place, rows in ((1, 500), (MOST, 3_000))
    )
    (of_small, _), (of_large, _) = small.for_read(system), large.for_read(system)
    assert small.differences_in_table(system, of_small) == []
    assert large.differences_in_table(system, of_large) == []
    assert small.differences_in_table(system, of_large) != []
    Tables(references, spec, warmup, warmup).claim(system)
    for table in (of_small, of_large):
        with pytest.raises(Exception, match=table):
            references.ask(system, SYSTEMS[system].client.fetch, table)
    references.close(lambda system: None)


@pytest.mark.long
def test_nothing_is_compiled_or_started_for_transports_that_cannot_run_here(without_programs):
    needs_s3 = "postgres.pg_parquet.write_polars_parquet_s3"
    cases = [
        orders.case(needs_s3, "analytics_metrics"),
        orders.case(needs_s3, "analytics_metrics", rows=20, rtt_ms=10, mbit_per_s=0),
        orders.case("postgres.psycopg.write_polars_copy_text", "analytics_metrics"),
    ]
    said = []
    with databases.opened(orders.order(without_programs, *cases, say=said.append)) as rig:
        *lacking, nothing = [rig.unavailable(case) for case in cases]
        assert nothing is None
        assert all("does not offer pg_parquet" in reason for reason in lacking)
        assert rig.networks.links == "no experiment asked for a link"
    assert said == []


def test_more_datasets_than_there_are_names_for_are_refused():
    with pytest.raises(LabError, match=f"{MOST + 1} sizes of a: choose at most {MOST} for a run on databases"):
        places([("a", rows) for rows in range(MOST + 1)])
    assert places([("a", 3), ("a", 5), ("b", 3)]) == {("a", 3): 1, ("a", 5): 2, ("b", 3): 1}


WAYS = ("postgres.psycopg.{}_polars_tuned", "clickhouse.http_client.{}_polars_tuned")
COMMITS, BLOCKS = 'synchronous_commit = ["off"], indexes = [2]', "clickhouse.httpx.write_polars_csv_with_names"
ROWS, LEVELS = "rows = [2_001]", 'wal_level = ["minimal", "replica"]'
SUITE = f"""
name = "tenth"
title = "Calls and clients"
rig = "databases"

[defaults]
select = "{", ".join(way.format(name) for way in WAYS for name in ("write", "read"))}"
dataset = "analytics_metrics"
passes = 1
time_limit_seconds = 60

[sizes.smoke]
experiments = [
    {{ name = "commits", select = "{WAYS[0].format("write")}", parameters = {{ {ROWS}, {COMMITS} }} }},
    {{ name = "blocks", select = "{BLOCKS}", parameters = {{ {ROWS}, insert_block_rows = [500, 5_000] }} }},
    {{ name = "engines", select = "{BLOCKS}", parameters = {{ {ROWS}, profile = ["heap", "log", "memory"] }} }},
    {{ name = "log", select = "{WAYS[0].format("write")}", parameters = {{ {ROWS}, {LEVELS} }} }},
    {{ name = "existing", select = "{WAYS[0].format("write")}", parameters = {{ {ROWS}, rows_before = [2_000] }} }},
    {{ name = "clients", parameters = {{ {ROWS}, clients = [2] }} }},
    {{ name = "processes", parameters = {{ {ROWS}, call = [3] }} }},
]
"""


@pytest.mark.long
def test_clients_write_one_table_and_read_it_whole_and_the_third_call_writes_an_empty_one(lab, environment):
    folder = ran(lab, environment, SUITE)
    rows = runs_csv.load(folder / "runs.csv")
    assert [row.error for row in rows if not row.ok] == []
    wanted = {way.format(name) for way in WAYS for name in ("write", "read")}
    assert {row.transport for row in rows} == wanted | {BLOCKS}
    for row in rows:
        several = row.experiment == "clients"
        assert row.rows == 2_001 * (2 if several and row.operation == "read" else 1)
        if several:
            assert row.details["fastest_client_seconds"] <= row.details["slowest_client_seconds"]
            # A column has nine digits, a detail has all.
            assert float(f"{row.details['slowest_client_seconds']:.9g}") <= row.seconds
    # A single run may take less than the 10 ms in which a system counts CPU time.
    assert sum(row.details["server_cpu_seconds"] for row in rows if row.experiment == "clients") > 0
    parts = {row.parameters["insert_block_rows"]: row.details["parts"] for row in rows if row.experiment == "blocks"}
    assert 0 < parts["5000"] < parts["500"]
    left = {row.parameters["profile"]: row.details for row in rows if row.experiment == "engines"}
    assert [left[name]["parts"] > 0 for name in ("heap", "log", "memory")] == [True, False, False]
    assert min(one["table_bytes"] for one in left.values()) > 10_000
    assert min(row.details["wal_bytes"] for row in rows if row.experiment == "log") > 100_000
    assert next(row for row in rows if row.experiment == "commits").details["table_bytes"] > 100_000
    assert not list(folder.glob("result*"))
    assert not list((folder / "logs").iterdir())


@pytest.mark.long
@given(rows=st.integers(1, 60), number=st.integers(1, 8))
def test_slices_are_all_rows_in_their_order_nearly_as_many_in_each(rows: int, number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.parquet"
        whole = pl.DataFrame({"i": range(rows)})
        whole.write_parquet(path)
        parts = [pl.read_parquet(part) for part in server_parameters.slices(str(path), number, Path(folder))]
    assert len(parts) == number
    assert pl.concat(parts).equals(whole)
    assert max(part.height for part in parts) - min(part.height for part in parts) <= 1


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("call", 0, False),
        ("call", "first", False),
        ("call", "warmup", True),
        ("clients", "warmup", False),
        ("clients", 8, True),
        ("clients", 1.5, False),
    ],
)
def test_a_value_that_is_none_is_refused_before_anything_runs(name: str, value: object, known: bool) -> None:
    case = Case(registry.one(WAYS[0].format("write")), "an experiment", "analytics_metrics", {"rows": 1, name: value})
    if known:
        server_parameters.require_values(case)
        return
    with pytest.raises(LabError, match=f"an experiment: {name} .*: choose a number of at least 1"):
        server_parameters.require_values(case)


Usage = namedtuple("Usage", "total used free")
SMALL_DISK, SMALL_MEMORY = {"disk": 10**9}, {"memory": 5 * 10**9}
transform = partial(case, "elt.duckdb.transform", "raw_csv", rows=20_000)
group_by = partial(case, "tuning.duckdb.group_by", "benchmark_input", rows=20_000, files=3)
read = partial(case, "stores_equal.pyarrow.read")
MILLION = {"rows": 1_000_000}
TRIAD = partial(case, "tuning.numexpr.triad", "benchmark_input")
CREATE = partial(case, "tuning.duckdb.create_table", "benchmark_input", source="parquet")


@pytest.mark.parametrize(
    ("rig", "has", "cases", "said"),
    [
        (
            stores,
            SMALL_DISK,
            [read(**MILLION), case("stores_equal.sqlite.create", **MILLION)],
            r"stores: 2\.7 GB of disk needed, 1\.0 GB free; make room, or choose a smaller SIZE",
        ),
        (
            stores,
            SMALL_MEMORY,
            [case("stores_published.pyarrow.create", **MILLION)],
            r"1,000,000 rows as dicts: \d+\.\d GB of memory needed, 5\.0 GB available; choose a smaller SIZE",
        ),
        (
            stores,
            SMALL_MEMORY,
            [case("stores_published.sqlite.read", **MILLION)],
            r"1,000,000 rows as tuples: \S+ GB of memory needed",
        ),
        (
            stores,
            SMALL_MEMORY,
            [case("stores_equal.pyarrow.create", rows=10_000_000), case("stores_published.sqlite.read", rows=10)],
            r"10,000,000 rows as pyarrow: \d+\.\d GB of memory needed, 5\.0 GB available",
        ),
        (
            stores,
            {},
            [read(rows=1, files=1)],
            "the parameters are files, rows; give rows",
        ),
        (stores, {}, [read(files=1)], "experiment an experiment: the parameters are files; give rows"),
        (
            stores,
            {},
            [read(), read("analytics_metrics")],
            "a run on stores has one dataset; choose one of analytics_metrics, integ",
        ),
        (
            elt,
            SMALL_DISK,
            [transform(rows=9_000_000, storage="local to local", network="direct")],
            r"3\.8 GB of disk needed, 1\.0 GB free; make room, or choose a smaller SIZE",
        ),
        (elt, {}, [transform(storage="here to there", network="direct")], "a storage of local to local, local to s3"),
        (
            elt,
            {},
            [transform(storage="local to local", network="slow")],
            "raw_csv: rows=20000; storage=local to local; network=slow: ",
        ),
        (elt, {}, [transform(storage="local to local", network="link 5 MB/s")], "network=link 5 MB/s"),
        (tuning, SMALL_DISK, [CREATE(rows=10**8, files=10)], r"2\.\d GB of disk needed, 1\.0 GB free"),
        (
            tuning,
            {"memory": 10**6},
            [TRIAD(elements=10**6, threads=1)],
            r"arrays of the triad: 24\.0 MB of memory needed",
        ),
        (tuning, {}, [TRIAD(threads=1)], "the parameters are threads; give elements, threads"),
        (tuning, {}, [group_by(source="parquet")], "the parameters are .*; give files, rows, source, threads"),
        (
            tuning,
            {},
            [group_by(source="here", threads=1)],
            "source 'here': choose table or parquet or s3",
        ),
        (
            tuning,
            {},
            [CREATE(rows=20_000, files=3, threads=1)],
            "the parameters are files, rows, source, threads; give",
        ),
    ],
)
def test_a_rig_refuses_an_order_in_one_line_before_it_makes_anything(tmp_path, monkeypatch, rig, has, cases, said):
    monkeypatch.setattr(inventory.shutil, "disk_usage", lambda _: Usage(10**15, 0, has.get("disk", 10**15)))
    monkeypatch.setattr(inventory, "available_memory", lambda: has.get("memory", 10**15))
    settings = Settings(datasets_dir=tmp_path / "datasets", state_dir=tmp_path / "state")
    with one_line(said), rig.opened(order(settings, *cases)):
        pass
    assert not list(tmp_path.iterdir())


ON_S3 = [
    (
        elt,
        [
            transform(storage="local to local", network="direct"),
            transform(storage="s3 to local", network="direct"),
            case("elt.polars.transform", "raw_csv", rows=20_000, storage="s3 to s3", network="link 1 ms"),
        ],
    ),
    (
        tuning,
        [
            group_by(source="parquet", threads=2),
            group_by(source="s3", threads=2),
            case("tuning.boto3.download", "benchmark_input", rows=20_000, files=3, source="s3", threads=2),
        ],
    ),
]


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(("rig", "cases"), ON_S3)
def test_without_a_server_s3_is_unavailable_with_the_reason(perform, settings, monkeypatch, tmp_path, rig, cases):
    monkeypatch.setenv("PATH", str(tmp_path))
    rows = perform(rig, *cases, settings=settings.model_copy(update={"cache_dir": tmp_path / "no-programs"}))
    assert [row.status for row in rows] == [Status.OK, Status.UNAVAILABLE, Status.UNAVAILABLE]
    assert "no versitygw: no Go to compile it with" in rows[1].error


@pytest.mark.long
@pytest.mark.parametrize(("rig", "cases"), ON_S3)
def test_a_rig_compiles_and_starts_no_server_for_cases_that_cannot_run_here(without_programs, monkeypatch, rig, cases):
    local, *remote = cases
    monkeypatch.setattr(rig, "not_installed", lambda names: None if names == local.transport.requires else "no: it")
    remote = [one for one in remote if one.transport != local.transport]
    with rig.opened(order(without_programs, local, *remote)) as opened:
        assert [opened.unavailable(one) for one in (local, *remote)] == [None, "no: it"]
        assert opened.objects == "no case that can run here uses one"
