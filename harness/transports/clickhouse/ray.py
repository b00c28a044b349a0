"""Ray Data with clickhouse-connect on its workers: https://docs.ray.io/en/latest/data/api/input_output.html"""

from contextlib import contextmanager
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit, urlunsplit

from harness.registry import transport
from harness.transports.clickhouse.partitions import (
    insert_part_once,
    one_moment,
    part_queries,
    read_part,
    remembering,
    staging_of,
)
from harness.transports.clickhouse.server import sessionless
from harness.transports.clickhouse.sql import identifier, literal
from harness.transports.parts import row_groups
from harness.transports.ray import drive, on_workers, ray_of

ENDPOINT = "clickhouse_http"


@contextmanager
def connect(uri, workers):
    """Yield the database's addresses, as seen by this process and by workers."""
    with ray_of(workers, ["pyarrow", "clickhouse-connect"]):
        yield SimpleNamespace(uri=uri, workers_uri=workers.uri)


def dsn_of(uri):
    """Return an address as Ray Data takes it: clickhouse-connect reads the database from the path."""
    parts = urlsplit(uri)
    database = parse_qs(parts.query).get("database", ["default"])[0]
    return urlunsplit(("clickhousedb", parts.netloc, f"/{database}", "", ""))


@transport(
    "Ray Data write_clickhouse, HTTP INSERT FORMAT Arrow",
    "Arrow columns",
    requires=["clickhouse_connect", "pyarrow.parquet"],
    needs=["ray"],
)
def load_write_clickhouse(connection, source, table):
    """Append with Dataset.write_clickhouse to the existing table: one INSERT for each block.

    A table that Ray creates itself would have String columns for dates and uuids. The load is neither all or nothing
    nor exactly once: Ray repeats a task whose worker died, even after its INSERT.
    """
    import ray
    from ray.data import SinkMode

    dsn, name = dsn_of(connection.workers_uri), identifier(table)
    drive(lambda: ray.data.read_parquet(source).write_clickhouse(name, dsn, mode=SinkMode.APPEND))


@transport("Ray Data map_batches, HTTP INSERT FORMAT Arrow with tokens", "Arrow columns", needs=["ray"])
def load_insert_once(connection, source, table):
    """Insert each row group exactly once: a task inserts it as one block under its own token.

    The table remembers the tokens during the load and drops what a task repeats. Other connections see the table fill.
    """
    there = connection.workers_uri
    with remembering(connection.uri, table):
        on_workers(insert_part_once, [(there, table, source, group) for group in row_groups(source)])


@transport(
    "Ray Data map_batches, HTTP INSERT FORMAT Arrow with tokens, EXCHANGE TABLES", "Arrow columns", needs=["ray"]
)
def load_insert_staged(connection, source, table):
    """All rows or none: insert each row group once into a table that is exchanged with the empty one at the end."""
    there = connection.workers_uri
    with staging_of(connection.uri, table) as staging:
        on_workers(insert_part_once, [(there, staging, source, group) for group in row_groups(source)])


@transport(
    "Ray Data read_clickhouse, HTTP FORMAT Arrow",
    "Arrow columns",
    requires=["clickhouse_connect", "pyarrow.parquet"],
    needs=["ray"],
)
def unload_read_clickhouse(connection, table, destination):
    """Read with ray.data.read_clickhouse's defaults: one query, whose answer one task holds as one block.

    Three more queries come first: the number of rows, the number of bytes, and 100 sample rows.
    """
    import ray

    dsn, name = dsn_of(connection.workers_uri), identifier(table)
    drive(lambda: ray.data.read_clickhouse(table=name, dsn=dsn).write_parquet(destination))


@transport(
    "Ray Data read_clickhouse with order_by, HTTP FORMAT Arrow of pages",
    "Arrow columns",
    requires=["pyarrow.parquet"],
    needs=["ray"],
)
def unload_read_clickhouse_ordered(connection, table, destination):
    """Read with ray.data.read_clickhouse and order_by, which makes it parallel: pages by OFFSET and FETCH.

    The server sorts the table for each page, up to 200 times. The order is by all columns, the key's first. Rows that
    are equal in all of them may be on two pages or on none. There is no common snapshot, so the same holds for rows
    written meanwhile.
    """
    import ray

    with sessionless(connection.uri) as client:
        names = client.query(
            "SELECT name FROM system.columns WHERE database = currentDatabase() "
            f"AND table = {literal(table)} ORDER BY is_in_sorting_key DESC, position"
        ).result_columns[0]
    order = ([identifier(name) for name in names], False)
    dsn, name = dsn_of(connection.workers_uri), identifier(table)
    drive(lambda: ray.data.read_clickhouse(table=name, dsn=dsn, order_by=order).write_parquet(destination))


@transport("Ray Data map_batches, HTTP FORMAT Arrow of partitions", "Arrow columns", needs=["ray"])
def unload_by_parts(connection, table, destination):
    """Have each task read one partition of the table (PARTITION BY) and stream it to a separate file.

    There is no common snapshot: rows written meanwhile are in some of the files. A table without partitions is one
    part.
    """
    _unload(connection, table, destination)


@transport("Ray Data map_batches, HTTP FORMAT Arrow of partitions of a clone", "Arrow columns", needs=["ray"])
def unload_one_moment(connection, table, destination):
    """Like unload_by_parts, from a clone of the table: all tasks read the rows of one moment."""
    with one_moment(connection.uri, table) as clone:
        _unload(connection, clone, destination)


def _unload(connection, table, destination):
    uri, queries = connection.workers_uri, enumerate(part_queries(connection.uri, table))
    on_workers(read_part, [(uri, query, destination, str(number)) for number, query in queries])
