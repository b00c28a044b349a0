"""A run that was stopped, by a signal or a full disk, is completed later; one of another environment is not."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness import registry
from harness.lab.embedded import EmbeddedLab
from harness.model import Origin, Status
from harness.results import runs_csv
from harness.results.row import OF_MEASUREMENT
from harness.run import fault_attribution
from harness.run.suite_run import open_run, resume_request
from harness.settings import load
from tests.commands import Command, addresses_of, environment_below, refused, succeeded, wait_for_rows
from tests.disks import small_disk

ONE_WAY = "postgres.psycopg.write_polars_copy_text"
OF_THE_ARTICLE = ("--experiment", "matrix", "--origin", "published")
OF_PSYCOPG = [entry for entry in registry.select("postgres.psycopg.*") if entry.origin is Origin.PUBLISHED]
THREE_PASSES = 3 * len(OF_PSYCOPG)


@pytest.mark.long
def test_a_stopped_run_is_resumed_without_losing_or_repeating_a_row(lab: Command, environment: dict[str, str]) -> None:
    arguments = ("run", *OF_THE_ARTICLE, "--rows", "500", "--passes", "3", "--only", "postgres.psycopg.*")
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

    succeeded(lab("run", "--resume", folder.name, env=environment))
    after = (folder / "runs.csv").read_text()
    assert after.startswith(before)
    rows = runs_csv.load(folder / "runs.csv")
    assert len(rows) == len({(row.transport, row.pass_number) for row in rows}) == THREE_PASSES
    assert sorted(row.order for row in rows) == list(range(1, THREE_PASSES + 1))


@pytest.fixture(scope="module")
def made(
    lab: Command, tmp_path_factory: pytest.TempPathFactory, dataset_folder: Path, embedded_lab: EmbeddedLab
) -> Path:
    """The folder of a run of one transport in three passes on named servers, made once."""
    place = environment_below(tmp_path_factory.mktemp("made"), dataset_folder) | addresses_of(embedded_lab)
    run = ("run", "--external", "--experiment", "matrix", "--rows", "100", "--passes", "3", "--only", ONE_WAY)
    succeeded(lab(*run, env=place))
    (folder,) = Path(place["LAB_RESULTS_DIR"]).iterdir()
    return folder


@pytest.fixture
def folder(made: Path, on_embedded_lab: dict[str, str]) -> Path:
    """A copy of that run among the results of a test."""
    return Path(shutil.copytree(made, Path(on_embedded_lab["LAB_RESULTS_DIR"]) / made.name))


@pytest.mark.long
def test_a_run_of_another_environment_is_not_resumed(
    lab: Command, on_embedded_lab: dict[str, str], folder: Path
) -> None:
    facts = json.loads((folder / "environment.json").read_text())
    facts["machine"]["cpu"] = "another"
    (folder / "environment.json").write_text(json.dumps(facts))
    assert "made in another environment (machine differ" in refused(
        lab("run", "--resume", folder.name, env=on_embedded_lab)
    )


@pytest.mark.long
def test_a_run_that_is_to_be_done_again_is_and_counts_once(
    lab: Command, on_embedded_lab: dict[str, str], folder: Path
) -> None:
    rows = (folder / "runs.csv").read_text().splitlines()
    (folder / "runs.csv").write_text("\n".join([*rows[:-1], rows[-1].replace(",ok,", ",again,"), ""]))
    before = lab("report", folder.name, env=on_embedded_lab)
    assert "This run is not complete" in (folder / "report.html").read_text()
    assert f"1 run was ended by the machine or a person: lab run --resume {folder.name}" in before.stdout
    succeeded(lab("run", "--resume", folder.name, env=on_embedded_lab))
    assert [str(row.status) for row in runs_csv.load(folder / "runs.csv")] == ["ok", "ok", "again", "ok"]
    assert "1 case in 3 passes of size default: 3 runs (3 ok)." in (folder / "report.html").read_text()


@pytest.mark.long
def test_a_run_knows_what_the_kernel_has_ended_for_memory_before(
    on_embedded_lab: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = runs_csv.load(folder / "runs.csv")
    path, error = folder / "runs.csv", f"{fault_attribution.STARVED}; the worker was killed"
    path.unlink()
    for row in (replace(first, status=Status.AGAIN, error=error, **dict.fromkeys(OF_MEASUREMENT)), *others):
        runs_csv.append(path, row)
    for name, value in on_embedded_lab.items():
        monkeypatch.setenv(name, value)
    settings = load()
    with open_run(resume_request(settings, folder.name, lambda suite: "databases")) as resumed:
        assert [run.pass_number for run in resumed.todo] == [first.pass_number]
        assert {run.key for run in resumed.todo} == resumed.excused
        assert len(resumed.done) == 2


@pytest.mark.long
def test_a_copy_of_a_folder_goes_on_under_the_id_its_rows_have(
    lab: Command, on_embedded_lab: dict[str, str], made: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere" / "copy"
    shutil.copytree(made, copy)
    (copy / "runs.csv").write_text("".join((copy / "runs.csv").read_text().splitlines(keepends=True)[:2]))
    succeeded(lab("run", "--resume", str(copy), env=on_embedded_lab))
    assert {row.run_id for row in runs_csv.load(copy / "runs.csv")} == {made.name}
    assert len(runs_csv.load(copy / "runs.csv")) == len(runs_csv.load(made / "runs.csv")) == 3


@pytest.fixture
def small_results_disk(tmp_path: Path, environment: dict[str, str]) -> Iterator[Path]:
    """The results folder of the test, on a disk of 3 MB."""
    with small_disk(tmp_path, "3m") as folder:
        environment["LAB_RESULTS_DIR"] = str(folder)
        yield folder


@pytest.mark.long
def test_a_disk_too_small_for_the_rows_is_refused_before_anything_is_made(
    lab: Command, environment: dict[str, str], small_results_disk: Path
) -> None:
    line = refused(lab("run", "--rows", "20000", "--only", ONE_WAY, env=environment))
    assert "7.0 MB of disk needed, 3.1 MB free" in line
    assert not list(small_results_disk.iterdir())
