"""The rig of databases: several sizes and datasets in one run, and a suite that is one file."""

import csv
from pathlib import Path

import pytest

from harness.datasets import store
from harness.lab.reference import References
from harness.lab.tables import MOST, Tables
from harness.results import runs_csv
from harness.run.rigs import databases
from harness.systems import SYSTEMS
from tests.run.rigs import orders

SIXTH = """
name = "sixth"
title = "Where the curves cross"
rig = "databases"

[defaults]
select = "postgres.psycopg.write_polars_copy_text, clickhouse.clickhouse_connect.read_polars_query_arrow"
dataset = "analytics_metrics"
passes = 1
time_limit_seconds = 60

[sizes.smoke]
experiments = [{ name = "sizes", parameters = { rows = [10, 300, 2_000] } }]

[[pictures]]
name = "rows"
title = "Time over rows"
form = "lines"
y = "seconds"
x = "rows"
log = true
"""


@pytest.mark.long
def test_a_sixth_suite_is_one_file_and_runs_several_sizes_at_once(lab, environment, tmp_path):
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "sixth.toml").write_text(SIXTH)
    done = lab(
        "run",
        "sixth",
        "--size",
        "smoke",
        env=environment | {"LAB_SUITES_DIR": str(tmp_path / "suites"), "LAB_PICTURES": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).iterdir()
    rows = runs_csv.load(folder / "runs.csv")
    assert sorted((row.system, row.rows, str(row.status)) for row in rows) == [
        (system, size, "ok") for system in ("clickhouse", "postgres") for size in (10, 300, 2_000)
    ]
    with (folder / "summary.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 6
    assert (folder / "pictures" / "rows.png").stat().st_size > 1_000


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_tables_of_two_sizes_stand_beside_one_another_and_are_dropped_by_the_next_run(
    system, embedded_lab, dataset_folder
):
    spec, references = store.specification("analytics_metrics"), References(embedded_lab.endpoints)
    warmup = store.ensure(dataset_folder, spec.name, 1_000, 1)
    small, large = (
        Tables(references, spec, store.ensure(dataset_folder, spec.name, rows, 1), warmup, place)
        for place, rows in ((1, 500), (MOST, 3_000))
    )
    (of_small, _), (of_large, _) = small.for_read(system), large.for_read(system)
    assert small.differences_in_table(system, of_small) == []
    assert large.differences_in_table(system, of_large) == []
    assert small.differences_in_table(system, of_large) != []
    Tables(references, spec, warmup, warmup).claim(system)
    for table in (of_small, of_large):
        with pytest.raises(Exception, match=table):
            references.ask(system, SYSTEMS[system].client.fetch, table)
    references.close(lambda system: None)


@pytest.mark.long
def test_nothing_is_compiled_or_started_for_transports_that_cannot_run_here(without_programs):
    needs_s3 = "postgres.pg_parquet.write_polars_parquet_s3"
    cases = [
        orders.case(needs_s3, "analytics_metrics"),
        orders.case(needs_s3, "analytics_metrics", rows=20, rtt_ms=10, mbit_per_s=0),
        orders.case("postgres.psycopg.write_polars_copy_text", "analytics_metrics"),
    ]
    said = []
    with databases.opened(orders.order(without_programs, *cases, say=said.append)) as rig:
        *lacking, nothing = [rig.unavailable(case) for case in cases]
        assert nothing is None
        assert all("does not offer pg_parquet" in reason for reason in lacking)
        assert rig.networks.links == "no experiment asked for a link"
    assert said == []


def test_more_datasets_than_there_are_names_for_are_refused(lab, environment, tmp_path):
    (tmp_path / "suites").mkdir()
    text = SIXTH.replace("[10, 300, 2_000]", str(list(range(1, MOST + 2))))
    (tmp_path / "suites" / "sixth.toml").write_text(text)
    done = lab("run", "sixth", "--size", "smoke", env=environment | {"LAB_SUITES_DIR": str(tmp_path / "suites")})
    assert done.returncode == 2
    assert f"expected at most {MOST} sizes of analytics_metrics in a run on databases, found {MOST + 1}" in done.stderr
