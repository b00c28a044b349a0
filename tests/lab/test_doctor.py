"""The doctor says of every service what it is, and of every way that cannot run why."""

import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from harness import registry
from harness.lab import s3
from harness.lab.packages import not_installed
from harness.model import LabError
from harness.systems import SYSTEMS
from tests.commands import Command, succeeded


@pytest.mark.long
@pytest.mark.process
def test_the_embedded_lab_is_well_and_says_what_it_lacks(lab: Command, environment: dict[str, str]) -> None:
    done = succeeded(lab("doctor", env=environment))
    assert done.stdout.startswith("lab: embedded\nok   postgres: 18.")
    assert "formats: ArrowStream, CSV, Native, Parquet, TabSeparated\n" in done.stdout
    ways = [entry for entry in registry.catalogue().values() if entry.system in SYSTEMS]
    lacking = sum("pg_parquet" in entry.needs for entry in ways)
    elsewhere = sum(bool(not_installed(entry.requires)) for entry in ways)  # engines with a lock of their own
    assert f"ok   transports: {len(ways) - lacking - elsewhere} of {len(ways)} can run here" in done.stdout
    assert f"ok   {lacking} unavailable (postgres.pg_parquet): the postgres 18." in done.stdout
    assert done.stdout.count("; fix: ") == 1
    for engine in ("ray", "daft"):
        if f"{engine} not installed" in done.stdout:
            assert f"postgres.{engine}): the Python package" in done.stdout
            assert f"make engine ENGINE={engine}\n" in done.stdout
    assert len(done.stdout.splitlines()) <= 20


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


def test_a_shared_folder_may_have_any_name(lab: Command, on_embedded_lab: dict[str, str]) -> None:
    with TemporaryDirectory(
        prefix='it\'s "shared" 100% :a '
    ) as shared:  # not below tmp_path, which is closed to nobody
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
    with pytest.raises(LabError, match="LAB_S3_ENDPOINT: expected a URI like http://"):
        s3.check(store_at(endpoint))
