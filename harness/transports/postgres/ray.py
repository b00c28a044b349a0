"""Ray Data with psycopg, ADBC and pgpq on its workers: https://docs.ray.io/en/latest/data/api/input_output.html"""

from contextlib import contextmanager
from types import SimpleNamespace

from harness.registry import transport
from harness.transports.parts import row_groups
from harness.transports.postgres.binary_copy import copy_batches
from harness.transports.postgres.partitions import (
    copy_part_once,
    ledger_of,
    one_moment,
    part_queries,
    read_part,
    staging_of,
)
from harness.transports.postgres.sql import identifier, identifiers
from harness.transports.postgres.tables import key_columns
from harness.transports.ray import drive, on_workers, ray_of

PACKAGES = ["pyarrow", "psycopg", "pgpq", "adbc-driver-postgresql"]


@contextmanager
def connect(uri, workers):
    """Yield the database's addresses, as seen by this process and by workers."""
    with ray_of(workers, PACKAGES):
        yield SimpleNamespace(uri=uri, workers_uri=workers.uri)


def opening(uri):
    """Return a function that opens a connection, which Ray Data calls on its workers."""

    def open_connection():
        import psycopg

        return psycopg.connect(uri)

    return open_connection


@transport("Ray Data write_sql, executemany", "binary and text parameters", needs=["ray"])
def load_write_sql(connection, source, table):
    """Append with Dataset.write_sql: an INSERT for each row, 128 in one executemany, a transaction per task.

    The load is neither all or nothing nor exactly once: Ray repeats a task whose worker died, even after its commit.
    """
    import ray
    from pyarrow import parquet

    opened = opening(connection.workers_uri)
    names = parquet.read_schema(source).names
    values = ", ".join(["%s"] * len(names))
    statement = f"INSERT INTO {identifier(table)} ({identifiers(names)}) VALUES ({values})"
    drive(lambda: ray.data.read_parquet(source).write_sql(statement, opened))


@transport(
    "Ray Data Datasink, COPY FROM STDIN (FORMAT binary)",
    "PostgreSQL binary tuples",
    requires=["pyarrow.parquet"],
    needs=["ray"],
)
def load_copy_datasink(connection, source, table):
    """Append with a custom Datasink that sends each block by COPY and commits it.

    The load is neither all or nothing nor exactly once: Ray repeats all blocks of a task whose worker died, even
    committed ones.
    """
    import ray
    from ray.data.block import BlockAccessor

    opened = opening(connection.workers_uri)

    class Copy(ray.data.Datasink):
        def write(self, blocks, ctx):
            for block in blocks:
                with opened() as database:
                    copy_batches(database, table, BlockAccessor.for_block(block).to_arrow().to_batches())

    drive(lambda: ray.data.read_parquet(source).write_datasink(Copy()))


@transport(
    "Ray Data map_batches, COPY FROM STDIN (FORMAT binary) and a ledger", "PostgreSQL binary tuples", needs=["ray"]
)
def load_copy_once(connection, source, table):
    """Insert each row group exactly once: a task copies it and enters it in a ledger, in one transaction.

    A repeated task finds its entry and does nothing. Other connections see the table fill.
    """
    with ledger_of(connection.uri, table) as ledger:
        there = connection.workers_uri, table, ledger, source
        on_workers(copy_part_once, [(*there, group) for group in row_groups(source)])


@transport(
    "Ray Data map_batches, COPY FROM STDIN (FORMAT binary), a ledger and a table that takes the place",
    "PostgreSQL binary tuples",
    needs=["ray"],
)
def load_copy_staged(connection, source, table):
    """All rows or none: insert each row group exactly once into a table that replaces the empty one at the end."""
    with staging_of(connection.uri, table) as staging, ledger_of(connection.uri, table) as ledger:
        there = connection.workers_uri, staging, ledger, source
        on_workers(copy_part_once, [(*there, group) for group in row_groups(source)])


@transport("Ray Data read_sql, fetchall", "text rows", requires=["pyarrow.parquet"], needs=["ray"])
def unload_read_sql(connection, table, destination):
    """Read with ray.data.read_sql without shards: one task fetches all rows as Python objects into one block.

    One worker holds the whole table, and the others have nothing to do.
    """
    import ray

    opened = opening(connection.workers_uri)
    query = f"SELECT * FROM {identifier(table)}"
    drive(lambda: ray.data.read_sql(query, opened).write_parquet(destination))


@transport("Ray Data read_sql with shard_keys, fetchall", "text rows", requires=["pyarrow.parquet"], needs=["ray"])
def unload_read_sql_shards(connection, table, destination):
    """Read with ray.data.read_sql and shards: each task scans the whole table for rows whose key has its hash.

    By default there are 200 shards. There is no common snapshot: a row updated or inserted meanwhile may be read twice
    or not at all. For a table without a primary key, whole rows are hashed.
    """
    import ray

    opened = opening(connection.workers_uri)
    with opening(connection.uri)() as database:
        keys = key_columns(database, table)
    query = f"SELECT * FROM {identifier(table)}"
    key = f"concat({identifiers(keys)})" if keys else "T::text"  # Ray names the query T
    hashed = "0::bigint + hashtext"  # Ray takes its abs(), which overflows for the smallest integer
    drive(lambda: ray.data.read_sql(query, opened, shard_keys=[key], shard_hash_fn=hashed).write_parquet(destination))


@transport(
    "Ray Data map_batches, ADBC, COPY TO STDOUT (FORMAT binary) of ranges of pages",
    "PostgreSQL binary tuples",
    needs=["ray"],
)
def unload_by_parts(connection, table, destination):
    """Have each task read a range of the table's pages and stream it to a separate file.

    There is no common snapshot: rows written meanwhile may be read twice or not at all.
    """
    _unload(connection, table, None, destination)


@transport(
    "Ray Data map_batches, ADBC, COPY TO STDOUT (FORMAT binary) of ranges of pages in one snapshot",
    "PostgreSQL binary tuples",
    needs=["ray"],
)
def unload_one_moment(connection, table, destination):
    """Like unload_by_parts, but all tasks read one snapshot, which this process holds until they are done."""
    with one_moment(connection.uri) as snapshot:
        _unload(connection, table, snapshot, destination)


def _unload(connection, table, snapshot, destination):
    uri, queries = connection.workers_uri, enumerate(part_queries(connection.uri, table))
    on_workers(read_part, [(uri, query, snapshot, destination, str(number)) for number, query in queries])
