"""Opening the rig of stores: what is refused before anything is made, and that it leaves nothing behind."""

from collections import namedtuple

import pytest

from harness.machine import inventory
from harness.model import LabError
from harness.run.rigs import stores
from harness.settings import Settings
from tests.run.rigs.orders import case, order

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with so many bytes of free disk and memory."""

    def make(disk=10**15, memory=10**15):
        monkeypatch.setattr(inventory.shutil, "disk_usage", lambda _: Usage(10**15, 0, disk))
        monkeypatch.setattr(inventory, "available_memory", lambda: memory)

    return make


@pytest.mark.parametrize(
    ("has", "cases", "said"),
    [
        (
            {"disk": 1_000_000_000},
            [case("stores_equal.pyarrow.read", rows=1_000_000), case("stores_equal.sqlite.create", rows=1_000_000)],
            r"expected 2\.7 GB of free disk in .*stores, found 1\.0 GB; make room, or choose a smaller SIZE",
        ),
        (
            {"memory": 5_000_000_000},
            [case("stores_published.pyarrow.create", rows=1_000_000)],
            r"1,000,000 rows as dicts: expected \d+\.\d GB of available memory, found 5\.0 GB; choose a smaller SIZE",
        ),
        (
            {"memory": 5_000_000_000},
            [case("stores_published.sqlite.read", rows=1_000_000)],
            r"1,000,000 rows as tuples: expected \d+\.\d GB of available memory, found 5\.0 GB",
        ),
        (
            {"memory": 5_000_000_000},
            [case("stores_equal.pyarrow.create", rows=10_000_000), case("stores_published.sqlite.read", rows=10)],
            r"10,000,000 rows as pyarrow: expected \d+\.\d GB of available memory, found 5\.0 GB",
        ),
    ],
    ids=["disk", "dicts", "tuples", "pyarrow"],
)
def test_too_little_disk_or_memory_is_refused_with_both_figures_before_anything_is_made(
    tmp_path, small_machine, has, cases, said
):
    settings = Settings(datasets_dir=tmp_path / "datasets", state_dir=tmp_path / "state")
    small_machine(**has)
    with pytest.raises(LabError, match=said) as caught, stores.opened(order(settings, *cases)):
        pass
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_fits_is_not_refused_and_its_disk_is_announced(settings, small_machine):
    small_machine(disk=10**9, memory=10**9)
    said = []
    with stores.opened(order(settings, case("stores_published.pyarrow.create"), say=said.append)):
        assert len(said) == 1
        assert "GB of disk" in said[0]


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([{"rows": 1, "files": 1}], "experiment an experiment: expected the parameters rows, found files, rows"),
        ([{"files": 1}], "experiment an experiment: expected the parameters rows, found files"),
        (
            [{}, {"dataset": "analytics_metrics"}],
            "expected one dataset in a run on stores, found analytics_metrics, integ",
        ),
    ],
)
def test_an_order_that_makes_no_sense_is_one_line(settings, cases, said):
    cases = [case("stores_equal.pyarrow.read", **more) for more in cases]
    with pytest.raises(LabError, match=said), stores.opened(order(settings, *cases)):
        pass
    assert not settings.state_dir.exists()


def test_what_a_killed_run_left_is_gone_before_the_next_one_starts(settings):
    old = settings.state_dir / "stores" / "stores_equal.pyarrow-20"
    old.mkdir(parents=True)
    (old / "data.parquet").write_text("of another time")
    with stores.opened(order(settings, case("stores_equal.pyarrow.read"))):
        assert not old.exists()


@pytest.mark.parametrize("stopped_by", [KeyboardInterrupt, SystemExit, OSError])
def test_the_folder_is_removed_however_a_run_ends(settings, stopped_by):
    def stop_in_the_middle():
        with stores.opened(order(settings, case("stores_equal.pyarrow.create"))) as rig:
            rig.prepare(case("stores_equal.pyarrow.create"))
            assert (settings.state_dir / "stores" / "created").exists()
            raise stopped_by

    with pytest.raises(stopped_by):
        stop_in_the_middle()
    assert not (settings.state_dir / "stores").exists()
