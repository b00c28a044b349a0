"""`action.yml`: its steps in order, as a runner takes them, and compared with an earlier run of the same machine."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.settings import ROOT
from tests.commands import Command

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
# Parts that are not installed here: a record of the call.
MAKE = '#!/bin/sh\necho "$@" >>"$CALLS"\n'


def told(text: str, known: dict[str, str]) -> str:
    """A string of the action after a runner has replaced its expressions."""
    return re.sub(r"\$\{\{ *(\S+) *\}\}", lambda found: known[found[1]], text)


class Runner:
    """Runs the command steps of the action, without those that use other actions."""

    def __init__(self, folder: Path, datasets: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "bin" / "make").write_text(MAKE)
        (folder / "bin" / "make").chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LAB_", "GITHUB_"))}
        self.environment = kept | {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(folder / "calls"),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            # of the test alone: a runner has its machine to itself
            "LAB_STATE_DIR": str(folder / "state"),
            "LAB_LOCK_DIR": str(folder),
            "LAB_DATASETS_DIR": str(datasets),
            "LAB_PICTURES": "0",
        }

    def run(self, **inputs: str) -> tuple[int, str, Path]:
        """Return the status, the summary and the run's folder, as the action reports it."""
        for name in ("output", "summary"):
            (self.folder / name).write_text("")
        given = {name: inputs.get(name.replace("-", "_"), of["default"]) for name, of in ACTION["inputs"].items()}
        known = {f"inputs.{name}": value for name, value in given.items()}
        known |= {"github.action_ref": "v1", "runner.temp": str(self.folder)}
        status = 0
        for step in (step for step in ACTION["runs"]["steps"] if "run" in step):
            environment = {name: told(value, known) for name, value in step.get("env", {}).items()}
            done = subprocess.run(
                ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]),
                env=self.environment | environment,
                cwd=self.folder,
                capture_output=True,
                text=True,
            )
            status = done.returncode
        said = dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())
        folder = Path(said.get("results", ""))
        assert said.get("name", "") == folder.name
        return status, (self.folder / "summary").read_text(), folder


def actions() -> list[str]:
    return [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]


def test_what_the_action_uses_is_pinned_to_the_commits_of_the_workflows() -> None:
    workflows = "".join(path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml"))
    assert len(actions()) == 2
    for used in actions():
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", used)
        assert used in workflows


def test_no_input_is_put_into_a_command_where_it_would_be_read_as_one() -> None:
    steps: list[dict[str, Any]] = ACTION["runs"]["steps"]
    assert not any("${{" in step.get("run", "") for step in steps)


@pytest.mark.long
@pytest.mark.process
def test_the_steps_leave_a_report_and_the_answers_in_the_summary(
    tmp_path: Path, dataset_folder: Path, lab: Command, environment: dict[str, str]
) -> None:
    runner = Runner(tmp_path, dataset_folder)
    status, summary, first = runner.run(rows="200", only="postgres.psycopg.read_polars_rows")
    assert status == 0, summary
    assert (tmp_path / "calls").read_text().startswith(f"--directory {ROOT}")
    assert summary.startswith("### dataframe-io-lab: matrix\n")
    assert "Postgres read: 200 rows" in summary
    assert (first / "report.html").is_file()
    assert first.is_relative_to(tmp_path)
    again = runner.run(rows="200", only="postgres.psycopg.read_polars_rows", compare_to=str(first))
    assert again[0] == 0
    assert again[2] != first
    assert f"### Compared with {first}" in again[1]
    assert "(ended with status" not in again[1]
    assert runner.run(only="no.such.*") == (2, "", Path())
