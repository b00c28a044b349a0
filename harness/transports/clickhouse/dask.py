"""Dask into and out of ClickHouse, with clickhouse-connect on its workers: https://docs.dask.org/en/stable/futures.html

Dask has no ClickHouse reader or writer. Files have one path, but the database has two addresses: one for this process
and one for the workers.
"""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

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
    """Yield a client of the scheduler, and the database's addresses, as seen by this process and by workers."""
    with client_of(workers, ["clickhouse_connect", "pyarrow.parquet"]) as client:
        yield SimpleNamespace(client=client, uri=uri, workers_uri=workers.uri)


@transport("client.map, insert_arrow", "Arrow", needs=["dask"])
def load_insert(connection, source, table):
    """Insert each row group of the file on a worker, as one block of Arrow.

    If a worker dies before its result arrives, Dask repeats its work and duplicates the row group. Inserted row groups
    stay if another one fails.
    """
    done(connection.client, partial(insert_part, connection.workers_uri, table, source), row_groups(source))


@transport("client.map, insert_arrow", "Arrow", needs=["dask"])
def load_insert_once(connection, source, table):
    """Insert each row group under a token that the table remembers: exactly once, even if workers die.

    Inserted row groups stay if another one fails, and other connections can read them during the load.
    """
    with remembering(connection.uri, table):
        done(connection.client, partial(insert_part_once, connection.workers_uri, table, source), row_groups(source))


@transport("client.map, insert_arrow", "Arrow", needs=["dask"])
def load_insert_staged(connection, source, table):
    """Insert each row group once into a staging table, exchanged with the table at the end: all or nothing.

    No row is visible before the exchange, and none is inserted if a row group fails.
    """
    with staging_of(connection.uri, table) as staging:
        done(connection.client, partial(insert_part_once, connection.workers_uri, staging, source), row_groups(source))


@transport("client.map, query_arrow_stream", "Arrow", needs=["dask"])
def unload_by_parts(connection, table, destination):
    """Read the table's partitions (PARTITION BY) on the workers, at different times, into one file each.

    Some workers see concurrent writes and others do not. A table without PARTITION BY is one partition.
    """
    _unload(connection, table, destination)


@transport("client.map, query_arrow_stream", "Arrow", needs=["dask"])
def unload_one_moment(connection, table, destination):
    """Read the partitions of a clone of the table on the workers, as of the clone's creation, into one file each.

    The clone takes no time and no space. A table without PARTITION BY is one partition.
    """
    with one_moment(connection.uri, table) as clone:
        _unload(connection, clone, destination)


def _unload(connection, table, destination):
    uri, queries = connection.workers_uri, part_queries(connection.uri, table)

    def read(number, query):
        return read_part(uri, query, destination, f"part_{number:05}")

    done(connection.client, read, range(len(queries)), queries)
