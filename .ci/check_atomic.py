"""End the server's process of each write over pg_parquet at its last row: the client must notice, and no row may stay.

Usage, in the harness container: python - [GLOB] < .ci/check_atomic.py. tests/transports/test_atomic.py breaks all other
writes, for which the embedded servers are enough.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from harness import registry, settings
from harness.datasets import store
from harness.lab import labs
from harness.lab.object_stores import object_store
from harness.lab.reference import References
from harness.lab.tables import MOST, Tables
from harness.model import LabError
from harness.run.rigs.databases import addresses
from harness.worker.contracts import databases

WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid <> pg_backend_pid()"
chosen, entries = settings.load(), registry.select("".join(sys.argv[1:]) or "postgres.pg_parquet.write_*")


def left_by(entry, tables, place) -> tuple[int, str]:
    """Return the rows that a broken write leaves, and its error. A row of ours that is not committed holds its last."""
    (table, _), (loaded, _) = tables.for_write("postgres"), tables.for_read("postgres")
    job = databases.DatabaseJob(
        transport=entry.id,
        dataset=tables.dataset.path,
        logical_types=tables.logical_types,
        addresses=place,
        table=table,
    )
    calls = databases.calls(entry, job)
    with psycopg.connect(place.uri, autocommit=True) as server, ThreadPoolExecutor(1) as pool:
        with psycopg.connect(place.uri) as ours, registry.connect_of(entry)(*calls.connect) as connection:
            ours.execute(f"INSERT INTO {table} SELECT * FROM {loaded} ORDER BY ctid DESC LIMIT 1")
            written = pool.submit(entry.function, connection, *calls.measured)
            while not (waiting := server.execute(WAITS).fetchall()):
                if written.done():
                    raise LabError(f"{entry.id}: it ended before it was broken: {written.exception()!r}")
                time.sleep(0.01)
            server.execute("SELECT pg_terminate_backend(%s, 10000)", waiting[0])
            error = written.exception()
            ours.rollback()
        return server.execute(f"SELECT count(*) FROM {table}").fetchone()[0], type(error).__name__


users = [entry.id for entry in entries if "s3" in entry.needs]
with (
    labs.OPENED[chosen.name](chosen) as lab,
    object_store(chosen, users, "atomic", print) as (objects, bucket),
    TemporaryDirectory() as folder,
):
    dataset = store.ensure(Path(folder), "analytics_metrics", 10_000, 1)
    tables = Tables(References(lab.endpoints), store.specification("analytics_metrics"), dataset, dataset, MOST)
    left = {entry.id: left_by(entry, tables, addresses(entry, lab, objects, bucket)) for entry in entries}
    tables.drop("postgres")
for name, (rows, error) in left.items():
    print(f"compose check: {name}: broken at its last row, {rows} rows stay ({error})")
if bad := [name for name, (rows, error) in left.items() if rows or error == "NoneType"]:
    sys.exit(f"expected no row and an error, found {', '.join(bad)}")
