"""The tuning rig: every job with its data, verified answers and files, and nothing left behind."""

from collections import namedtuple

import pytest

from harness import registry
from harness.machine import inventory
from harness.model import LabError, Status
from harness.results import folder as folders
from harness.run.rigs import tuning
from harness.settings import Settings
from harness.worker.contracts.tuning import TuningAnswer
from harness.worker.measure import Stopwatch
from harness.worker.messages import Measured
from tests.run.rigs import orders, tuning_runs
from tests.run.rigs.tuning_runs import TABLE, case, fine

pytestmark = pytest.mark.long

Usage = namedtuple("Usage", "total used free")
S3 = TABLE | {"threads": 2}


@pytest.fixture
def perform(settings, tmp_path):
    """Run cases in a rig of their own; returns the rows."""

    def call(*cases, settings=settings, traces=False):
        return tuning_runs.perform(settings, tmp_path / "run", *cases, traces=traces)

    return call


@pytest.mark.process
def test_the_queries_are_ok_from_a_table_and_from_files_with_several_threads(perform):
    cases = [
        case("tuning.duckdb.group_by", **TABLE, source=source, threads=threads)
        for source in ("table", "parquet")
        for threads in (1, 4)
    ]
    rows = perform(*cases, case("tuning.duckdb.jaro_winkler", **TABLE, source="table", threads=2))
    assert fine(rows)
    assert {(row.rows, row.lab) for row in rows} == {(20_000, "local")}
    assert len({row.bytes for row in rows}) == 1


@pytest.mark.process
def test_queries_side_by_side_and_in_a_row_are_ok(perform):
    values = TABLE | {"source": "parquet", "queries": 2, "threads": 2}
    assert fine(perform(case("tuning.duckdb.side_by_side", **values), case("tuning.duckdb.in_a_row", **values)))


@pytest.mark.process
def test_disk_writes_are_ok_with_what_they_wrote_and_as_many_bytes_for_the_limit(perform):
    names = ("duckdb.create_table", "duckdb.create_table_with_wal", "posix.sequential_write")
    rows = perform(*(case(f"tuning.{name}", **TABLE, source="parquet") for name in names))
    assert fine(rows)
    without, with_log, limit = (row.details for row in rows)
    assert without.keys() == with_log.keys() > {"ctas_seconds", "checkpoint_seconds", "output_bytes"}
    assert limit["bytes_per_s"] * rows[2].seconds == pytest.approx(without["output_bytes"], rel=0.6)
    assert without["output_files"] == 1


@pytest.mark.process
@pytest.mark.parametrize("name", ["tuning.numexpr.triad"])
def test_a_triad_is_ok_and_its_extent_are_its_arrays(perform, name):
    (row,) = perform(case(name, elements=100_000, threads=1))
    if reason := tuning.missing_package(registry.one(name)):
        assert (row.status, row.error) == (Status.UNAVAILABLE, reason)
        return
    assert fine([row])
    assert (row.rows, row.bytes) == (100_000, 2_400_000)


@pytest.fixture(scope="session")
def has_s3(tmp_path_factory):
    """Skip, with the reason, where there is no S3 server and none can be compiled."""
    from tests import object_store

    next(object_store.opened(tmp_path_factory.mktemp("s3")), None)


S3_WAYS = [
    *(("tuning.duckdb.copy_to_s3", "table"), ("tuning.duckdb.group_by", "s3")),
    *(
        (f"tuning.{client}.{way}", source)
        for client in ("boto3", "awscrt", "obstore")
        for way, source in (("upload", "table"), ("download", "s3"))
    ),
]


@pytest.mark.usefixtures("has_s3")
def test_every_way_to_and_from_s3_is_ok(perform):
    rows = perform(*(case(name, **S3, source=source) for name, source in S3_WAYS))
    missing = {name: text for name, _ in S3_WAYS if (text := tuning.missing_package(registry.one(name)))}
    without = {row.transport: (row.status, row.error) for row in rows if row.transport in missing}
    assert without == {name: (Status.UNAVAILABLE, text) for name, text in missing.items()}
    there = [row for row in rows if row.transport not in missing]
    assert fine(there)
    assert {row.lab for row in there} == {"embedded"}
    uploads = {name for name, source in S3_WAYS if source == "table"}
    for row in (row for row in there if row.transport in uploads):
        found = row.details
        assert found["output_bytes"] == pytest.approx(found["output_bytes_per_s"] * row.seconds, rel=1e-6)
        assert found["output_files"] >= 1


@pytest.mark.process
def test_without_a_server_s3_is_unavailable_with_the_reason_and_the_rest_runs(perform, settings, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    less = settings.model_copy(update={"cache_dir": tmp_path / "no-programs"})
    cases = [
        case("tuning.duckdb.group_by", **S3, source="parquet"),
        case("tuning.duckdb.group_by", **S3, source="s3"),
        case("tuning.duckdb.copy_to_s3", **S3, source="table"),
    ]
    rows = perform(*cases, settings=less)
    assert [row.status for row in rows] == [Status.OK, Status.UNAVAILABLE, Status.UNAVAILABLE]
    assert "no versitygw: expected a Go toolchain" in rows[1].error


def test_no_server_is_compiled_or_started_for_cases_on_s3_that_cannot_run_here(without_programs, monkeypatch):
    monkeypatch.setattr(tuning, "missing_package", lambda entry: "no boto3" if "boto3" in entry.id else None)
    cases = [case("tuning.duckdb.group_by", **S3, source="parquet"), case("tuning.boto3.download", **S3, source="s3")]
    with tuning.opened(orders.order(without_programs, *cases)) as rig:
        assert [rig.unavailable(one) for one in cases] == [None, "no boto3"]
        assert rig.objects == "no case that can run here uses one"


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        (
            "tuning.duckdb.group_by",
            TABLE | {"source": "parquet"},
            "expects the parameters files, rows, source, threads",
        ),
        (
            "tuning.duckdb.group_by",
            TABLE | {"source": "here", "threads": 1},
            'expected source table or parquet or s3, found "here"',
        ),
        (
            "tuning.duckdb.create_table",
            TABLE | {"source": "parquet", "threads": 1},
            "found files, rows, source, threads",
        ),
        ("tuning.numexpr.triad", {"threads": 1}, "expects the parameters elements, threads"),
    ],
)
def test_a_missing_needless_or_unknown_parameter_is_refused(settings, name, values, said):
    with pytest.raises(LabError, match=said), tuning.opened(orders.order(settings, case(name, **values))):
        pass


def test_too_little_disk_is_refused_with_both_figures_before_anything_is_made(tmp_path, monkeypatch):
    settings = Settings(datasets_dir=tmp_path / "datasets", state_dir=tmp_path / "state")
    monkeypatch.setattr(inventory.shutil, "disk_usage", lambda _: Usage(10**12, 0, 1_000_000_000))
    order = orders.order(settings, case("tuning.duckdb.create_table", rows=100_000_000, files=10, source="parquet"))
    with pytest.raises(LabError, match=r"expected 2\.\d GB of free disk in .*, found 1\.0 GB"), tuning.opened(order):
        pass
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_for_the_arrays_is_refused(settings, monkeypatch):
    monkeypatch.setattr(inventory, "available_memory", lambda: 1_000_000)
    order = orders.order(settings, case("tuning.numexpr.triad", elements=1_000_000, threads=1))
    with pytest.raises(LabError, match=r"arrays of the triad: expected 24\.0 MB"), tuning.opened(order):
        pass


def test_the_peak_of_the_disk_is_announced_before_the_start_and_is_one(settings, monkeypatch):
    said, largest = [], [0]
    cases = [case("tuning.duckdb.create_table", rows=200_000, files=3, source="parquet")]
    settle = tuning.TuningRig.settle

    def measured(rig, case):
        largest.append(sum(path.stat().st_size for path in rig.folder.rglob("*") if path.is_file()))
        settle(rig, case)

    monkeypatch.setattr(tuning.TuningRig, "settle", measured)
    with tuning.opened(orders.order(settings, *cases, say=said.append)) as rig:
        bound = tuning._made_bytes(cases[0], False)
        job = rig.prepare(cases[0])
        connect = registry.connect_of(cases[0].transport)
        with connect(job.folder, None) as connection, Stopwatch() as stopwatch:
            returned = cases[0].transport.function(connection, **job.arguments)
        measured = Measured(0.0, stopwatch.report(), {})
        answer = TuningAnswer(measured=measured, returned=returned["answer"], details=returned["details"])
        checked = rig.check(cases[0], job, answer)
        assert checked.wrong == []
        assert checked.details["output_bytes_per_s"] == checked.details["output_bytes"] / stopwatch.seconds
        rig.settle(cases[0])
    assert said[0].startswith("tuning: up to 0.0 GB of disk, 0.0 GB of it removed at the end")
    assert 1_000_000 < max(largest) < bound + 2 * tuning._FILE_BYTES


def test_after_an_error_everything_but_the_dataset_is_gone(settings):
    order = orders.order(settings, case("tuning.duckdb.group_by", **TABLE, source="table", threads=1))
    with pytest.raises(ZeroDivisionError), tuning.opened(order) as rig:
        1 / (len(list(rig.folder.glob("*.duckdb"))) - 2)  # the table and that of the warm-up are there
    assert not (settings.state_dir / "tuning").exists()


@pytest.mark.process
def test_a_trace_of_a_run_has_the_cores_it_used(perform, tmp_path):
    (row,) = perform(
        case("tuning.duckdb.jaro_winkler", rows=1_000_000, files=3, source="table", threads=1), traces=True
    )
    trace = folders.load_trace(folders.trace_path(tmp_path / "run", 1, row.transport))
    assert fine([row])
    assert all(0 < seconds <= row.seconds for seconds, _ in trace)
    busy = sum(cores for _, cores in trace) / len(trace)
    assert 0 < busy < 1.6  # of one thread; on a busy machine it has less than a core
