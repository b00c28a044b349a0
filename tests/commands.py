"""What tests of the command line share: waiting for a run, and what a refusal must look like."""

import subprocess
import time
from pathlib import Path


def wait_for_rows(results_dir: Path, count: int) -> None:
    """Wait until the one run of a results folder has this many rows."""
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        found = list(results_dir.glob("*/runs.csv"))
        if found and found[0].read_text().count("\n") > count:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {count} rows in {results_dir} within 150 s")


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a command that was refused as a bad input must be."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("lab: ")
    return lines[0]
