"""Do plain calls take as many CPU seconds as the lab says? Ten transports, each in a separate process, on one server.

    .venv/bin/python -m benchmarks.independent.compare [rows] [passes]

The lab brings up the servers and makes the data; the calls know nothing of it. Passes of the two alternate, so that a
slow spell of the machine meets both. Medians agree within 10 % on a quiet machine, or the command ends with 1.
"""

from __future__ import annotations

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
from harness.results import runs_csv
from harness.settings import ROOT
from harness.systems import SYSTEMS

AGREES = 0.10
ROWS, PASSES, WARMUP = 100_000, 5, 1_000
DATASET, TABLE, WARMUP_TABLE = "analytics_metrics", "independent", "independent_warmup"
FILLS = {"postgres": "psycopg_copy_csv", "clickhouse": "post_csv"}  # these fill the tables that others read

Seconds = dict[str, list[float]]  # CPU seconds of each run, by transport


def add_calls(found: Seconds, lab: EmbeddedLab, parquets: tuple[str, str]) -> None:
    """Add the CPU seconds of a pass of plain calls; writes go into empty tables."""
    for name, (_, transport) in calls.CALLS.items():
        system = transport.partition(".")[0]
        create(lab, system)
        if ".read_" in transport:
            called(FILLS[system], lab, parquets)
        found.setdefault(transport, []).append(called(name, lab, parquets))


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


def add_lab(found: Seconds, lab: EmbeddedLab, folder: Path, rows: int) -> None:
    """Add the CPU seconds of a pass of the same transports, as the lab measures them on the same servers."""
    names = ",".join(transport for _, transport in calls.CALLS.values())
    env = os.environ | {
        "LAB_POSTGRES_URI": lab.endpoints["postgres"],
        "LAB_CLICKHOUSE_HTTP_URL": lab.endpoints["clickhouse_http"],
        "LAB_CLICKHOUSE_NATIVE_URI": lab.endpoints["clickhouse_native"],
        "LAB_RESULTS_DIR": str(folder / "results"),
        "LAB_DATASETS_DIR": str(folder / "datasets"),
        "LAB_PICTURES": "0",
        "LAB_CALIBRATION": "0",
    }
    asked = ("--only", names, "--experiment", "matrix", "--rows", str(rows), "--passes", "1", "--external")
    command = (sys.executable, "-m", "harness.cli", "run", "matrix", *asked)
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
    for row in runs_csv.load(max((folder / "results").iterdir()) / "runs.csv"):
        assert row.cpu_seconds is not None, row.error
        found.setdefault(row.transport, []).append(row.cpu_seconds)


def compare(rows: int = ROWS, passes: int = PASSES) -> dict[str, tuple[float, float]]:
    """Return for each transport the median CPU seconds of the plain call and of the lab."""
    ours: Seconds = {}
    theirs: Seconds = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        parquets = [str(store.ensure(folder / "datasets", DATASET, count, 20260407).path) for count in (rows, WARMUP)]
        with EmbeddedLab(folder / "lab") as lab:
            for _ in range(passes):
                add_calls(ours, lab, (parquets[0], parquets[1]))
                add_lab(theirs, lab, folder, rows)
    return {name: (median(ours[name]), median(theirs[name])) for name in ours}


def main(rows: int = ROWS, passes: int = PASSES) -> int:
    """Print the comparison, and return whether it failed."""
    found = compare(rows, passes)
    for name, (plain, lab) in found.items():
        mark = "" if abs(lab / plain - 1) <= AGREES else "  differs"
        print(f"{name:<60} {plain:8.3f} s plain {lab:8.3f} s in the lab {lab / plain - 1:+7.1%}{mark}")
    return int(any(abs(lab / plain - 1) > AGREES for plain, lab in found.values()))


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
