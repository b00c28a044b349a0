"""Shared by tests of the command line: its folders and servers, waiting for a run, the form of a refusal."""

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from harness.cli import call
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import LabError

STOPPED = 130  # the exit code of a command that Ctrl-C ended
Command = Callable[..., subprocess.CompletedProcess[str]]


def in_process(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a `lab` command in the process of the tests; while it runs, the environment has only these variables."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        patch.dict(os.environ, env, clear=True),
        patch.object(sys, "argv", ["lab", *arguments]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = call()
    if code == STOPPED:  # a person stops the tests, not the command
        raise KeyboardInterrupt
    said, warned = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(arguments, code, said, warned)


def in_own_process(*arguments: str, env: dict[str, str], timeout: float = 500) -> subprocess.CompletedProcess[str]:
    """Run a `lab` command as a person does, in its own process."""
    command = (sys.executable, "-m", "harness.cli", *arguments)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, check=False)


def environment_below(folder: Path, datasets: Path) -> dict[str, str]:
    """Return variables for a `lab` command that leaves everything below this folder, but for datasets."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
    return inherited | {
        "LAB_DATASETS_DIR": str(datasets),
        "LAB_RESULTS_DIR": str(folder / "results"),
        "LAB_STATE_DIR": str(folder / "state"),
        "LAB_NAMESPACE": namespace(),
        "LAB_LOCK_DIR": str(folder / "lock"),  # tests run in parallel
        "LAB_CALIBRATION": "0",  # two seconds before and after each run
        "LAB_PICTURES": "0",  # tests/report draws them
        "PYTHONFAULTHANDLER": "1",  # a crash says where
    }


def addresses_of(lab: EmbeddedLab) -> dict[str, str]:
    """Return the variables that name the servers of a lab, for `--external`."""
    return {
        "LAB_POSTGRES_URI": lab.endpoints["postgres"],
        "LAB_CLICKHOUSE_HTTP_URL": lab.endpoints["clickhouse_http"],
        "LAB_CLICKHOUSE_NATIVE_URI": lab.endpoints["clickhouse_native"],
    }


def wait_for_rows(results_dir: Path, count: int) -> None:
    """Wait until the one run of a results folder has this many rows."""
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        found = list(results_dir.glob("*/runs.csv"))
        if found and found[0].read_text().count("\n") > count:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {count} rows in {results_dir} within 150 s")


def ran(run: Command, environment: dict[str, str], text: str) -> Path:
    """Run a suite of these lines at its size smoke; return the run's folder."""
    name, results = text.split('"')[1], Path(environment["LAB_RESULTS_DIR"])
    suites = results.parent / "suites"
    suites.mkdir(exist_ok=True)
    (suites / f"{name}.toml").write_text(text)
    succeeded(run("run", name, "--size", "smoke", env=environment | {"LAB_SUITES_DIR": str(suites)}))
    (folder,) = results.iterdir()
    return folder


def succeeded(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Return a command that ended well; otherwise fail with its output."""
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done


@contextmanager
def one_line(said: str) -> Iterator[pytest.ExceptionInfo[LabError]]:
    """Expect a refusal (LabError) of one line that has this pattern."""
    with pytest.raises(LabError, match=said) as caught:
        yield caught
    assert "\n" not in str(caught.value)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a command that was refused as a bad input must be."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("lab: ")
    return lines[0]
