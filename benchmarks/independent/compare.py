"""Do plain calls take as many CPU seconds as the lab says? Ten transports, each in a separate process, on one server.

    .venv/bin/python -m benchmarks.independent.compare [rows] [passes]

The lab brings up the servers and makes the data; the calls know nothing of it. Each plain call is next to one of the
lab, first in every other pass, because the kernel needs more CPU time in some minutes than in others. The median of
their ratios is within 10 % of 1, or the transport gets as many passes again. If the median of all is not, either, the
command ends with 1.

The processes of both sides use no huge pages. query_arrow fills 17 of them (2 MB each). A virtual machine that returns
free memory to its host returns those, and the next process that uses one waits until the host has found memory for it.
On such a machine the kernel took 0.01 to 0.09 s for the same call, and more in the lab, whose processes use up the huge
pages at hand before the call. Samples of both sides differed in nothing but the clearing of pages (2026-11-29).

On two cores 100,000 rows and 5 passes take 6 minutes. A read into pandas takes more in the lab if Python collects all
garbage during the call. Its worker has imported polars, so there are more objects to look at: in query_df 0.055 s of
CPU time instead of 0.045 s.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import clickhouse_connect
import psycopg

from benchmarks.independent import calls
from harness.datasets import store
from harness.datasets.specification import PLAIN
from harness.lab.embedded import EmbeddedLab
from harness.model import LabError
from harness.results import runs_csv
from harness.run.lock import require_free
from harness.settings import ROOT, load
from harness.systems import SYSTEMS

_PR_SET_THP_DISABLE = 41  # prctl(2), and processes started later inherit it
AGREES = 0.10
ROWS, PASSES, WARMUP = 100_000, 5, 1_000
DATASET, TABLE, WARMUP_TABLE = "analytics_metrics", "independent", "independent_warmup"
FILLS = {"postgres": "psycopg_copy_csv", "clickhouse": "post_csv"}  # these fill the tables that others read

Pairs = list[tuple[float, float]]  # CPU seconds of the plain call, and in the lab


def of_call(name: str, lab: EmbeddedLab, parquets: tuple[str, str]) -> float:
    """Return the CPU seconds of a plain call; a write goes into an empty table."""
    transport = calls.CALLS[name][1]
    system = transport.partition(".")[0]
    create(lab, system)
    if ".read_" in transport:
        called(FILLS[system], lab, parquets)
    return called(name, lab, parquets)


def called(name: str, lab: EmbeddedLab, parquets: tuple[str, str]) -> float:
    """Make one call in a separate process, and return its CPU seconds."""
    system = calls.CALLS[name][1].partition(".")[0]
    uri = lab.endpoints["postgres" if system == "postgres" else "clickhouse_http"]
    command = (sys.executable, calls.__file__, name, uri, TABLE, parquets[0], WARMUP_TABLE, parquets[1])
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["cpu_seconds"])


def create(lab: EmbeddedLab, system: str) -> None:
    """Create two empty tables, as the lab's are."""
    definition = SYSTEMS[system].tables.definition(store.specification(DATASET), PLAIN)
    assert definition
    for table in (TABLE, WARMUP_TABLE):
        statements = (f"DROP TABLE IF EXISTS {table}", definition.format(table=table))
        if system == "postgres":
            with psycopg.connect(lab.endpoints["postgres"], autocommit=True) as connection:
                for statement in statements:
                    connection.execute(statement)
        else:
            with clickhouse_connect.get_client(dsn=lab.endpoints["clickhouse_http"]) as client:
                for statement in statements:
                    client.command(statement)


def of_lab(name: str, lab: EmbeddedLab, folder: Path, rows: int) -> float:
    """Return the CPU seconds of the same transport, as the lab measures them on the same servers."""
    env = os.environ | {
        "LAB_POSTGRES_URI": lab.endpoints["postgres"],
        "LAB_CLICKHOUSE_HTTP_URL": lab.endpoints["clickhouse_http"],
        "LAB_CLICKHOUSE_NATIVE_URI": lab.endpoints["clickhouse_native"],
        "LAB_RESULTS_DIR": str(folder / "results"),
        "LAB_DATASETS_DIR": str(folder / "datasets"),
        "LAB_PICTURES": "0",
        "LAB_CALIBRATION": "0",
    }
    asked = (
        "--only",
        calls.CALLS[name][1],
        "--experiment",
        "matrix",
        "--rows",
        str(rows),
        "--passes",
        "1",
        "--external",
    )
    command = (sys.executable, "-m", "harness.cli", "run", "matrix", *asked)
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
    (row,) = runs_csv.load(max((folder / "results").iterdir()) / "runs.csv")
    assert row.cpu_seconds is not None, row.error
    return row.cpu_seconds


def off(pairs: Pairs) -> float:
    """Return by which share a transport takes more in the lab than its plain call."""
    return median(lab / plain for plain, lab in pairs) - 1


def compare(rows: int = ROWS, passes: int = PASSES) -> dict[str, Pairs]:
    """Return for each transport the CPU seconds of each pass: twice as many if the first do not agree."""
    found: dict[str, Pairs] = {transport: [] for _, transport in calls.CALLS.values()}
    doubtful = set(found)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        parquets = [str(store.ensure(folder / "datasets", DATASET, count, 20260407).path) for count in (rows, WARMUP)]
        with EmbeddedLab(folder / "lab") as lab:
            for number in range(2 * passes):
                if number == passes:
                    doubtful = {name for name, pairs in found.items() if abs(off(pairs)) > AGREES}
                for name, (_, transport) in calls.CALLS.items():
                    if transport not in doubtful:
                        continue
                    pair = [0.0, 0.0]
                    for side in ((0, 1), (1, 0))[number % 2]:
                        pair[side] = (
                            of_lab(name, lab, folder, rows) if side else of_call(name, lab, (parquets[0], parquets[1]))
                        )
                    found[transport].append((pair[0], pair[1]))
    return found


def main(rows: int = ROWS, passes: int = PASSES) -> int:
    """Print the comparison, and return whether it failed. Raises LabError if another run uses this machine."""
    require_free(load().lock_folder)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    found = compare(rows, passes)
    for name, pairs in found.items():
        plain, lab = map(median, zip(*pairs, strict=True))
        mark = "" if abs(off(pairs)) <= AGREES else "  differs"
        print(f"{name:<60} {plain:8.3f} s plain {lab:8.3f} s in the lab {off(pairs):+7.1%}{mark}")
    return int(any(abs(off(pairs)) > AGREES for pairs in found.values()))


if __name__ == "__main__":
    try:
        raise SystemExit(main(*map(int, sys.argv[1:])))
    except LabError as error:
        raise SystemExit(f"lab: {error}") from None
