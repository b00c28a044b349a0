"""Postgres into Parquet with Ray Data: through its API, and by COPY of one range of pages at a time."""

from harness.registry import transport
from harness.transports.postgres.partitions import one_moment, part_queries, read_part
from harness.transports.postgres.ray.client import opening
from harness.transports.postgres.sql import identifier, identifiers
from harness.transports.postgres.tables import key_columns
from harness.transports.ray import drive, on_workers


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
    queries = part_queries(connection.uri, table)
    there = connection.workers_uri
    parts = [(there, query, None, destination, str(number)) for number, query in enumerate(queries)]
    on_workers(read_part, parts)


@transport(
    "Ray Data map_batches, ADBC, COPY TO STDOUT (FORMAT binary) of ranges of pages in one snapshot",
    "PostgreSQL binary tuples",
    needs=["ray"],
)
def unload_one_moment(connection, table, destination):
    """Like unload_by_parts, but all tasks read one snapshot, which this process holds until they are done."""
    there = connection.workers_uri
    with one_moment(connection.uri) as snapshot:
        queries = part_queries(connection.uri, table)
        parts = [(there, query, snapshot, destination, str(number)) for number, query in enumerate(queries)]
        on_workers(read_part, parts)
