"""Dask into and out of ClickHouse, by clickhouse-connect on its workers: https://docs.dask.org/en/stable/futures.html

Dask has no reader or writer of ClickHouse of its own. Files have one path and the database two addresses: for this
process and for the workers.
"""

from contextlib import contextmanager
from functools import partial

from harness.registry import transport
from harness.transports.clickhouse.partitions import (
    insert_part,
    insert_part_once,
    one_moment,
    part_queries,
    read_part,
    remembering,
    staging_of,
)
from harness.transports.dask import client_of, done
from harness.transports.parts import row_groups

ENDPOINT = "clickhouse_http"


@contextmanager
def connect(uri, workers):
    """Yield a client of the scheduler, and the database's address as this process sees it and as the workers do."""
    with client_of(workers, ["clickhouse_connect", "pyarrow.parquet"]) as client:
        yield client, uri, workers.uri


@transport(
    "load",
    path="client.map, insert_arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "distributed", "pyarrow.parquet"],
    needs=["dask"],
)
def load_insert(connection, source, table):
    """Insert each row group of the file on a worker, as one block of Arrow.

    Dask repeats what a worker had done whose answer died with it: that row group is there twice. What is in stays in
    when another fails.
    """
    client, _, there = connection
    done(client, partial(insert_part, there, table, source), row_groups(source))


@transport(
    "load",
    path="client.map, insert_arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "distributed", "pyarrow.parquet"],
    needs=["dask"],
)
def load_insert_once(connection, source, table):
    """Insert each row group under a token that the table remembers: exactly once, whichever worker dies when.

    What is in stays in when another row group fails, and the table is read meanwhile as far as it is loaded.
    """
    client, here, there = connection
    with remembering(here, table):
        done(client, partial(insert_part_once, there, table, source), row_groups(source))


@transport(
    "load",
    path="client.map, insert_arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "distributed", "pyarrow.parquet"],
    needs=["dask"],
)
def load_insert_staged(connection, source, table):
    """Insert each row group exactly once into a staging table, exchanged with the table at the end: all or nothing.

    Nobody sees a row before, and none is in when a row group fails.
    """
    client, here, there = connection
    with staging_of(here, table) as staging:
        done(client, partial(insert_part_once, there, staging, source), row_groups(source))


@transport(
    "unload",
    path="client.map, query_arrow_stream",
    payload="Arrow",
    requires=["clickhouse_connect", "distributed", "pyarrow.parquet"],
    needs=["dask"],
)
def unload_by_parts(connection, table, destination):
    """Read the partitions (PARTITION BY) of the table on the workers, each as of its own moment, into a file each.

    Who writes meanwhile is seen by some of them and not by others. A table without PARTITION BY is one partition.
    """
    client, here, there = connection
    _unload(client, there, part_queries(here, table), destination)


@transport(
    "unload",
    path="client.map, query_arrow_stream",
    payload="Arrow",
    requires=["clickhouse_connect", "distributed", "pyarrow.parquet"],
    needs=["dask"],
)
def unload_one_moment(connection, table, destination):
    """Read the partitions of a clone of the table on the workers, all as of the moment it was made, into a file each.

    The clone costs no time and no space. A table without PARTITION BY is one partition.
    """
    client, here, there = connection
    with one_moment(here, table) as clone:
        _unload(client, there, part_queries(here, clone), destination)


def _unload(client, uri, queries, destination):
    def read(number, query):
        return read_part(uri, query, destination, f"part_{number:05}")

    done(client, read, range(len(queries)), queries)
