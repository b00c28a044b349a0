"""Parquet into Postgres with Ray Data: through its API, and by COPY of one row group at a time."""

from harness.registry import transport
from harness.transports.parts import row_groups
from harness.transports.postgres.binary_copy import copy_batches
from harness.transports.postgres.partitions import copy_part_once, ledger_of, staging_of
from harness.transports.postgres.ray.client import opening
from harness.transports.postgres.sql import identifier, identifiers
from harness.transports.ray import drive, on_workers


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
    there = connection.workers_uri
    with ledger_of(connection.uri, table) as ledger:
        parts = [(there, table, ledger, source, group) for group in row_groups(source)]
        on_workers(copy_part_once, parts)


@transport(
    "Ray Data map_batches, COPY FROM STDIN (FORMAT binary), a ledger and a table that takes the place",
    "PostgreSQL binary tuples",
    needs=["ray"],
)
def load_copy_staged(connection, source, table):
    """All rows or none: insert each row group exactly once into a table that replaces the empty one at the end."""
    there = connection.workers_uri
    with staging_of(connection.uri, table) as staging, ledger_of(connection.uri, table) as ledger:
        parts = [(there, staging, ledger, source, group) for group in row_groups(source)]
        on_workers(copy_part_once, parts)
