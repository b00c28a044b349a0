"""Cases that a rig refuses in one line before it makes anything, and cases for which it starts no server."""

from collections import namedtuple
from functools import partial

import pytest

from harness.machine import inventory
from harness.model import Status
from harness.run.rigs import elt, stores, tuning
from harness.settings import Settings
from tests.commands import one_line
from tests.run.rigs.orders import case, order

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
