"""The S3 server of a run: its own or one in the environment; buckets that are gone afterwards; links."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, get_args
from unittest.mock import Mock, call
from urllib.parse import urlsplit

import psutil
import pytest

from harness.lab import embedded as lab_module
from harness.lab import go_programs, object_stores, s3, s3_servers
from harness.lab.embedded import EmbeddedLab
from harness.lab.object_stores import Objects
from harness.lab.reference import NoAnswer
from harness.lab.s3_servers import SERVERS
from harness.model import Case, LabError, Run, Server, Status
from harness.run import runner
from harness.run.rigs import elt
from harness.run.rigs.rig import Stop
from harness.settings import Settings, load
from tests import object_store
from tests.run.rigs import orders
from tests.run.test_faults import injuring
from tests.waiting import until

UNKNOWN_KEY = {"versitygw": "XAdminUserNotFound", "minio": "InvalidAccessKeyId"}  # the error code of each
OTHERS = [pytest.param(name, marks=pytest.mark.long) for name in SERVERS if name != object_store.DEFAULT]


@pytest.fixture(scope="module", params=[object_store.DEFAULT, *OTHERS])
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def objects(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    yield from object_store.opened(tmp_path_factory.mktemp("lab"), server)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    (folder / "deep").mkdir(parents=True)
    (folder / "one").write_bytes(b"1")
    (folder / "deep" / "many").write_bytes(os.urandom(20_000_000))  # more than one part of an upload
    return folder


def buckets(objects: Objects) -> list[str]:
    return [found["Name"] for found in s3.client(objects.store).list_buckets()["Buckets"]]


@pytest.mark.long
def test_it_is_the_one_that_is_set_with_keys_that_no_other_has_and_no_text_shows(objects: Objects, server: str) -> None:
    assert objects.server.version == SERVERS[server].version
    assert objects.lab_name == "embedded"
    assert set(objects.store.secrets) == {objects.store.access_key, objects.store.secret_key}
    assert not [secret for secret in objects.store.secrets if secret in f"{objects!r} {objects}"]
    assert objects.store.access_key not in ("lab", objects.store.secret_key)
    for access_key, said in (("lab", UNKNOWN_KEY[server]), (objects.store.access_key, "SignatureDoesNotMatch")):
        with pytest.raises(LabError, match=said):
            s3.check(s3.ObjectStore(objects.store.endpoint, "us-east-1", access_key, "lab-secret"))


@pytest.mark.long
def test_files_come_back_as_they_were_and_the_bucket_is_gone_afterwards(
    objects: Objects, files: Path, tmp_path: Path
) -> None:
    with objects.bucket("test", print) as name:
        s3.upload(objects.store, name, files, "here")
        assert s3.sizes(objects.store, name) == {"here/one": 1, "here/deep/many": 20_000_000}
        assert s3.sizes(objects.store, name, "here/deep") == {"here/deep/many": 20_000_000}
        s3.download(objects.store, name, "here/deep/many", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == (files / "deep" / "many").read_bytes()
    assert buckets(objects) == []


def test_a_bucket_is_emptied_and_removed_also_after_a_failure(objects: Objects, files: Path) -> None:
    def fail() -> None:
        with objects.bucket("test", print) as name:
            s3.upload(objects.store, name, files, "here")
            s3.client(objects.store).create_multipart_upload(Bucket=name, Key="never completed")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert buckets(objects) == []


def test_a_foreign_bucket_is_refused_and_left_alone(objects: Objects) -> None:
    theirs, name = s3.client(objects.store), s3.bucket_name("theirs")
    theirs.create_bucket(Bucket=name)
    theirs.put_object(Bucket=name, Key="precious", Body=b"1")
    with (
        pytest.raises(LabError, match=f'the bucket "{name}" could not be made'),
        objects.bucket("theirs", print),
    ):
        pass
    assert s3.sizes(objects.store, name) == {"precious": 1}
    s3.remove_bucket(objects.store, name)


def fetched(store: s3.ObjectStore, name: str) -> tuple[float, bytes]:
    """Fetch an object over one connection; returns the seconds that took, and its bytes."""
    requests = s3.client(store)
    requests.list_buckets()
    started = time.perf_counter()
    content = requests.get_object(Bucket=name, Key="here/deep/many")["Body"].read()
    return time.perf_counter() - started, content


@pytest.mark.long
def test_a_link_adds_latency_and_limits_the_bandwidth_of_a_connection(objects: Objects, files: Path) -> None:
    plain, slow, narrow = (objects.over(0, 0), objects.over(200, 0), objects.over(0, 20_000_000))
    with objects.bucket("test", print) as name:
        s3.upload(objects.store, name, files, "here")
        started = time.perf_counter()
        s3.sizes(slow, name)
        assert time.perf_counter() - started > 0.2
        until(lambda: fetched(plain, name)[0] < 0.7)  # 20 MB over 20 MB/s take 1 s
        seconds, content = fetched(narrow, name)
        assert seconds > 0.8
        assert content == (files / "deep" / "many").read_bytes()


@pytest.mark.long
def test_a_port_that_is_taken_while_a_server_starts_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objects: Objects, server: str
) -> None:
    """MinIO says that it cannot listen, and may live on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        choices = iter([[taken], lab_module.free_ports(1)])
        monkeypatch.setattr(lab_module, "free_ports", lambda count: next(choices))
        program = go_programs.program(SERVERS[server].program, Settings().cache_dir, print)
        with EmbeddedLab(tmp_path / "lab", (), {server: s3_servers.service(SERVERS[server], program)}) as lab:
            assert urlsplit(lab.endpoints["s3"]).port != taken


def test_without_go_and_without_a_program_there_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state")
    with object_stores.opened(settings, with_links=False, say=print) as found:
        assert isinstance(found, str)
        assert "no versitygw: no Go to compile it with; install Go" in found
        assert "LAB_S3_ENDPOINT" in found


def test_the_doctor_knows_which_server_a_run_would_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(cache_dir=tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert object_stores.without_a_name(settings).startswith("none: no Go")
    (tmp_path / "go").touch(mode=0o755)
    assert "compiles" in object_stores.without_a_name(settings)
    program = go_programs.place(go_programs.VERSITYGW, settings.cache_dir)
    program.parent.mkdir()
    program.touch()
    assert object_stores.without_a_name(settings) == f"versitygw {go_programs.VERSITYGW.version}, started for a run"
    other = settings.model_copy(update={"s3_server": "minio"})
    assert object_stores.without_a_name(other).startswith(f"MinIO {go_programs.MINIO.version}, which the first run")


def test_what_the_compose_lab_starts_has_its_version_and_what_a_person_names_what_it_calls_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(s3, "check", lambda store: Server("itself", frozenset({"s3"}), {}))

    def version(**settings: str) -> str:
        store = s3.ObjectStore(settings["s3_endpoint"], "us-east-1", "key", "secret")
        return object_stores.check(Settings(**settings), store).version

    own = "http://s3:9000"
    assert version(name="compose", s3_endpoint=own, s3_server="minio") == SERVERS["minio"].version
    assert version(name="compose", s3_endpoint="https://s3.example.org") == "itself"
    assert version(name="external", s3_endpoint=own) == "itself"


def test_a_server_that_the_lab_does_not_know_is_refused_with_those_that_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_S3_SERVER", "garage")
    with pytest.raises(LabError, match=r"LAB_S3_SERVER: .*'versitygw' or 'minio'"):
        load()
    assert get_args(Settings.model_fields["s3_server"].annotation) == tuple(SERVERS)


NAMED = {"s3_endpoint": "http://127.0.0.1:1", "s3_access_key": "key", "s3_secret_key": "secret-text"}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (NAMED, r"127\.0\.0\.1:1"),
        *((NAMED | {name: None}, "LAB_S3_SECRET_KEY, or none; some are set") for name in NAMED),
    ],
)
def test_an_endpoint_that_does_not_answer_or_has_no_keys_is_refused(
    tmp_path: Path, named: dict[str, str | None], said: str
) -> None:
    settings = Settings(state_dir=tmp_path, **named)
    with (
        pytest.raises(LabError, match=said) as caught,
        object_stores.opened(settings, with_links=False, say=print),
    ):
        pass
    assert "secret-text" not in str(caught.value)


def test_after_a_call_that_hung_our_services_are_ended_once_and_after_one_that_failed_not() -> None:
    services = Mock(pids={"versitygw": 1, "toxiproxy": 2}, **{"dead.return_value": [], "revive.return_value": []})
    store = s3.ObjectStore("http://127.0.0.1:1", "us-east-1", "lab", "lab-secret")
    one = Objects(store, Server("", frozenset(), {}), "embedded", None, "", services)

    with pytest.raises(KeyError):
        one.ask(Mock(side_effect=KeyError, __name__="fails"))
    one.revive()
    services.end.assert_not_called()
    with pytest.raises(NoAnswer):
        one.ask(Mock(side_effect=NoAnswer("the s3 server did not answer"), __name__="hangs"))
    one.revive()
    one.revive()
    assert sorted(services.end.call_args_list) == [call("toxiproxy"), call("versitygw")]


@pytest.mark.long
@pytest.mark.parametrize("name", SERVERS)
def test_the_access_key_of_our_server_is_made_anew_and_does_not_tell_the_secret_key(tmp_path: Path, name: str) -> None:
    service, seen = s3_servers.service(SERVERS[name], Path("program")), set()
    for password in ("one", "other"):
        folder = tmp_path / password
        folder.mkdir()
        parts = urlsplit(service.endpoints([9000], password)["s3"])
        task = service.prepare(folder, [9000], password)
        assert [task.environment[key] for key in SERVERS[name].keys] == [parts.username, parts.password]
        assert not {parts.username, parts.password} & set(task.service.arguments)
        assert len(parts.username) == 20
        assert parts.username.removeprefix("lab") not in parts.password
        seen |= {parts.username, parts.password}
    assert len(seen) == 4


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


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize("name", ["versitygw", "toxiproxy"])
def test_one_that_hangs_before_a_run_is_brought_back_and_the_run_is_done_again(perform: Perform, name: str) -> None:
    over = case("s3 to s3", "link")
    first, second = perform(over, over, then=lambda objects: service(objects, name).suspend())
    assert first.status is Status.AGAIN
    assert first.error.startswith("before the run the s3 server did not answer")
    assert (second.status, second.error) == (Status.OK, "")


HANGS = "after the run the s3 server did not answer", "and was restarted; ended after the time limit of 10 s"
DIES = "the {server} server died during this run and was restarted", ""


@pytest.mark.alone
@pytest.mark.long
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


@pytest.mark.alone
@pytest.mark.long
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
