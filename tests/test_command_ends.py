"""What ends a command before its work is one line and its exit code, never a traceback."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.commands import refused

pytestmark = [pytest.mark.process, pytest.mark.long]
Command = Callable[..., subprocess.CompletedProcess[str]]
LAB = (sys.executable, "-m", "harness.cli")
SHOWN = "postgres.psycopg.call_select_1"
NOBODY = 54_321  # a uid that no passwd entry names


@pytest.mark.parametrize("command", [("list",), ("--help",), ("show", SHOWN), ("report", "x")])
@pytest.mark.parametrize("stream", ["closed", "full"])
def test_an_output_that_takes_nothing_is_one_line(command, stream, environment: dict[str, str]) -> None:
    to = {"closed": "exec 1>&-; ", "full": "exec 1>/dev/full; "}[stream]
    done = subprocess.run(
        ("bash", "-c", f'{to}exec "$@"', "bash", *LAB, *command),
        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("lab: no run" if command[0] == "report" and stream == "full" else "lab: ")
    assert "standard output" in line or "no run" in line


def test_an_error_whose_output_is_closed_still_has_its_exit_code(environment: dict[str, str]) -> None:
    for to in ("exec 2>&-; ", "exec 2>/dev/full; ", "exec 0>&-; exec 2>&-; "):
        command = ("bash", "-c", f'{to}exec "$@"', "bash", *LAB, "report", "x")
        assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize("name", ["LAB_RESULTS_DIR", "LAB_STATE_DIR", "LAB_LOCK_DIR"])
def test_a_folder_of_the_settings_that_is_no_utf_8_is_one_line(
    name, environment: dict[str, str], tmp_path: Path
) -> None:
    place = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    command = (*LAB, "report", "x")
    done = subprocess.run(command, env=environment | {name: place}, capture_output=True, text=True, check=False)
    assert rf"{name}: Value error, expected a path in UTF-8, found {tmp_path}/\udcff" in refused(done)


def test_a_file_of_data_whose_name_is_no_utf_8_is_one_line(environment: dict[str, str], tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "good.parquet")
    place = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet")
    (tmp_path / "good.parquet").rename(place)
    command = (*LAB, "recommend", "--to", "postgres", "--data", place)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert rf"--data: expected a path in UTF-8, found {tmp_path}/\udcff.parquet; rename" in refused(done)


@pytest.mark.parametrize("budget", ["1e308", "604801", "inf", "nan", "0", "-1"])
def test_a_budget_that_nobody_waits_for_is_one_line(
    lab: Command, budget: str, environment: dict[str, str], tmp_path: Path
) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "good.parquet")
    asked = ("--to", "postgres", "--data", str(tmp_path / "good.parquet"), "--budget", budget)
    done = lab("recommend", *asked, env=environment)
    assert "expected a budget in seconds above 0 and up to 604800 (a week), found" in refused(done)


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed, and only root becomes one")
def test_a_user_without_a_home_is_one_line(environment: dict[str, str]) -> None:
    plain = {name: value for name, value in environment.items() if name != "HOME"}
    command = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--inh-caps",
               "+dac_read_search", "--ambient-caps", "+dac_read_search", *LAB, "report", "x")  # fmt: skip
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    assert "found no home folder for ~/" in refused(done)


@pytest.mark.skipif(os.geteuid() != 0, reason="a user of few processes is needed, and only root becomes one")
@pytest.mark.parametrize("limit", [("nproc", "1"), ("nofile", "16")])
def test_too_few_processes_or_files_are_one_line(limit, environment: dict[str, str], tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "good.parquet")
    for path in (tmp_path, *tmp_path.parents):
        if path.owner() == "root" and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o755)
    for name in ("RESULTS", "STATE", "LOCK"):
        Path(environment[f"LAB_{name}_DIR"]).mkdir(exist_ok=True)
        Path(environment[f"LAB_{name}_DIR"]).chmod(0o777)
    kind, number = limit
    command = ("prlimit", f"--{kind}={number}", "setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY),
               "--clear-groups", "--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search", *LAB,
               "recommend", "--to", "postgres", "--data", str(tmp_path / "good.parquet"), "--budget", "20")  # fmt: skip
    done = subprocess.run(
        command, env=environment | {"HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.splitlines()[-1].startswith("lab: "), done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_the_commands_are_imported_is_one_line(environment: dict[str, str]) -> None:
    interrupted = 0
    for seconds in (0.1, 0.2, 0.3, 0.5, 0.8, 5):
        with subprocess.Popen(
            (*LAB, "recommend"), env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
        ) as lab:
            deadline = time.monotonic() + 20
            while b"SigCgt:\t0000000000000000" in Path(f"/proc/{lab.pid}/status").read_bytes():  # Python has not begun
                assert time.monotonic() < deadline
            time.sleep(seconds)
            lab.send_signal(signal.SIGINT)
            _, said = lab.communicate(timeout=30)
        if b"Traceback" in said and b"harness" not in said:
            continue  # Python itself had not begun: on a busy machine it takes longer than this
        interrupted += 1
        assert b"Traceback" not in said, said
        assert lab.returncode in (130, 2, 0)
    assert interrupted
