"""Does starting the next worker while a result is verified move figures? Passes with and without it alternate.

    .venv/bin/python -m benchmarks.prefork [passes of each] [rows]

Prints the medians of both and their ratio by transport, and how long a run takes from start to start. The ratio over
all transports has its 95 % interval: Student's, on the logarithms of the ratios of neighbouring passes. Order: on, off,
off, on.
"""

import sys
import time
from collections import defaultdict
from dataclasses import replace
from statistics import geometric_mean, median

from harness import settings
from harness.report.conclusions import Ratio, ratio
from harness.report.intervals import UNKNOWN, median_interval, spread_of
from harness.run import plan as plans
from harness.run import runner
from harness.run.execution import Ahead
from harness.run.rigs.rig import RunRequest
from harness.run.suite_run import open_run
from harness.suites import suite_files

TRANSPORTS = (
    "postgres.asyncpg.call_select_1,postgres.psycopg.write_polars_tuned,postgres.psycopg.read_polars_tuned,"
    "postgres.psycopg.read_pandas_copy_text,postgres.psycopg.write_pandas_copy_binary,"
    "postgres.duckdb.read_polars_scan_small_tasks,postgres.asyncpg.write_insert_select_sorted,"
    "clickhouse.httpx.read_format_null,clickhouse.http_client.read_polars_tuned,"
    "clickhouse.http_client.write_pandas_tuned,clickhouse.httpx.write_polars_parquet,"
    "clickhouse.clickhouse_connect.read_pandas_query_df,machine.memory.copy_bytes"
)


def main(each: int = 8, rows: int = 100_000) -> None:
    """Run the passes and print the results."""
    chosen = settings.load()
    suite = suite_files.load(chosen.suites_dir, "matrix")
    plan = plans.of_size(suite, "default", TRANSPORTS, chosen.seed, "matrix", rows, 2 * each)
    took: dict[bool, dict[str, list[float]]] = {True: defaultdict(list), False: defaultdict(list)}
    walls: dict[bool, list[float]] = {True: [], False: []}
    with open_run(RunRequest(settings=chosen, plan=plan, rig=suite.rig, lab=chosen.name, say=print)) as opened:
        for number in range(1, plan.passes + 1):
            on = number % 4 in (1, 0)
            runs = [run for run in opened.todo if run.pass_number == number]
            session = replace(opened, ahead=Ahead(on))
            started = time.monotonic()
            runner.perform(session, runs, lambda row, on=on: took[on][row.transport].append(row.took))
            walls[on].append((time.monotonic() - started) / len(runs))
    pairs, spread = [], spread_of([*took[True].values(), *took[False].values()])
    for transport, seconds in sorted(took[True].items()):
        others = took[False][transport]
        found = ratio(seconds, others, spread)
        pairs += [one / other for one, other in zip(seconds, others, strict=True)]
        print(f"{transport}: on {median(seconds):.4f} s, off {median(others):.4f} s, {_said(found)}")
    low, high = median_interval(pairs, UNKNOWN) or (0.0, 0.0)
    print(f"all: on / off {geometric_mean(pairs):.3f} ({low:.3f} to {high:.3f}), the median {median(pairs):.3f}")
    print(f"a run, start to start: on {median(walls[True]):.2f} s, off {median(walls[False]):.2f} s")


def _said(found: Ratio) -> str:
    low, high = found.interval or (0.0, 0.0)
    return f"on / off {found.value:.3f} ({low:.3f} to {high:.3f}, {found.n} runs)"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
