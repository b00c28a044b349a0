"""What a person sees while a run is under way: only work counts, and every figure is shown whole."""

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from harness import registry
from harness.model import Status
from harness.results import folder as folders
from harness.results import runs_csv
from harness.results.row import Row
from harness.run import progress
from harness.run.estimate import Pace

ONE_WAY = "postgres.psycopg.write_polars_copy_text"
LONGEST = "clickhouse.clickhouse_connect.write_pandas_dataframe_in_many_ways"


def row(transport: str, status: Status = Status.OK) -> Row:
    figures = {"seconds": 0.25, "rows": 100, "rows_per_s": 400.0} if status is Status.OK else {"error": "it said no"}
    return Row(transport=transport, pass_number=1, status=status, **figures)


def screen(width: int, *rows: Row, terminal: bool = True) -> str:
    """Return what is on the screen after these rows, of which those that were not begun are no work."""
    work = {one.key for one in rows if one.status is not Status.UNAVAILABLE}
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    with progress.shown(console, work, Pace(dict.fromkeys(work, 10.0), 20.0)) as on_row:
        for one in rows:
            on_row(one)
    return console.file.getvalue()


def test_runs_that_were_not_begun_are_neither_counted_nor_shown() -> None:
    rows = row("a"), row("b", Status.UNAVAILABLE), row("c", Status.ERROR)
    lines = screen(200, *rows, terminal=False).splitlines()
    assert [line.partition(",")[0] for line in lines] == ["[1/2", "[2/2"]
    assert lines[0].endswith("pass 1  a  ok  0.2500 s  400 rows/s")
    assert lines[1].endswith("pass 1  c  error: it said no")
    assert "1/1" in screen(80, row("a"), row("b", Status.UNAVAILABLE))


@pytest.mark.parametrize("width", [80, 200])
def test_on_a_terminal_count_eta_and_the_last_result_are_shown_whole(width: int) -> None:
    lines = screen(width, *(row(f"{LONGEST}_{number}") for number in range(120))).splitlines()
    last = next(line for line in reversed(lines) if "ETA" in line)
    assert "120/120 ETA 0:00" in last
    name = f"{LONGEST}_119"
    assert f"0.2500 s {name if width == 200 else name.rpartition('.')[2]}" in last
    assert len(last) <= width + 10  # and what moves the cursor


@pytest.mark.long
def test_after_the_first_pass_a_person_sees_its_answers_and_what_cannot_run_is_one_line_and_no_work(
    lab: Callable[..., subprocess.CompletedProcess[str]], on_embedded_lab: dict[str, str]
) -> None:
    cannot = [entry.id for entry in registry.select("postgres.pg_parquet.write_*")]
    chosen = ("--experiment", "matrix", "--rows", "100", "--passes", "2", "--only", ",".join([ONE_WAY, *cannot]))
    done = lab("run", "--external", *chosen, env=on_embedded_lab)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("skipped: ")] == [
        f"skipped: {len(cannot)} transports: the postgres 18.4 server does not offer pg_parquet"
    ]
    assert "2 runs of 1 transports, size default, 2 passes" in lines
    first, second = (next(place for place, line in enumerate(lines) if line.startswith(f"[{n}/2, ")) for n in (1, 2))
    assert lines[second - 1] == "this is after pass 1 of 2, from one run each: the answers may still change"
    assert any(ONE_WAY in line for line in lines[first + 1 : second])
    (folder,) = Path(on_embedded_lab["LAB_RESULTS_DIR"]).iterdir()
    assert len(runs_csv.load(folder / "runs.csv")) == 2 + 2 * len(cannot)
    assert folders.read(folder).ended
