"""The ELT rig: local disk and S3 in every combination, verified rows, and nothing left behind."""

import pytest

from harness.lab import s3
from harness.model import Status
from harness.run.rigs import elt
from tests.made_up import MadeUp
from tests.run.rigs import orders

ENGINES = ("elt.duckdb.transform", "elt.polars.transform", "elt.chdb.transform")

# Transports that write the right rows with one change.
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
def made_up(tmp_path, monkeypatch):
    MadeUp(tmp_path, chdb=MADE_UP).join(monkeypatch)


@pytest.mark.long
@pytest.mark.process
def test_every_engine_on_local_disk_is_ok_with_the_bytes_that_came_out(perform):
    rows = perform(elt, *(case(engine) for engine in ENGINES))
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
    rows = perform(elt, *ways, case(engine, "s3 to s3", "link 1 ms 200 MB/s per connection"))
    assert [(row.status, row.error) for row in rows] == [(Status.OK, "")] * 5
    assert {row.lab for row in rows} == {"embedded"}


@pytest.mark.long
@pytest.mark.process
def test_lost_rows_and_changed_values_are_a_mismatch_and_another_type_is_said(perform, made_up):
    expected = {
        "short": "expected 20000 rows, found 19999",
        "narrow": "no column device; the file needs",
        "changed": "price: other values than expected",
        "mixed": "all columns together: other values than expected",
        "nothing": "FileNotFoundError",
    }
    names = ("same", "text", *expected)
    rows = perform(elt, *(case(f"made.chdb.{name}") for name in names))
    same, text, *wrong = rows
    assert (same.status, same.fidelity) == (Status.OK, "exact")
    assert (text.status, text.fidelity) == (Status.OK, "converted: status (string)")
    for row, said in zip(wrong, expected.values(), strict=True):
        assert row.status in (Status.MISMATCH, Status.ERROR), row.transport
        assert said in row.error
        assert row.seconds is None


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
