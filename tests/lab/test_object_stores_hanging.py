"""An S3 server that hangs or dies stops no run: calls to it end, the run is a row, and the lab restarts its own."""

import signal
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.lab import s3
from harness.lab.object_stores import Objects
from harness.model import Case, Run, Status
from harness.run import runner
from harness.run.rigs import elt
from harness.run.rigs.rig import Stop
from harness.settings import Settings
from tests import object_store
from tests.run.rigs import orders
from tests.run.test_faults import injuring

pytestmark = [pytest.mark.alone, pytest.mark.long]


def case(storage: str, network: str = "direct", rows: int = 20_000) -> Case:
    return orders.case("elt.duckdb.transform", "raw_csv", rows=rows, storage=storage, network=network)


def service(objects: Objects, name: str = "versitygw") -> psutil.Process:
    assert objects.lab is not None
    return psutil.Process(objects.lab.pids[name])


Perform = Callable[..., list[dict[str, Any]]]
PATIENCE = 120.0  # seconds for a run to end well on a busy machine


@pytest.fixture
def perform(tmp_path: Path, dataset_folder: Path) -> Perform:
    """Perform cases; `then(objects)` is called before the first, or in its worker's time, which `limit` ends."""

    def call(
        *cases: Case,
        then: Callable[[Objects], object],
        in_the_run: bool = False,
        limit: float = PATIENCE,
        server: str = "versitygw",
    ) -> list[dict[str, Any]]:
        object_store.require(server)
        settings = Settings(datasets_dir=dataset_folder, state_dir=tmp_path / "state", s3_server=server)
        folder, rows = tmp_path / "run", []
        folder.mkdir()

        with elt.opened(orders.order(settings, *cases)) as rig:
            if isinstance(rig.objects, str):
                pytest.skip(rig.objects)
            objects = rig.objects
            with injuring(lambda _: then(objects)) if in_the_run else nullcontext(then(objects)):
                for place, each in enumerate(cases, 1):
                    session = orders.running(rig, folder, limit if place == 1 else PATIENCE)
                    runner.perform(session, [Run(each, 1, place)], rows.append)
        assert not list((tmp_path / "state").glob("*/*"))
        return rows

    return call


@pytest.mark.parametrize("name", ["versitygw", "toxiproxy"])
def test_one_that_hangs_before_a_run_is_brought_back_and_the_run_is_done_again(perform: Perform, name: str) -> None:
    over = case("s3 to s3", "link")
    first, second = perform(over, over, then=lambda objects: service(objects, name).suspend())
    assert first.status is Status.AGAIN
    assert first.error.startswith("before the run the s3 server did not answer")
    assert (second.status, second.error) == (Status.OK, "")


HANGS = "after the run the s3 server did not answer", "and was restarted; ended after the time limit of 10 s"
DIES = "the {server} server died during this run and was restarted", ""


@pytest.mark.parametrize(("server", "network"), [("versitygw", "direct"), ("versitygw", "link"), ("minio", "direct")])
@pytest.mark.parametrize(
    ("injure", "status", "said"),
    [
        pytest.param(psutil.Process.suspend, Status.TIMEOUT, HANGS, id="hangs"),
        pytest.param(psutil.Process.kill, Status.ERROR, DIES, id="dies"),
    ],
)
def test_one_that_fails_in_a_run_costs_that_run_alone(
    perform: Perform,
    injure: Callable[[psutil.Process], None],
    status: Status,
    said: tuple[str, str],
    server: str,
    network: str,
) -> None:
    both = case("s3 to s3", network, rows=300_000)  # which take most of a second
    limit = 10.0 if status is Status.TIMEOUT else PATIENCE  # of a hang all of it is waited for
    told = {"in_the_run": True, "limit": limit, "server": server}
    first, second = perform(both, both, then=lambda objects: injure(service(objects, server)), **told)
    assert first.status is status
    assert first.error.startswith(said[0].format(server=server))
    assert said[1] in first.error
    assert (second.status, second.error) == (Status.OK, "")


def test_a_foreign_server_that_hangs_stops_the_run_and_its_bucket_is_named(
    tmp_path: Path, dataset_folder: Path
) -> None:
    for theirs in object_store.opened(tmp_path / "theirs"):
        store, said = theirs.store, []
        named = {"s3_endpoint": store.endpoint, "s3_access_key": store.access_key, "s3_secret_key": store.secret_key}
        settings = Settings(datasets_dir=dataset_folder, state_dir=tmp_path / "state", **named)
        hung = service(theirs)
        with elt.opened(orders.order(settings, case("s3 to local"), say=said.append)) as rig:
            hung.suspend()
            with pytest.raises(Stop, match=r"the s3 server did not answer.*; nothing can be measured on it"):
                rig.prepare(case("s3 to local"))
        assert any("s3: the bucket dataframe-io-lab-the-run is left, remove it" in text for text in said)
        hung.send_signal(signal.SIGCONT)  # every client has given up: no request is under way that it would answer now
        assert s3.sizes(store, "dataframe-io-lab-the-run")
