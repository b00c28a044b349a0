"""The whole matrix on the embedded lab: every published transport leaves a verified row."""

import csv
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import registry
from harness.model import Origin, Status
from harness.report.terminal import LINES
from harness.results import runs_csv
from harness.results.row import OF_MEASUREMENT
from harness.settings import ROOT
from tests.commands import Command, environment_below

PG_PARQUET = {
    f"postgres.pg_parquet.{operation}_{frame}_parquet_file"
    for operation in ("write", "read")
    for frame in ("pandas", "polars")
}

pytestmark = pytest.mark.long  # some ninety runs
SERVERS = ("Postgres", "ClickHouse")
UNSUPPORTED = {"clickhouse.connectorx.call_select_1"}  # it cannot read the compression of a server of 26.9


@pytest.fixture(scope="module")
def run_folder(lab_process: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one pass over all transports at 2,000 rows, through the command line.

    `.ci/run` has just made such a run: LAB_MATRIX_OUTPUT names the file with its output.
    """
    home = tmp_path_factory.mktemp("matrix")
    if output := os.environ.get("LAB_MATRIX_OUTPUT"):
        said = Path(output).read_text()
        (run_id,) = set(re.findall(r"^Report: results/(\S+)/report\.html$", said, re.MULTILINE))
        folder = home / run_id
        shutil.copytree(ROOT / "results" / run_id, folder)
    else:
        done = lab_process(
            "run", "matrix", "--size", "smoke", env=environment_below(home, home / "datasets"), timeout=900
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said = done.stdout
        (folder,) = (home / "results").iterdir()
    (folder / "output.txt").write_text(said)
    return folder


def rows_of(folder: Path) -> list[dict]:
    return runs_csv.load(folder / "runs.csv")


def published(folder: Path) -> list[dict]:
    rows = [row for row in rows_of(folder) if row.experiment == "matrix"]
    return [row for row in rows if row.origin == Origin.PUBLISHED]


def test_every_published_transport_leaves_a_row_and_all_but_pg_parquet_are_ok(run_folder: Path) -> None:
    by_status = {status: {row.transport for row in rows_of(run_folder) if row.status == status} for status in Status}
    ways = {entry.id for entry in registry.select("postgres.*,clickhouse.*") if entry.origin is Origin.PUBLISHED}
    assert Counter(row.transport for row in published(run_folder)) == Counter(ways)
    assert by_status[Status.UNAVAILABLE] == PG_PARQUET
    assert by_status[Status.UNSUPPORTED] == UNSUPPORTED
    assert by_status[Status.OK] == {row.transport for row in rows_of(run_folder)} - PG_PARQUET - UNSUPPORTED


def test_every_bound_is_measured_in_the_same_run_and_what_it_throws_away_has_no_fidelity(run_folder: Path) -> None:
    entries = registry.select("postgres.*,clickhouse.*,machine.*")
    bounds = [row for row in rows_of(run_folder) if row.origin == Origin.LIMIT]
    assert {row.transport for row in bounds} == {entry.id for entry in entries if entry.origin is Origin.LIMIT}
    assert {row.fidelity for row in bounds if row.operation != "write"} == {""}
    assert {row.fidelity for row in bounds if row.operation == "write"} == {"exact"}


def summaries_of(folder: Path) -> list[SimpleNamespace]:
    with (folder / "summary.csv").open(newline="") as file:
        return [SimpleNamespace(**line) for line in csv.DictReader(file)]


def test_the_cost_outside_the_client_is_reported(run_folder: Path) -> None:
    told = [row for row in rows_of(run_folder) if row.status is Status.OK and row.system != "machine"]
    seconds = [row.details["server_cpu_seconds"] for row in told]
    assert min(seconds) >= 0
    # A server's process that ends with the call counts in hundredths of a second, and a tiny run may have none:
    # one of Postgres, which has a process a connection.
    assert sum(one > 0 for one in seconds) > 0.9 * len(seconds)
    assert {row.system for row in told if not row.details["server_cpu_seconds"]} <= {"postgres"}
    copied = {row.transport: row.details for row in rows_of(run_folder)}
    assert copied["postgres.psycopg.read_polars_copy_text"]["received_bytes"] > 2_000 * 100


def test_every_way_knows_its_share_of_the_bound(run_folder: Path) -> None:
    summaries = [line for line in summaries_of(run_folder) if line.operation in ("write", "read") and int(line.n)]
    assert all(float(line.share_of_limit) > 0 for line in summaries)
    best = [line for line in summaries if float(line.share_of_limit) == 1 and line.origin == Origin.LIMIT]
    assert {(line.system, line.operation) for line in best} == {(line.system, line.operation) for line in summaries}


def test_ok_rows_have_plausible_numbers_and_unavailable_rows_say_why_and_have_none(run_folder: Path) -> None:
    for row in published(run_folder):
        if not row.ok:
            assert "does not offer pg_parquet" in row.error
            assert all(getattr(row, name) is None for name in (*OF_MEASUREMENT, "rows_per_s", "cpu_seconds"))
            continue
        assert 0 < row.seconds < 60
        assert row.rows_per_s == pytest.approx(row.rows / row.seconds, rel=1e-6)
        assert 0 <= row.cpu_seconds < 60
        assert 0 <= row.peak_rss_bytes < 500e6
        assert row.fidelity == "exact" or row.fidelity.startswith("converted: ")
        assert row.lab == "embedded"
        inserts = row.system == "clickhouse" and row.operation == "write"
        assert not inserts or "async_insert=0" in row.pinned.split("; ")


def test_the_summary_ranks_every_database_and_operation_from_one(run_folder: Path) -> None:
    summaries = summaries_of(run_folder)
    ranks: dict[tuple[str, str], list[int]] = {}
    for summary in summaries:
        if summary.rank and summary.published_row and summary.experiment == "matrix":
            ranks.setdefault((summary.system, summary.operation), []).append(int(summary.rank))
    sizes = Counter({key: len(places) for key, places in ranks.items()})
    assert sizes == {
        ("postgres", "write"): 6,
        ("postgres", "read"): 10,
        ("clickhouse", "write"): 20,
        ("clickhouse", "read"): 16,
    }
    assert all(places == list(range(1, len(places) + 1)) for places in ranks.values())


def test_the_output_says_which_lab_what_is_skipped_and_why(run_folder: Path) -> None:
    output = (run_folder / "output.txt").read_text()
    first, second = output.splitlines()[:2]
    begun = [row for row in rows_of(run_folder) if row.status is not Status.UNAVAILABLE]
    assert len(begun) > 90
    assert first.startswith("matrix: size smoke, 1 pass; ")
    assert second.startswith("lab: embedded (postgres 18.")
    assert output.count("skipped: ") == 1
    assert "skipped: 4 transports: the postgres 18.4 server does not offer pg_parquet; make up starts" in output
    assert f"\n{len(begun)} runs of " in output
    assert f"\n[{len(begun)}/{len(begun)}, ETA 0:00] " in output
    answers = output[output.index("The fastest exact transport") :]
    assert len(answers.splitlines()) < LINES
    assert all(f"{frame} to {system}" in answers for frame in ("pandas", "polars") for system in SERVERS)
    assert "ClickHouse read: 2,000 rows" not in output


def test_the_environment_describes_the_run_without_secrets(run_folder: Path) -> None:
    text = (run_folder / "environment.json").read_text()
    facts = json.loads(text)
    assert facts["servers"]["postgres"]["version"].startswith("18.")
    assert facts["packages"]["polars"]
    (dataset,) = facts["data"]
    assert dataset["content_hash"]
    assert "://" not in text
    assert "password" not in text.lower().replace("password_encryption", "")


def test_no_scratch_file_and_no_log_of_a_good_run_stays(run_folder: Path) -> None:
    assert not (run_folder / "result.arrow").exists()
    of_bad_ones = {path.stem.partition("-")[2] for path in (run_folder / "logs").iterdir()}
    assert of_bad_ones == UNSUPPORTED
