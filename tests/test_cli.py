"""The command line as a person meets it: what it refuses, how it resumes, that scripts it prints run."""

import csv
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from harness import registry, results
from harness.datasets import store
from harness.embedded.lab import EmbeddedLab
from harness.model import NAMESPACE, Direction, Status
from harness.show import script
from harness.systems.tables import SYSTEMS, Tables

Command = Callable[..., subprocess.CompletedProcess[str]]
ONE_WAY = "postgres.psycopg.write_polars_copy_text"


def wait_for_rows(results_dir: Path, count: int) -> None:
    """Wait until the one run of a results folder has this many rows."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = list(results_dir.glob("*/runs.csv"))
        if found and found[0].read_text().count("\n") > count:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {count} rows in {results_dir} within 60 s")


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a command that was refused as a bad input must be."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("lab: ")
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "matrx"), 'no suite "matrx"'),
        (("run", "--only", "clickhose.*"), 'nearest: "clickhouse.'),
        (("run", "--only", ""), "no transport matches"),
        (("run", "--rows", "0"), "expected rows to be a whole number of at least 1, found 0"),
        (("run", "--rows", "-5"), "expected rows to be a whole number of at least 1, found -5"),
        (("run", "--passes", "0"), "expected passes to be a whole number of at least 1, found 0"),
        (("run", "--external"), "found none of them"),
        (("run", "--resume", "20200101T000000Z-nowhere"), 'no run "20200101T000000Z-nowhere"'),
        (("list", "nothing.*"), "no transport matches"),
        (("show", "postgres.psycopg.write_polars_copy_txt"), 'nearest: "postgres.psycopg.write_polars_copy_text"'),
        (("show", "postgres"), "no transport matches"),
        (("report", "nowhere"), 'no run "nowhere"'),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2_and_leaves_nothing(
    lab: Command, environment: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    assert said in refused(lab(*arguments, env=environment))
    assert not Path(environment["LAB_RESULTS_DIR"]).exists()


@pytest.mark.parametrize("value", ["many", "1.5"])
def test_rows_that_are_no_number_get_exit_code_2(lab: Command, environment: dict[str, str], value: str) -> None:
    done = lab("run", "--rows", value, env=environment)
    assert done.returncode == 2
    assert "--rows" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_setting_is_named(lab: Command, environment: dict[str, str]) -> None:
    assert "LAB_SEED" in refused(lab("run", env=environment | {"LAB_SEED": "abc"}))


def test_an_unreachable_server_is_named_within_5_seconds(lab: Command, environment: dict[str, str]) -> None:
    started = time.monotonic()
    done = lab("run", "--external", env=environment | {"LAB_POSTGRES_URI": "postgresql://u:geheim99@127.0.0.1:1/db"})
    line = refused(done)
    assert "127.0.0.1:1" in line
    assert "geheim99" not in done.stdout + done.stderr
    assert time.monotonic() - started < 8  # 5 s for the server, the rest for starting Python
    assert not Path(environment["LAB_RESULTS_DIR"]).exists()


def test_a_wrong_password_is_never_printed(lab: Command, on_embedded_lab: dict[str, str]) -> None:
    uri = on_embedded_lab["LAB_POSTGRES_URI"]
    wrong = "postgresql://lab:geheim99@" + uri.partition("@")[2]
    done = lab("run", "--external", env=on_embedded_lab | {"LAB_POSTGRES_URI": wrong})
    assert "password authentication failed" in refused(done)
    assert "geheim99" not in done.stdout + done.stderr


def test_half_of_the_clickhouse_addresses_is_refused(lab: Command, on_embedded_lab: dict[str, str]) -> None:
    only_http = {k: v for k, v in on_embedded_lab.items() if k != "LAB_CLICKHOUSE_NATIVE_URI"}
    assert "found only one of them" in refused(lab("run", "--external", env=only_http))


def test_an_external_run_uses_the_named_servers_and_leaves_no_table(
    lab: Command, on_embedded_lab: dict[str, str], embedded_lab: EmbeddedLab
) -> None:
    done = lab("run", "--external", "--rows", "500", "--passes", "1", "--only", "*.write_polars_*", env=on_embedded_lab)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = Path(on_embedded_lab["LAB_RESULTS_DIR"]).iterdir()
    rows = results.load(folder / "runs.csv")
    assert {row["lab"] for row in rows} == {"external"}
    assert {row["status"] for row in rows} == {Status.OK, Status.UNAVAILABLE}
    with psycopg.connect(embedded_lab.endpoints["postgres"]) as direct:
        query = (
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE 'analytics%%'"
        )
        assert direct.execute(query, (NAMESPACE,)).fetchone() == (0,)
    password = embedded_lab.endpoints["postgres"].partition(":lab:")[2] or embedded_lab._password
    assert not [path for path in folder.rglob("*") if path.is_file() and password in path.read_text(errors="replace")]


@pytest.mark.parametrize("system", ["postgres", "clickhouse"])
def test_a_table_of_somebody_else_with_the_labs_name_is_refused_before_anything_is_done(
    lab: Command, on_embedded_lab: dict[str, str], embedded_lab: EmbeddedLab, system: str
) -> None:
    opened = SYSTEMS[system].open_connection(embedded_lab.endpoints)
    SYSTEMS[system].ensure_namespace(opened)
    name = f"{NAMESPACE}.analytics_metrics_loaded"
    run_sql = opened.command if system == "clickhouse" else opened.cursor().execute
    run_sql(f"CREATE TABLE {name} (id {'Int32) ENGINE = MergeTree ORDER BY id' if system == 'clickhouse' else 'int)'}")
    try:
        line = refused(lab("run", "--external", "--only", ONE_WAY, env=on_embedded_lab))
        assert f'table "{name}" exists and was not made by the lab' in line
        assert not Path(on_embedded_lab["LAB_RESULTS_DIR"]).exists()
    finally:
        run_sql(f"DROP TABLE {name}")


def test_a_second_run_on_the_same_machine_is_refused_with_the_first_ones_id(
    lab: Command, environment: dict[str, str]
) -> None:
    state = Path(environment["LAB_STATE_DIR"])
    state.mkdir(parents=True)
    with (state / "run.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("20260101T000000Z-first")
        held.flush()
        assert "run 20260101T000000Z-first is using this lab" in refused(lab("run", env=environment))


def test_a_stopped_run_is_resumed_without_losing_or_repeating_a_row(lab: Command, environment: dict[str, str]) -> None:
    arguments = ("run", "--rows", "500", "--passes", "3", "--only", "postgres.psycopg.*")
    first = subprocess.Popen((sys.executable, "-m", "harness.cli", *arguments), env=environment, stdout=subprocess.PIPE)
    results_dir = Path(environment["LAB_RESULTS_DIR"])
    wait_for_rows(results_dir, 4)
    first.send_signal(signal.SIGTERM)
    output, _ = first.communicate(timeout=30)
    assert first.returncode == 143
    (folder,) = results_dir.iterdir()
    assert f"lab run --resume {folder.name}".encode() in output
    before = (folder / "runs.csv").read_text()
    with (folder / "runs.csv").open("a") as file:
        file.write("torn,li")  # as a killed run may leave it

    done = lab("run", "--resume", folder.name, env=environment)

    assert done.returncode == 0, done.stdout + done.stderr
    after = (folder / "runs.csv").read_text()
    assert after.startswith(before)
    rows = results.load(folder / "runs.csv")
    assert len(rows) == len({(row["transport"], row["pass"]) for row in rows}) == 18
    assert sorted(row["order"] for row in rows) == list(range(1, 19))


def test_a_run_of_another_environment_is_not_resumed(lab: Command, environment: dict[str, str]) -> None:
    done = lab("run", "--rows", "100", "--passes", "1", "--only", ONE_WAY, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).iterdir()
    facts = json.loads((folder / "environment.json").read_text())
    facts["machine"]["cpu"] = "another"
    (folder / "environment.json").write_text(json.dumps(facts))
    assert "made in another environment (machine differ" in refused(
        lab("run", "--resume", folder.name, env=environment)
    )


@pytest.fixture
def small_results_disk(tmp_path: Path) -> Iterator[Path]:
    """A results folder on a disk of 3 MB."""
    folder = tmp_path / "results"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small tmpfs")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_too_small_for_the_rows_is_refused_before_anything_is_made(
    lab: Command, environment: dict[str, str], small_results_disk: Path
) -> None:
    line = refused(lab("run", "--rows", "20000", "--only", ONE_WAY, env=environment))
    assert "expected 7.0 MB of free disk" in line
    assert "found 3.1 MB" in line
    assert not list(small_results_disk.iterdir())


def test_a_disk_that_fills_in_the_middle_of_a_run_stops_it_and_room_lets_it_be_completed(
    lab: Command, environment: dict[str, str], small_results_disk: Path
) -> None:
    arguments = ("run", "--rows", "200", "--passes", "3", "--only", "postgres.psycopg.*")
    command = (sys.executable, "-m", "harness.cli", *arguments)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        wait_for_rows(small_results_disk, 4)
        (small_results_disk / "filler").write_bytes(bytes(2_500_000))
        _, said = running.communicate(timeout=60)
    assert running.returncode == 2
    assert b"MB of free disk" in said
    (small_results_disk / "filler").unlink()
    (folder,) = small_results_disk.iterdir()
    assert f'"lab run --resume {folder.name}" goes on' in said.decode()
    before = results.load(folder / "runs.csv")
    assert 4 <= len(before) < 18
    assert {row["status"] for row in before} == {Status.OK}
    done = lab("run", "--resume", folder.name, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(results.load(folder / "runs.csv")) == 18


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_results_folder_is_refused(lab: Command, environment: dict[str, str], tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    line = refused(lab("run", "--only", ONE_WAY, env=environment | {"LAB_RESULTS_DIR": str(closed / "results")}))
    assert "LAB_RESULTS_DIR" in line


def test_a_results_folder_that_is_a_file_is_refused(lab: Command, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = refused(
        lab("run", "--rows", "100", "--only", ONE_WAY, env=environment | {"LAB_RESULTS_DIR": str(tmp_path / "file")})
    )
    assert "LAB_RESULTS_DIR" in line


def test_a_damaged_runs_file_is_reported_not_guessed_at(lab: Command, environment: dict[str, str]) -> None:
    lab("run", "--rows", "100", "--passes", "1", "--only", ONE_WAY, env=environment)
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).iterdir()
    with (folder / "runs.csv").open("a") as file:
        file.write("only,three,cells\n")
    assert "line 3" in refused(lab("report", folder.name, env=environment))


def test_list_prints_a_part_of_the_catalogue(lab: Command, environment: dict[str, str]) -> None:
    done = lab("list", "clickhouse.*.write_*", env=environment)
    ids, summaries = zip(*(line.split("\t") for line in done.stdout.splitlines()), strict=True)
    assert all(summaries)
    assert len(ids) == 20
    assert all(name.startswith("clickhouse.") and ".write_" in name for name in ids)


@pytest.mark.parametrize(
    "transport_id", [name for name, entry in registry.catalogue().items() if "pg_parquet" not in entry.needs]
)
def test_the_script_that_show_prints_runs_on_its_own(
    transport_id: str, embedded_lab: EmbeddedLab, dataset_folder: Path, tmp_path: Path
) -> None:
    entry = registry.one(transport_id)
    dataset, warmup = (store.ensure(dataset_folder, "analytics_metrics", rows, 1) for rows in (500, 1_000))
    tables = Tables(embedded_lab.endpoints, store.specification("analytics_metrics"), dataset, warmup)
    is_write = entry.direction is Direction.WRITE
    table, _ = tables.for_write(entry.system) if is_write else tables.for_read(entry.system)
    uri = SYSTEMS[entry.system].transport_uri(entry.endpoint, embedded_lab.endpoints[entry.endpoint])
    (tmp_path / "script.py").write_text(script(entry))
    command = [sys.executable, "-I", str(tmp_path / "script.py"), uri, table, *([dataset.path] if is_write else [])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    if is_write:
        assert "500 rows written" in done.stdout
        assert tables.differences_in_table(entry.system, table) == []
    else:
        assert "500" in done.stdout
    tables.close(drop=True)


def test_the_summary_is_written_again_from_results_alone(lab: Command, environment: dict[str, str]) -> None:
    lab("run", "--rows", "100", "--passes", "2", "--only", "postgres.psycopg.*", env=environment)
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).iterdir()
    first = (folder / "summary.csv").read_text()
    (folder / "summary.csv").unlink()
    done = lab("report", folder.name, env=environment)
    assert done.returncode == 0
    assert (folder / "summary.csv").read_text() == first
    with (folder / "summary.csv").open(newline="") as file:
        assert {row["n"] for row in csv.DictReader(file)} == {"2"}


def test_serve_prints_addresses_that_work_and_ends_on_sigterm(environment: dict[str, str]) -> None:
    command = (sys.executable, "-m", "harness.cli", "serve")
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        printed = dict(serving.stdout.readline().rstrip("\n").split("\t") for _ in range(3))
        assert set(printed) == {"postgres", "clickhouse_http", "clickhouse_native"}
        with psycopg.connect(printed["postgres"]) as direct:
            assert direct.execute("SELECT 1").fetchone() == (1,)
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(timeout=15) == 143
    assert not [path for path in Path(environment["LAB_STATE_DIR"]).iterdir() if path.is_dir()]
