"""From a ClickHouse table into Parquet files, with Spark."""

from harness.registry import transport
from harness.transports.clickhouse.partitions import one_moment, part_queries, read_part
from harness.transports.clickhouse.spark.client import as_texts, jdbc
from harness.transports.spark import in_tasks


@transport("JDBC SELECT", "RowBinary", needs=["spark"])
def unload_jdbc(connection, table, destination):
    """Read the table with `read.jdbc` and write it with `write.parquet`: one task, over one connection.

    The query turns a UUID into a string, because JDBC does not support UUID and Spark refuses it.
    """
    session, ours, theirs = connection
    url, who = jdbc(session, theirs)
    query = f"({as_texts(ours, table)}) AS rows_of_it"
    session.read.jdbc(url, query, properties=who).write.parquet(destination, mode="append")


def _unload(session, uri, queries, destination):
    """Have executors write each query's result to a separate file."""
    in_tasks(session, enumerate(queries), lambda part: read_part(uri, part[1], destination, str(part[0])))


@transport("HTTP SELECT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def unload_by_parts(connection, table, destination):
    """Read each partition of the table (PARTITION BY) in a separate task, as Arrow, with clickhouse-connect.

    Tasks run at different times, and so the result can mix rows from before and after concurrent changes.
    """
    session, ours, theirs = connection
    _unload(session, theirs, part_queries(ours, table), destination)


@transport("HTTP SELECT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def unload_one_moment(connection, table, destination):
    """Read each partition of a clone of the table in a separate task: all rows are from the clone's creation.

    The clone shares the table's files and is dropped at the end.
    """
    session, ours, theirs = connection
    with one_moment(ours, table) as clone:
        _unload(session, theirs, part_queries(ours, clone), destination)
