"""Daft on Ray: https://docs.daft.ai/en/stable/distributed/ray/"""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

from harness.registry import transport
from harness.transports.clickhouse.daft.client import write_by_daft
from harness.transports.clickhouse.partitions import (
    insert_part_once,
    one_moment,
    part_queries,
    read_part,
    remembering,
    staging_of,
)
from harness.transports.daft import daft_on_ray, done_by_parts, in_row_groups
from harness.transports.parts import row_groups

ENDPOINT = "clickhouse_http"


@contextmanager
def connect(uri, workers):
    """Yield the database's addresses, as seen by this process and by Daft's workers on Ray."""
    with daft_on_ray(workers, ["pyarrow", "clickhouse-connect"]):
        yield SimpleNamespace(uri=uri, of_workers=workers.uri)


@transport("HTTP INSERT FORMAT Native", "binary columns", requires=["clickhouse_connect", "pandas"], needs=["ray"])
def load_write_clickhouse_ray(connection, source, table):
    """Let Daft on Ray write a Parquet file with write_clickhouse, one micropartition at a time.

    Each row group is a task, because a whole file would be one task for one worker. If a worker dies after an insert,
    Daft repeats its task and duplicates the rows.
    """
    write_by_daft(in_row_groups(source), connection.of_workers, table)


@transport("HTTP INSERT FORMAT Arrow, tokens", "Arrow", needs=["ray"])
def load_insert_once_ray(connection, source, table):
    """Let Daft's workers insert each row group once: as one block, with a token that the table remembers.

    Daft repeats the tasks of a worker that died. The table drops a block whose token it remembers.
    """
    with remembering(connection.uri, table):
        done_by_parts(partial(insert_part_once, connection.of_workers, table, source), row_groups(source))


@transport("HTTP INSERT FORMAT Arrow, tokens, staging table", "Arrow", needs=["ray"])
def load_insert_staged_ray(connection, source, table):
    """Have Daft's workers insert each row group once into a staging table, which is exchanged with the table.

    All rows become visible at once, or none if anything fails.
    """
    with staging_of(connection.uri, table) as staging:
        done_by_parts(partial(insert_part_once, connection.of_workers, staging, source), row_groups(source))


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", needs=["ray"])
def unload_by_parts_ray(connection, table, destination):
    """Have Daft's workers each read a partition of the table and write it as Parquet.

    Each worker reads the table at a different time.
    """
    _unloaded(connection, table, destination)


@transport("HTTP SELECT FORMAT ArrowStream, clone", "Arrow", needs=["ray"])
def unload_one_moment_ray(connection, table, destination):
    """Have Daft's workers each read a partition of one snapshot of the table and write it as Parquet.

    They read a clone of the table, whose parts are links to the same files.
    """
    with one_moment(connection.uri, table) as clone:
        _unloaded(connection, clone, destination)


def _unloaded(connection, table, destination):
    uri, queries = connection.of_workers, part_queries(connection.uri, table)

    def unloaded(part):
        return read_part(uri, queries[part], destination, str(part))

    done_by_parts(unloaded, range(len(queries)))
