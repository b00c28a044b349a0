"""Postgres into Parquet by Ray Data: as its API has it, and by COPY of a range of pages at a time."""

from harness.registry import transport
from harness.transports.postgres.partitions import one_moment, part_queries, read_part
from harness.transports.postgres.ray.client import opening
from harness.transports.postgres.sql import identifier, identifiers
from harness.transports.postgres.tables import key_columns
from harness.transports.ray import drive, on_workers


@transport(
    "unload",
    path="Ray Data read_sql, fetchall",
    payload="text rows",
    requires=["ray.data", "psycopg", "pyarrow.parquet"],
    needs=["ray"],
)
def unload_read_sql(connection, table, destination):
    """ray.data.read_sql without shards: one task fetches all rows as Python objects and makes one block of them.

    A worker holds the whole table; the others have nothing to do.
    """
    import ray

    opened = opening(connection.workers_uri)
    query = f"SELECT * FROM {identifier(table)}"
    drive(lambda: ray.data.read_sql(query, opened).write_parquet(destination))


@transport(
    "unload",
    path="Ray Data read_sql with shard_keys, fetchall",
    payload="text rows",
    requires=["ray.data", "psycopg", "pyarrow.parquet"],
    needs=["ray"],
)
def unload_read_sql_shards(connection, table, destination):
    """ray.data.read_sql with shards: each task fetches the rows whose key has its hash, by a scan of the whole table.

    By default there are 200. No common moment: a row that is updated or inserted meanwhile may be in twice, or not at
    all. Of a table without a primary key whole rows are hashed.
    """
    import ray

    opened = opening(connection.workers_uri)
    with opening(connection.uri)() as database:
        keys = key_columns(database, table)
    query = f"SELECT * FROM {identifier(table)}"
    key = f"concat({identifiers(keys)})" if keys else "T::text"  # T is what Ray calls the query
    hashed = "0::bigint + hashtext"  # Ray takes abs() of it, which the least integer has not
    drive(lambda: ray.data.read_sql(query, opened, shard_keys=[key], shard_hash_fn=hashed).write_parquet(destination))


@transport(
    "unload",
    path="Ray Data map_batches, ADBC, COPY TO STDOUT (FORMAT binary) of ranges of pages",
    payload="PostgreSQL binary tuples",
    requires=["ray.data", "psycopg", "adbc_driver_postgresql.dbapi", "pyarrow.parquet"],
    needs=["ray"],
)
def unload_by_parts(connection, table, destination):
    """Each task reads a range of the table's pages and writes it as a file, a record batch at a time.

    No common moment: rows that are written meanwhile may be in twice, or not at all.
    """
    queries = part_queries(connection.uri, table)
    there = connection.workers_uri
    parts = [(there, query, None, destination, str(number)) for number, query in enumerate(queries)]
    on_workers(read_part, parts)


@transport(
    "unload",
    path="Ray Data map_batches, ADBC, COPY TO STDOUT (FORMAT binary) of ranges of pages in one snapshot",
    payload="PostgreSQL binary tuples",
    requires=["ray.data", "psycopg", "adbc_driver_postgresql.dbapi", "pyarrow.parquet"],
    needs=["ray"],
)
def unload_one_moment(connection, table, destination):
    """The same, and all tasks read as of one moment: a snapshot that this process holds until they are done."""
    there = connection.workers_uri
    with one_moment(connection.uri) as snapshot:
        queries = part_queries(connection.uri, table)
        parts = [(there, query, snapshot, destination, str(number)) for number, query in enumerate(queries)]
        on_workers(read_part, parts)
