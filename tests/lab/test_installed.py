"""Servers that the user has installed: the embedded lab starts, revives and removes them like its own."""

import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import clickhouse_driver
import httpx
import pytest

from harness import registry
from harness.embedded.keeper import ServiceError
from harness.lab import labs
from harness.lab.embedded import EmbeddedLab
from harness.lab.labs import Lab, reason_unavailable
from harness.model import Server
from harness.results.environment import differing, fingerprint
from harness.settings import load
from harness.systems import SYSTEMS
from harness.systems.clickhouse import installed as of_clickhouse
from harness.systems.postgres import installed as of_postgres
from harness.systems.postgres import service as wheel
from tests.commands import Command, succeeded
from tests.lab.embedded_labs import clickhouse, nothing_is_left_in, postgres
from tests.programs import executable
from tests.waiting import until

# The wheel has another Postgres next to the one of the embedded lab: a real one in a separate folder.
OTHER = wheel.find_installation().parent / "pginstall" / "bin"

# A program that is called and configured as ClickHouse's, and is the engine of the gateway. It has the password from
# its environment and compares it with the hash in its configuration.
PROGRAM = """#!{python}
import hashlib, json, os, sys
from xml.etree import ElementTree
_, part, option = sys.argv
assert part == "server", part
if option == "--version":
    print("ClickHouse server version 26.9.2.1 (made for a test).")
    sys.exit()
found = ElementTree.parse(option.removeprefix("--config-file="))
text = lambda path: found.find(path).text
password = os.environ["PASSWORD_OF_TEST"]
assert text("users/lab/password_sha256_hex") == hashlib.sha256(password.encode()).hexdigest()
assert text("listen_host") == "127.0.0.1"
users = os.path.join(text("path"), "users.json")
with open(users, "w") as file:
    json.dump({{"lab": password}}, file)
command = [sys.executable, "-m", "harness.systems.clickhouse.gateway", "--path", text("path") + "engine"]
command += ["--http-port", text("http_port"), "--native-port", text("tcp_port"), "--users-file", users]
os.execv(sys.executable, command)
"""


def with_clickhouse(folder: Path, program: Path) -> EmbeddedLab:
    environment: dict[str, str] = {}
    lab = EmbeddedLab(folder / "state", [], {"clickhouse": of_clickhouse.service(program, environment)})
    environment["PASSWORD_OF_TEST"] = lab._password
    return lab


@pytest.mark.process
@pytest.mark.long(always=True)
def test_an_installed_postgres_comes_up_is_revived_with_its_rows_and_leaves_nothing(folder: Path) -> None:
    with EmbeddedLab(folder, [], {"postgres": of_postgres.service(OTHER, {})}) as lab:
        assert postgres(lab, "SELECT current_setting('server_version_num')::int / 10000") == [(16,)]
        assert postgres(lab, "SELECT datcollate FROM pg_database WHERE datname = 'lab'") == [("C",)]
        assert postgres(lab, "SHOW shared_preload_libraries") == [("",)]
        postgres(lab, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS n")
        for pid in (lab.pids["postgres"], lab.keepers["postgres"]):
            os.kill(pid, signal.SIGKILL)
        until(lab.dead)
        assert lab.revive() == ["postgres"]
        assert postgres(lab, "SELECT count(*), sum(n) FROM t") == [(1000, 500500)]
    assert nothing_is_left_in(folder)


@pytest.mark.process
@pytest.mark.long
def test_pg_parquet_is_preloaded_and_created_where_it_is_installed_and_shares_a_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = OTHER.parents[1]
    copy = folder / "site" / package.name / "pginstall"
    shutil.copytree(OTHER.parent, copy, ignore=shutil.ignore_patterns("include", "pgxs"))
    shutil.copytree(package.parent / f"{package.name}.libs", folder / "site" / f"{package.name}.libs")
    libraries, extensions = copy / "lib/postgresql", copy / "share/postgresql/extension"
    shutil.copy(libraries / "vector.so", libraries / "pg_parquet.so")  # any library that Postgres loads
    (extensions / "pg_parquet.control").write_text("default_version = '0'\nrelocatable = true\n")
    (extensions / "pg_parquet--0.sql").write_text("CREATE FUNCTION of_test() RETURNS int LANGUAGE sql RETURN 7;\n")
    monkeypatch.setenv("LAB_POSTGRES_BIN", str(copy / "bin"))
    monkeypatch.setenv("LAB_STATE_DIR", str(folder / "state"))
    with labs.embedded(load()) as lab:
        assert "pg_parquet" in labs.check(lab)["postgres"].offers
        assert labs.check(lab)["postgres"].program == "LAB_POSTGRES_BIN (postgres (PostgreSQL) 16.14)"
        assert lab.io is not None
        SYSTEMS["postgres"].folder.check(lab.endpoints, lab.io)
        assert lab.without_keys == ["postgres"]
    assert nothing_is_left_in(folder / "state")


@pytest.mark.process
@pytest.mark.long(always=True)
def test_an_installed_clickhouse_comes_up_is_revived_with_its_rows_and_leaves_nothing(tmp_path: Path) -> None:
    program = executable(tmp_path / "clickhouse", PROGRAM.format(python=sys.executable))
    with with_clickhouse(tmp_path, program) as lab:
        clickhouse(lab, "CREATE TABLE t ENGINE = MergeTree ORDER BY n AS SELECT number AS n FROM numbers(1000)")
        assert clickhouse_driver.Client.from_url(lab.endpoints["clickhouse_native"]).execute("SELECT 1") == [(1,)]
        os.kill(lab.pids["clickhouse"], signal.SIGKILL)
        until(lab.dead)
        assert lab.revive() == ["clickhouse"]
        assert clickhouse(lab, "SELECT count(), sum(n) FROM t") == "1000\t499500\n"
        wrong = httpx.post(lab.endpoints["clickhouse_http"].replace(lab._password, "wrong"), content="SELECT 1")
        assert wrong.status_code in (401, 403)
        files = [lab.folder / "clickhouse" / name for name in ("config.xml", "server.log")]
        assert {file.name: oct(file.stat().st_mode & 0o777) for file in files} == dict.fromkeys(
            ("config.xml", "server.log"), "0o600"
        )
        assert not any(lab._password in file.read_text() for file in files)
    assert nothing_is_left_in(tmp_path / "state")


def test_a_program_that_is_called_by_the_name_of_a_part_is_not_told_which_part_it_is(tmp_path: Path) -> None:
    whole, part = (executable(tmp_path / name, "#!/bin/sh\n") for name in ("clickhouse", "clickhouse-server"))
    for program, words in ((whole, [str(whole), "server"]), (part, [str(part)])):
        folder = tmp_path / f"of-{program.name}"
        folder.mkdir()
        task = of_clickhouse.service(program, {}).prepare(folder, [1, 2], "password")
        assert [*task.service.arguments][:-1] == words


def test_what_is_no_clickhouse_is_refused_with_the_variable_and_what_was_found(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    wrong = {tmp_path: "is a folder", file: "is not executable", tmp_path / "none": "does not exist"}
    for place, found in wrong.items():
        with pytest.raises(
            ServiceError, match=rf"LAB_CLICKHOUSE_BINARY: {place} {found}; give the program `clickhouse`$"
        ):
            of_clickhouse.service(place, {})


@pytest.mark.parametrize("said", ["postgres (PostgreSQL) 13.22", "postgres (EnterpriseDB) 16.1", ""])
def test_a_postgres_that_is_too_old_or_none_is_refused_with_what_it_said(tmp_path: Path, said: str) -> None:
    for name in ("postgres", "initdb"):
        executable(tmp_path / name, f"#!/bin/sh\necho '{said}'\n")
    with pytest.raises(ServiceError) as caught:
        of_postgres.service(tmp_path, {})
    place = f"{said or 'no version'} in {tmp_path}"
    assert str(caught.value) == f"LAB_POSTGRES_BIN: {place}; the lab needs Postgres 14 or newer"


def test_an_installed_server_is_asked_once_for_its_version(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    for name in ("postgres", "initdb", "clickhouse"):
        executable(tmp_path / name, f"#!/bin/sh\necho asked >> {asked}\necho 'postgres (PostgreSQL) 16.1'\n")
    for service in (of_postgres.service(tmp_path, {}), of_clickhouse.service(tmp_path / "clickhouse", {})):
        assert labs._program(SYSTEMS["postgres"], service.said) == "LAB_POSTGRES_BIN (postgres (PostgreSQL) 16.1)"
    assert asked.read_text().count("asked") == 2


def test_a_folder_above_the_programs_is_refused_with_the_right_one(tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "postgres", "")
    with pytest.raises(ServiceError, match=rf"no program `\w+` in {tmp_path}; did you mean {tmp_path}/bin\?$"):
        of_postgres.service(tmp_path, {})


def test_a_wrong_place_is_one_line_and_ends_the_command_before_anything_is_started(
    lab: Command, environment: dict[str, str]
) -> None:
    done = lab("doctor", env=environment | {"LAB_CLICKHOUSE_BINARY": "/nowhere/clickhouse"})
    assert done.returncode == 2
    expected = "LAB_CLICKHOUSE_BINARY: /nowhere/clickhouse does not exist; give the program `clickhouse`"
    assert done.stderr.splitlines() == [f"lab: {expected}"] or expected in done.stderr


def test_what_is_installed_and_not_set_is_named_with_the_variable_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = executable(tmp_path / "clickhouse", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(of_postgres, "_USUAL", (f"{tmp_path}/pg-*/bin",))
    for version in (9, 18, 17):
        executable(tmp_path / f"pg-{version}" / "bin" / "postgres", "")
    assert labs.not_used(load()) == {
        "postgres": ("LAB_POSTGRES_BIN", tmp_path / "pg-18" / "bin"),
        "clickhouse": ("LAB_CLICKHOUSE_BINARY", program),
    }
    monkeypatch.setenv("LAB_CLICKHOUSE_BINARY", str(program))
    assert labs.not_used(load()).keys() == {"postgres"}


@pytest.mark.long
@pytest.mark.process
def test_a_run_says_first_and_records_which_program_of_ones_own_it_used(
    lab: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    of_run = environment | {"LAB_POSTGRES_BIN": str(OTHER)}
    words = ("run", "matrix", "--size", "smoke", "--passes", "1", "--only", "postgres.psycopg.read_polars_rows")
    done = succeeded(lab(*words, env=of_run))
    assert "lab: embedded (postgres 16.14 of LAB_POSTGRES_BIN" in done.stdout + done.stderr
    (folder,) = (tmp_path / "results").glob("*-*")
    facts = json.loads((folder / "environment.json").read_text())
    assert facts["servers"]["postgres"]["program"] == "LAB_POSTGRES_BIN (postgres (PostgreSQL) 16.14)"
    assert facts["servers"].keys() == {"postgres"}  # the database of its cases
    for page in ("report.md", "report.html"):
        assert "16.14 of LAB_POSTGRES_BIN" in (folder / page).read_text()
    assert str(OTHER) not in (folder / "environment.json").read_text()


def test_runs_on_a_server_of_ones_own_and_on_the_labs_are_of_different_environments() -> None:
    ours, own = (
        {"servers": {"clickhouse": {"version": "26.9", **more}}}
        for more in ({}, {"program": "LAB_CLICKHOUSE_BINARY (ClickHouse 26.9)"})
    )
    assert fingerprint(ours) != fingerprint(own)
    assert differing(ours, own) == ["servers"]


def test_a_server_that_was_told_of_no_s3_server_makes_its_transports_unavailable() -> None:
    entry = registry.one("postgres.pg_parquet.write_polars_parquet_s3")
    servers = {"postgres": Server("18", frozenset({"pg_parquet"}), {})}
    here = Lab(
        "embedded", None, {"postgres": "postgresql://127.0.0.1/lab"}, None, list, list, without_keys=["postgres"]
    )
    reason = reason_unavailable(entry, here, servers)
    assert reason == (
        "the postgres server knows no S3 server; set LAB_S3_ENDPOINT, LAB_S3_ACCESS_KEY, LAB_S3_SECRET_KEY to one"
    )
    assert reason_unavailable(entry, replace(here, without_keys=()), servers) is None
    of_query = registry.one("clickhouse.httpx.read_polars_s3_parquet")
    other = replace(here, endpoints={"clickhouse_http": "http://127.0.0.1"})
    assert reason_unavailable(of_query, other, {"clickhouse": Server("26", frozenset({"clickhouse"}), {})}) is None
