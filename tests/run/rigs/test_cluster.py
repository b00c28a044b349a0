"""The rig of loads and unloads: a fault during a run happens, is seen, and is gone afterwards."""

import pytest

from harness.model import LabError
from harness.results import runs_csv
from harness.run.rigs import cluster
from harness.systems.system import System
from tests.run.rigs.orders import case

SUITE = """
name = "beside"
title = "What is done beside a run"
rig = "cluster"

[defaults]
dataset = "analytics_metrics"
passes = 1
time_limit_seconds = 120

[[sizes.smoke.experiments]]
name = "kill"
select = "*.dask.load_copy, *.dask.load_copy_once"
parameters = { rows = [300_000], workers = [2], kill = ["after"] }

[[sizes.smoke.experiments]]
name = "kill_clickhouse"
select = "*.dask.load_insert, *.dask.load_insert_once"
parameters = { rows = [1_000_000], workers = [2], kill = ["after"] }

[[sizes.smoke.experiments]]
name = "change"
select = "*.dask.unload_by_parts, *.dask.unload_one_moment"
parameters = { rows = [400_000], workers = [2], change = ["during"] }
"""
LOAD, STREAM = "postgres.dask.load_copy", "postgres.adbc.load_ingest"


@pytest.mark.parametrize(
    ("transport", "parameters", "found"),
    [
        (LOAD, {"rows": 10}, "the parameters are rows; give rows, workers, and any of change, .*, profile"),
        (STREAM, {"rows": 10, "threads": 2}, "the parameters are rows, threads; give rows, and any of"),
        (LOAD, {"rows": 10, "workers": 2, "kill": "often"}, "kill 'often': choose before or after"),
    ],
)
def test_parameters_that_are_unknown_are_refused(transport, parameters, found):
    with pytest.raises(LabError, match=found):
        cluster.require_parameters(case(transport, "analytics_metrics", **parameters))


def test_a_way_of_one_process_needs_no_workers():
    cluster.require_parameters(case(STREAM, "analytics_metrics", rows=10))
    cluster.require_parameters(case(STREAM, "analytics_metrics", rows=10, memory_mb=100))


@pytest.mark.parametrize(
    ("lacks", "parameters", "found"),
    [
        ("", {"change": "during"}, ""),
        ("sums", {}, "no sums"),
        ("concurrent_changes", {}, ""),
        ("concurrent_changes", {"kill": "after"}, "no concurrent_changes"),
        ("concurrent_changes", {"change": "during"}, "no concurrent_changes"),
    ],
)
def test_a_database_that_cannot_sum_or_be_watched_is_left_out(monkeypatch, lacks, parameters, found):
    monkeypatch.setattr(System, "lacks", lambda of, part: f"no {part}" if part == lacks else "")
    assert cluster.lacking(case(LOAD, "analytics_metrics", rows=10, workers=1, **parameters)) == found


PLAIN = {"postgres.dask.load_copy", "clickhouse.dask.load_insert"}
BY_PARTS = {"postgres.dask.unload_by_parts", "clickhouse.dask.unload_by_parts"}
ONCE = {"postgres.dask.load_copy_once", "clickhouse.dask.load_insert_once"}
ONE_MOMENT = {"postgres.dask.unload_one_moment", "clickhouse.dask.unload_one_moment"}
TOO_LATE = "no worker was killed"  # in the short time between its commit and its word to the engine
TRIES = 3


@pytest.mark.long
@pytest.mark.alone  # on a busy machine the right time is over before the test sees it
@pytest.mark.timeout(2_000)
def test_killed_workers_and_changed_tables_come_out_as_they_should(lab_process, environment, tmp_path):
    """Some tries see rows twice, or rows of two points in time; careful transports never show either."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "beside.toml").write_text(SUITE)
    still = PLAIN | BY_PARTS | ONCE | ONE_MOMENT
    for number in range(TRIES):
        results = tmp_path / f"results-{number}"
        own = environment | {"LAB_SUITES_DIR": str(tmp_path / "suites"), "LAB_RESULTS_DIR": str(results)}
        lab_process("run", "beside", "--size", "smoke", "--only", ",".join(sorted(still)), env=own, timeout=600)
        (folder,) = results.iterdir()
        rows = {row.transport: row for row in runs_csv.load(folder / "runs.csv")}
        assert rows.keys() == still
        assert not (folder / "unloaded").exists()
        for name in still - (PLAIN | BY_PARTS):
            assert rows[name].ok or (name in ONCE and TOO_LATE in rows[name].error), (name, rows[name].error)
        still = {name for name, row in rows.items() if row.ok == (name in PLAIN | BY_PARTS) or TOO_LATE in row.error}
        for name in rows.keys() - still:
            details = rows[name].details
            assert (details["found_rows"] == details["expected_rows"]) == rows[name].ok, (name, details)
            assert rows[name].experiment == "change" or details["killed"] == 1
        if not still:
            return
    pytest.fail(f"expected a worker that was killed in time and a change that was seen in {TRIES} tries of {still}")
