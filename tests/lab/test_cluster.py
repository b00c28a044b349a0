"""Workers of a cluster and their scheduler, and the doctor's line on every service and transport."""

import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap

import pytest

from harness import registry
from harness.address import host_and_port
from harness.lab import availability, cluster, s3
from harness.lab.cluster import Cluster
from harness.lab.labs import Lab
from harness.lab.packages import not_installed
from harness.machine.variables import clean_environment, namespace
from harness.model import LabError, Server, Transport, Workers
from harness.registry import select
from harness.settings import Settings
from harness.systems import SYSTEMS
from tests.commands import Command, one_line, succeeded
from tests.every import every

HERE = "postgresql://lab:geheim99@127.0.0.1:5432/lab"
THERE = "postgresql://lab:verborgen7@database.example.org:6432/lab"

LAB = Lab("embedded", None, {"postgres": HERE}, None, list, lambda names=None: [])


def named(address: str | None, **others: str) -> Settings:
    return Settings(cluster_address=address, **others)


def transport(engine: str = "", **changed: object) -> Transport:
    """A transport of the catalogue, as if it needed workers of an engine."""
    (entry,) = select("postgres.psycopg.write_polars_copy_text")
    return replace(entry, needs=(engine,) if engine else (), **changed)


@pytest.fixture
def listening() -> Iterator[int]:
    """The port of a process that listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (None, None),
        ("tcp://scheduler.example.org", Cluster("dask", "tcp://scheduler.example.org:8786")),
        ("tcp://10.0.0.1:1234", Cluster("dask", "tcp://10.0.0.1:1234")),
        ("tls://scheduler", Cluster("dask", "tls://scheduler:8786")),
        ("ray://head/", Cluster("ray", "ray://head:10001")),
        ("spark://master", Cluster("spark", "spark://master:7077")),
        ("spark://[fd00::1]:7078", Cluster("spark", "spark://[fd00::1]:7078")),
    ],
)
def test_the_scheme_names_the_engine_and_a_port_may_be_left_out(address: str | None, expected: Cluster | None) -> None:
    assert cluster.of(named(address)) == expected


WRONG = (
    *("scheduler:8786", "http://scheduler:8786", "dask://scheduler", "tcp://", "tcp://:8786", "local"),
    *("tcp://scheduler:port", "tcp://scheduler:0", "tcp://scheduler:99999", "tcp://[::1", "spark://one:7077,two:7077"),
    *("ray://head:10001/geheim99", "ray://head?token=geheim99", "tcp://lab:geheim99@scheduler:8786"),
)


@every(WRONG, str)
def test_what_is_no_address_of_a_scheduler_is_refused_in_one_line_without_its_secrets(address: str) -> None:
    with one_line(r"^LAB_CLUSTER_ADDRESS: not the address .*tcp://host:8786 .*ray://.*spark://") as caught:
        cluster.of(named(address))
    assert "geheim99" not in str(caught.value)


@every(["tcp://127.0.0.1:1", "ray://127.0.0.1:1", "spark://127.0.0.1:1"], str)
def test_one_that_does_not_is_named_by_host_and_port(address: str) -> None:
    found = cluster.of(named(address))
    assert found is not None
    expected = rf"^{found.engine}: cannot reach 127\.0\.0\.1:1 .*LAB_CLUSTER_ADDRESS"
    with pytest.raises(LabError, match=expected):
        cluster.require_reached(found)


ADDRESS = "tcp://scheduler:8786"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (named(None, cluster_postgres_uri=THERE), Workers(2, HERE, folder="/scratch")),
        (named(ADDRESS), Workers(2, HERE, ADDRESS, "/scratch")),
        (
            named(ADDRESS, cluster_postgres_uri=THERE),
            Workers(2, f"{THERE}?options=-csearch_path%3D{namespace()}", ADDRESS, "/scratch"),
        ),
    ],
)
def test_workers_see_the_databases_as_this_machine_unless_a_cluster_is_reported_otherwise(settings, expected) -> None:
    workers = cluster.workers(settings, transport("dask"), 2, HERE, "/scratch")
    assert workers == expected
    assert "geheim99" not in repr(workers) + repr(expected)


def test_a_wrong_address_of_a_database_is_refused_under_its_own_name() -> None:
    wrong = named("tcp://scheduler:8786", cluster_postgres_uri="http://lab:verborgen7@database:6432")
    with pytest.raises(LabError, match=r"^LAB_CLUSTER_POSTGRES_URI: not a URI like postgresql://") as caught:
        cluster.workers(wrong, transport("dask"), 2, HERE, "/scratch")
    assert "verborgen7" not in str(caught.value)


@pytest.mark.parametrize(
    ("engine", "named_one", "reason"),
    [
        ("dask", None, None),
        ("dask", "dask", None),
        ("", "dask", None),
        ("ray", "dask", "LAB_CLUSTER_ADDRESS names a scheduler of dask, not of ray"),
        ("dask", "spark", "LAB_CLUSTER_ADDRESS names a scheduler of spark, not of dask"),
    ],
)
def test_a_transport_of_another_engine_is_unavailable(engine: str, named_one: str | None, reason: str | None) -> None:
    found = Cluster(named_one, "tcp://scheduler:8786") if named_one else None
    servers = {"postgres": Server("18.4", frozenset(), {})}
    assert availability.reason_unavailable(transport(engine), LAB, servers, None, found) == reason


@pytest.mark.parametrize(
    ("lab", "command"), [("embedded", "make engine ENGINE=ray"), ("compose", "make up CLUSTER=ray")]
)
def test_an_engine_that_is_not_installed_says_how_to_install_it(
    lab: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.lab.packages.find_spec", lambda name: None)
    reason = availability.reason_unavailable(transport("ray", requires=("ray",)), replace(LAB, name=lab), {})
    assert reason == f'the Python package "ray" is not installed: {command}'


def test_spark_without_java_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = availability.reason_unavailable(transport("spark"), LAB, {})
    assert reason is not None
    assert "Spark needs Java 17 or newer: install a JRE" in reason
    java = tmp_path / "home/bin/java"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert cluster.no_java() is None


@pytest.mark.parametrize("uri", [HERE, "postgresql://127.0.0.1:5432", "http://a:b%40c@127.0.0.1:5432/x?password=y"])
def test_where_an_address_leads_is_said_without_its_secrets(uri: str) -> None:
    assert host_and_port(uri) == "127.0.0.1:5432"


def test_what_a_cluster_lets_one_in_by_reaches_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "0" * 32,
        "RAY_AUTH_TOKEN_PATH": "/somewhere",
        "SPARK_CONF_DIR": "/conf",
    }
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAY_ADDRESS", "somewhere:6379")
    found = clean_environment()
    assert kept.items() <= found.items()
    assert "RAY_ADDRESS" not in found


def test_the_doctor_says_which_engines_are_there_and_that_a_cluster_answers(
    lab: Command, on_embedded_lab: dict[str, str], listening: int
) -> None:
    settings = {"LAB_CLUSTER_ADDRESS": f"tcp://127.0.0.1:{listening}", "LAB_CLUSTER_POSTGRES_URI": THERE}
    done = succeeded(lab("doctor", "--external", env=on_embedded_lab | settings))
    (engines,) = re.findall(r"^ok   engines: (.*)$", done.stdout, re.MULTILINE)
    assert re.match(r"dask \d{4}\.\d+\.\d+; (.+ \d|not installed: ).*", engines)
    said = (
        f"ok   cluster: tcp://127.0.0.1:{listening} answers; its workers look for postgres at database.example.org:6432"
    )
    assert said in done.stdout
    assert "verborgen7" not in done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ray://127.0.0.1:1", "FAIL cluster: ray: cannot reach 127.0.0.1:1"),
        ("scheduler", "FAIL cluster: LAB_CLUSTER_ADDRESS: not the address"),
    ],
)
def test_the_doctor_fails_where_a_cluster_is_not_reached_or_has_no_address(
    lab: Command, on_embedded_lab: dict[str, str], address: str, said: str
) -> None:
    done = lab("doctor", "--external", env=on_embedded_lab | {"LAB_CLUSTER_ADDRESS": address})
    assert done.returncode == 1
    assert said in done.stdout


@pytest.mark.long
@pytest.mark.process
def test_the_embedded_lab_is_well_and_says_what_it_lacks(lab: Command, environment: dict[str, str]) -> None:
    done = succeeded(lab("doctor", env=environment))
    assert done.stdout.startswith("lab: embedded\nok   postgres: 18.")
    assert "formats: ArrowStream, CSV, Native, Parquet, TabSeparated\n" in done.stdout
    ways = [entry for entry in registry.catalogue().values() if entry.system in SYSTEMS]
    lacking = sum("pg_parquet" in entry.needs for entry in ways)
    elsewhere = sum(bool(not_installed(entry.requires)) for entry in ways)  # engines with their own lock
    assert f"ok   transports: {len(ways) - lacking - elsewhere} of {len(ways)} can run here" in done.stdout
    assert f"--   {lacking} transports of postgres.pg_parquet: the postgres 18." in done.stdout
    assert (
        " server does not offer pg_parquet; make up starts one that does (in a clone), or set LAB_POSTGRES_BIN to one\n"
        in done.stdout
    )
    for engine in ("ray", "daft"):
        if engine in done.stdout.partition("not installed: ")[2].partition("\n")[0]:
            assert f"postgres.{engine}: the Python package" in done.stdout
            assert f"make engine ENGINE={engine}\n" in done.stdout
    assert sum(len(wrap(line, 80)) for line in done.stdout.splitlines()) < 20


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"LAB_POSTGRES_URI": "postgresql://lab:geheim99@127.0.0.1:1/lab"},
            ["FAIL postgres: postgres: cannot reach 127.0.0.1:1", "ok   clickhouse: 26."],
        ),
        ({"LAB_IO_DIR": "{closed}", "LAB_IO_DIR_SERVER": "/nonexistent/folder"}, ["FAIL shared folder: "]),
    ],
)
def test_a_service_that_does_not_answer_and_a_folder_that_a_server_cannot_read_fail(
    lab: Command, on_embedded_lab: dict[str, str], tmp_path, settings: dict[str, str], said: list[str]
) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    told = {name: value.format(closed=tmp_path / "closed") for name, value in settings.items()}
    done = lab("doctor", "--external", env=on_embedded_lab | told)
    assert done.returncode == 1
    assert [text for text in said if text not in done.stdout] == []
    assert "geheim99" not in done.stdout + done.stderr


@pytest.mark.long
def test_a_shared_folder_may_have_any_name(lab: Command, on_embedded_lab: dict[str, str]) -> None:
    with TemporaryDirectory(
        prefix='it\'s "shared" 100% :a '
    ) as shared:  # not below tmp_path, which the user of the servers cannot enter
        Path(shared).chmod(0o777)
        done = lab("doctor", "--external", env=on_embedded_lab | {"LAB_IO_DIR": shared})
    assert f"ok   shared folder: {shared}: each side reads what the other writes\n" in done.stdout


def store_at(endpoint: str) -> s3.ObjectStore:
    return s3.ObjectStore(endpoint, "us-east-1", "key", "secret-key")


def test_an_s3_server_that_is_not_there_is_named() -> None:
    with pytest.raises(LabError, match=r"s3: cannot reach 127\.0\.0\.1:1 "):
        s3.check(store_at("http://127.0.0.1:1"))


@pytest.mark.long
def test_a_server_that_is_no_s3_is_given_up_within_seconds() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(LabError, match="is it an S3 server") as caught:
            s3.check(store_at(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        assert "secret-key" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9000", "s3://bucket", "http://", "http://127.0.0.1:port"])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(LabError, match="LAB_S3_ENDPOINT: not a URI like http://"):
        s3.check(store_at(endpoint))
