"""A made-up run of a suite about engines and streams, with the figures of a machine of two cores."""

from harness.model import Status
from harness.suites.suite import Picture
from tests.report.cases import row

LOADS = {"system": ["postgres"], "operation": ["load"]}
PICTURES = (
    Picture(
        "memory-over-rows",
        "Postgres: loading, memory over rows",
        "lines",
        x="rows",
        y="peak_rss_bytes + detail:workers_peak_rss_bytes",
        where={"experiment": ["stream"], **LOADS},
        log=True,
    ),
    Picture(
        "kill",
        "The kill table: rows after a worker was killed",
        "grid",
        x="parameter:kill",
        y="detail:found_rows",
        where={"experiment": ["kill"], "parameter:kill": ["before", "after"]},
    ),
    Picture(
        "change",
        "Rows read while somebody writes",
        "grid",
        x="parameter:change",
        y="detail:found_rows",
        where={"experiment": ["change"]},
    ),
    Picture(
        "memory",
        "With less memory than the data need",
        "grid",
        x="parameter:memory_mb",
        y="peak_rss_bytes",
        where={"experiment": ["memory"]},
    ),
)
STREAMS = ("postgres.psycopg.load_copy", "postgres.adbc.load_ingest")
BOUND = "postgres.asyncpg.write_insert_select"
PARTS = "postgres.dask.load_copy_parts"


def measured(transport, seconds, rows=1_000_000, experiment="engines", parameters="", operation="load", **more):
    system, client, _ = transport.split(".")
    known = {
        "system": system,
        "client": client,
        "operation": operation,
        "experiment": experiment,
        "parameters": f"rows={rows}" + (f"; {parameters}" if parameters else ""),
        "rows": rows,
        "origin": "beyond",
        "peak_rss_bytes": 180_000_000,
        "rows_per_s": rows / seconds,
        "dataset": "analytics_metrics",
        "lab": "embedded",
    }
    return row(transport, seconds=seconds, **(known | more))


def of_engine(transport, workers, seconds, rows=1_000_000, experiment="workers", **more):
    """One ok run with an engine's workers, each of which takes 610 MB."""
    details = {"workers_peak_rss_bytes": 610_000_000 * workers, "worker_processes": workers}
    known = {"engine": transport.split(".")[1], "details": details}
    return measured(transport, seconds, rows, experiment, f"workers={workers}", **(known | more))


def bound(seconds, experiment, parameters="", rows=1_000_000, operation="write", transport=BOUND):
    return measured(transport, seconds, rows, experiment, parameters, operation, origin="limit")


def counted(transport, found, status=Status.OK, experiment="kill", parameters="kill=after", **more):
    """One run of 60,000 rows that left `found` rows."""
    system, client, function = transport.split(".")
    engine = client if client in ("dask", "spark") else ""
    details = {"expected_rows": 60_000, "found_rows": found} | ({"killed": 1} if "kill=" in parameters else {})
    known = {
        "system": system,
        "client": client,
        "engine": engine,
        "operation": function.partition("_")[0],
        "experiment": experiment,
        "parameters": f"rows=60000; workers=2; {parameters}",
        "rows": 60_000,
        "seconds": 4.0 if status is Status.OK else None,
        "details": details,
    }
    return row(transport, status, **(known | more))


def endings():
    lost = Status.ERROR, Status.MISMATCH
    for when in ("before", "after"):
        where = f"kill={when}"
        yield counted("postgres.dask.load_copy_parts_once", 60_000, parameters=where)
        yield counted(
            "postgres.spark.load_jdbc", 0, lost[0], parameters=where, error="job aborted: stage failed 4 times"
        )
        yield counted("postgres.psycopg.load_copy", 0, lost[0], parameters=where, error="the worker was killed")
    yield counted("postgres.dask.load_copy_parts", 60_000, parameters="kill=before")
    yield counted("postgres.dask.load_copy_parts", 80_000, lost[1], error="20,000 rows too many")
    yield counted("clickhouse.dask.unload_parts", 55_000, lost[1], error="5,000 rows missing")
    yield counted("clickhouse.dask.unload_parts", 60_000, parameters="kill=before")
    change = {"experiment": "change", "parameters": "change=during"}
    yield counted("postgres.dask.unload_one_moment", 60_000, **change)
    yield counted("postgres.dask.unload_by_parts", 60_043, lost[1], **change)
    for megabytes in (256, 512):
        limit = {"experiment": "memory", "parameters": f"rows=1000000; memory_mb={megabytes}"}
        yield row("postgres.psycopg.write_polars_copy", Status.KILLED, **limit)
        yield row("postgres.psycopg.load_copy", seconds=8.4, operation="load", peak_rss_bytes=97_000_000, **limit)


ROWS = list(endings())
