"""The ELT rig: local disk and S3 in every combination, verified rows, and nothing left behind."""

from collections import namedtuple

import pytest

from harness.lab import go_programs, s3
from harness.machine import inventory
from harness.model import LabError, Run, Status
from harness.results import runs_csv
from harness.run import runner
from harness.run.rigs import elt
from harness.settings import Settings
from tests.made_up import MadeUp
from tests.run.rigs import orders

ENGINES = ("elt.duckdb.transform", "elt.polars.transform", "elt.chdb.transform")
Usage = namedtuple("Usage", "total used free")

# Ways that write what the rows should be with one thing changed.
MADE_UP = """
@contextmanager
def connect(folder, s3):
    yield

def register(name, change):
    def function(connection, source, destination):
        import polars as pl
        from harness.transports.elt.polars import transform as sink
        sink(None, source, destination)
        change(pl.read_parquet(destination)).write_parquet(destination)
    function.__name__, function.__module__ = name, __name__
    transport("", "", operation="transform")(function)

register("same", lambda frame: frame)
register("short", lambda frame: frame.head(-1))
register("narrow", lambda frame: frame.drop("device"))
register("changed", lambda frame: frame.with_columns(price=-frame["price"]))
register("mixed", lambda frame: frame.with_columns(user_id=frame["user_id"].reverse()))
register("text", lambda frame: frame.with_columns(status=frame["status"].cast(str)))

@transport("", "", operation="transform")
def nothing(connection, source, destination):
    pass
"""


def case(transport, storage="local to local", network="direct", rows=20_000):
    values = {"rows": rows, "storage": storage, "network": network}
    return orders.case(transport, "raw_csv", **values)


@pytest.fixture
def perform(settings, tmp_path):
    """Run cases in a rig of their own; returns the rows."""

    def call(*cases, settings=settings):
        folder = tmp_path / "run"
        folder.mkdir()
        with elt.opened(orders.order(settings, *cases)) as rig:
            session = orders.running(rig, folder, 60.0)
            runner.perform(session, [Run(case, 1, place) for place, case in enumerate(cases, 1)], lambda row: None)
            text = f"{rig.headline} {rig.facts()}"
            assert not [secret for secret in rig.secrets if secret in text]
            secrets = list(rig.secrets)
        assert not list(settings.state_dir.glob("*/*"))
        content = (folder / "runs.csv").read_text()
        assert not [secret for secret in secrets if secret in content]
        return runs_csv.load(folder / "runs.csv")

    return call


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    MadeUp(tmp_path, chdb=MADE_UP).join(monkeypatch)


def no_go(monkeypatch, settings, tmp_path):
    """Settings under which no S3 server can be had."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return settings.model_copy(update={"cache_dir": tmp_path / "no-programs"})


@pytest.fixture(scope="session")
def has_s3():
    """Skip, with the reason, where there is no S3 server and none can be compiled."""
    for program in (go_programs.VERSITYGW, go_programs.TOXIPROXY):
        try:
            go_programs.program(program, Settings().cache_dir, print)
        except go_programs.NotThere as error:
            pytest.skip(str(error))


@pytest.mark.long
@pytest.mark.process
def test_every_engine_on_local_disk_is_ok_with_the_bytes_that_came_out(perform):
    rows = perform(*(case(engine) for engine in ENGINES))
    assert [(row.status, row.error) for row in rows] == [(Status.OK, "")] * 3
    assert {(row.rows, row.lab) for row in rows} == {(20_000, "local")}
    assert all(4_000_000 < row.bytes < 5_000_000 for row in rows)
    assert all(next(iter(row.details)) == "output_bytes" for row in rows)
    assert [row.fidelity for row in rows] == ["exact", "exact", "converted: occurred_at (timestamp[ms, tz=UTC])"]


@pytest.mark.usefixtures("has_s3")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.long
def test_every_way_between_local_disk_and_s3_is_ok_also_over_a_link(perform, engine):
    ways = [case(engine, storage) for storage in elt.STORAGE]
    rows = perform(*ways, case(engine, "s3 to s3", "link 1 ms 200 MB/s per connection"))
    assert [(row.status, row.error) for row in rows] == [(Status.OK, "")] * 5
    assert {row.lab for row in rows} == {"embedded"}


@pytest.mark.long
@pytest.mark.process
def test_without_a_server_s3_is_unavailable_with_the_reason_and_local_runs(perform, settings, monkeypatch, tmp_path):
    less = no_go(monkeypatch, settings, tmp_path)
    cases = [case(ENGINES[0]), case(ENGINES[0], "s3 to local"), case(ENGINES[0], "local to s3")]
    rows = perform(*cases, settings=less)
    assert [row.status for row in rows] == [Status.OK, Status.UNAVAILABLE, Status.UNAVAILABLE]
    assert "no versitygw: expected a Go toolchain" in rows[1].error


def test_no_server_is_compiled_or_started_for_cases_on_s3_that_cannot_run_here(without_programs, monkeypatch):
    monkeypatch.setattr(elt, "missing_package", lambda entry: "not installed: it" if "polars" in entry.id else None)
    cases = [case(ENGINES[0]), case(ENGINES[1], "s3 to local"), case(ENGINES[1], "s3 to s3", "link 1 ms")]
    with elt.opened(orders.order(without_programs, *cases)) as rig:
        assert [rig.unavailable(one) for one in cases] == [None, "not installed: it", "not installed: it"]
        assert rig.objects == "no case that can run here uses one"


@pytest.mark.long
@pytest.mark.process
def test_lost_rows_and_changed_values_are_a_mismatch_and_another_type_is_said(perform, made_up):
    expected = {
        "short": "expected 20000 rows, found 19999",
        "narrow": "found none called device",
        "changed": "price: other values than expected",
        "mixed": "all columns together: other values than expected",
        "nothing": "FileNotFoundError",
    }
    names = ("same", "text", *expected)
    rows = perform(*(case(f"made.chdb.{name}") for name in names))
    same, text, *wrong = rows
    assert (same.status, same.fidelity) == (Status.OK, "exact")
    assert (text.status, text.fidelity) == (Status.OK, "converted: status (string)")
    for row, said in zip(wrong, expected.values(), strict=True):
        assert row.status in (Status.MISMATCH, Status.ERROR), row.transport
        assert said in row.error
        assert row.seconds is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"storage": "here to there"}, "a storage of local to local, local to s3"),
        ({"network": "slow"}, "found raw_csv: rows=20000; storage=local to local; network=slow"),
        ({"network": "link 5 MB/s"}, "network=link 5 MB/s"),
    ],
)
def test_a_value_that_is_not_known_is_refused(settings, values, said):
    with pytest.raises(LabError, match=said), elt.opened(orders.order(settings, case(ENGINES[0], **values))):
        pass


def test_too_little_disk_is_refused_with_both_figures_before_anything_is_made(tmp_path, monkeypatch):
    settings = Settings(datasets_dir=tmp_path / "datasets", state_dir=tmp_path / "state")
    monkeypatch.setattr(inventory.shutil, "disk_usage", lambda _: Usage(10**12, 0, 1_000_000_000))
    order = orders.order(settings, case(ENGINES[0], rows=9_000_000))
    said = r"expected 3\.8 GB of free disk in .*, found 1\.0 GB; make room, or choose a smaller SIZE"
    with pytest.raises(LabError, match=said), elt.opened(order):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("network", "limits"),
    [
        ("link", (0, 0)),
        ("link 10 ms", (10, 0)),
        ("link 125 MB/s per connection", (0, 125_000_000)),
        ("link 2 ms 3 MB/s per connection", (2, 3_000_000)),
    ],
)
def test_a_network_is_read_as_it_is_written(network, limits):
    assert elt._limits(network) == limits


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        ("20260101T000000Z-host", "dataframe-io-lab-20260101t000000z-host"),
        ("A_b..C", "dataframe-io-lab-a-b-c"),
        ("x" * 90, "dataframe-io-lab-" + "x" * 46),
    ],
)
def test_a_bucket_is_named_by_its_run_as_s3_takes_it(run_id, name):
    assert s3.bucket_name(run_id) == name
