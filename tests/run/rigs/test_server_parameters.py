"""Calls in one process and clients side by side, on real engines; the slices of rows that clients write."""

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import registry
from harness.model import Case, LabError
from harness.results import runs_csv
from harness.run.rigs import server_parameters

WAYS = ("postgres.psycopg.{}_polars_tuned", "clickhouse.http_client.{}_polars_tuned")
COMMITS, BLOCKS = 'synchronous_commit = ["off"], indexes = [2]', "clickhouse.httpx.write_polars_csv_with_names"
ROWS, LEVELS = "rows = [2_001]", 'wal_level = ["minimal", "replica"]'
SUITE = f"""
name = "tenth"
title = "Calls and clients"
rig = "databases"

[defaults]
select = "{", ".join(way.format(name) for way in WAYS for name in ("write", "read"))}"
dataset = "analytics_metrics"
passes = 1
time_limit_seconds = 60

[sizes.smoke]
experiments = [
    {{ name = "commits", select = "{WAYS[0].format("write")}", parameters = {{ {ROWS}, {COMMITS} }} }},
    {{ name = "blocks", select = "{BLOCKS}", parameters = {{ {ROWS}, insert_block_rows = [500, 5_000] }} }},
    {{ name = "engines", select = "{BLOCKS}", parameters = {{ {ROWS}, profile = ["heap", "log", "memory"] }} }},
    {{ name = "log", select = "{WAYS[0].format("write")}", parameters = {{ {ROWS}, {LEVELS} }} }},
    {{ name = "existing", select = "{WAYS[0].format("write")}", parameters = {{ {ROWS}, rows_before = [2_000] }} }},
    {{ name = "clients", parameters = {{ {ROWS}, clients = [2] }} }},
    {{ name = "processes", parameters = {{ {ROWS}, call = [3] }} }},
]
"""


@pytest.mark.long
def test_clients_write_one_table_and_read_it_whole_and_the_third_call_writes_an_empty_one(lab, environment, tmp_path):
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "tenth.toml").write_text(SUITE)
    env = environment | {"LAB_SUITES_DIR": str(tmp_path / "suites"), "LAB_PICTURES": "0"}
    done = lab("run", "tenth", "--size", "smoke", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).iterdir()
    rows = runs_csv.load(folder / "runs.csv")
    assert [row.error for row in rows if not row.ok] == []
    wanted = {way.format(name) for way in WAYS for name in ("write", "read")}
    assert {row.transport for row in rows} == wanted | {BLOCKS}
    for row in rows:
        several = row.experiment == "clients"
        assert row.rows == 2_001 * (2 if several and row.operation == "read" else 1)
        if several:
            assert row.details["fastest_client_seconds"] <= row.details["slowest_client_seconds"]
            # A column has nine digits, a detail has all.
            assert float(f"{row.details['slowest_client_seconds']:.9g}") <= row.seconds
    # Of one run it may be less than the 10 ms in which a system counts it.
    assert sum(row.details["server_cpu_seconds"] for row in rows if row.experiment == "clients") > 0
    parts = {row.parameters["insert_block_rows"]: row.details["parts"] for row in rows if row.experiment == "blocks"}
    assert 0 < parts["5000"] < parts["500"]
    left = {row.parameters["profile"]: row.details for row in rows if row.experiment == "engines"}
    assert [left[name]["parts"] > 0 for name in ("heap", "log", "memory")] == [True, False, False]
    assert min(one["table_bytes"] for one in left.values()) > 10_000
    assert min(row.details["wal_bytes"] for row in rows if row.experiment == "log") > 100_000
    assert next(row for row in rows if row.experiment == "commits").details["table_bytes"] > 100_000
    assert not list(folder.glob("result*"))
    assert not list((folder / "logs").iterdir())


@pytest.mark.long
@given(rows=st.integers(1, 60), number=st.integers(1, 8))
def test_slices_are_all_rows_in_their_order_nearly_as_many_in_each(rows: int, number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.parquet"
        whole = pl.DataFrame({"i": range(rows)})
        whole.write_parquet(path)
        parts = [pl.read_parquet(part) for part in server_parameters.slices(str(path), number, Path(folder))]
    assert len(parts) == number
    assert pl.concat(parts).equals(whole)
    assert max(part.height for part in parts) - min(part.height for part in parts) <= 1


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("call", 0, False),
        ("call", "first", False),
        ("call", "warmup", True),
        ("clients", "warmup", False),
        ("clients", 8, True),
        ("clients", 1.5, False),
    ],
)
def test_a_value_that_is_none_is_refused_before_anything_runs(name: str, value: object, known: bool) -> None:
    case = Case(registry.one(WAYS[0].format("write")), "an experiment", "analytics_metrics", {"rows": 1, name: value})
    if known:
        server_parameters.require_values(case)
        return
    with pytest.raises(LabError, match=f"an experiment: expected {name} to be a number of at least 1, found "):
        server_parameters.require_values(case)
