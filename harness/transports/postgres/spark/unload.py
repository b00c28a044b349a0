"""From a Postgres table into Parquet files, with Spark."""

from harness.registry import transport
from harness.transports.postgres.partitions import one_moment, part_queries, read_part
from harness.transports.postgres.spark.client import jdbc
from harness.transports.postgres.sql import identifier, literal
from harness.transports.spark import in_tasks

FETCH_ROWS = "10000"


def _predicates(uri, table):
    """Return the conditions of the queries that together read a table."""
    return [query.removeprefix(f"SELECT * FROM {identifier(table)} WHERE ") for query in part_queries(uri, table)]


@transport("JDBC SELECT", "text rows", needs=["spark"])
def unload_jdbc(connection, table, destination):
    """Read the table with `read.jdbc` and write it with `write.parquet`, all options at their defaults.

    One task reads everything over one connection. Without a `fetchsize`, pgjdbc loads the whole answer into the
    executor's memory, and a large table kills the executor.
    """
    session, _, uri = connection
    url, who = jdbc(session, uri)
    session.read.jdbc(url, identifier(table), properties=who).write.parquet(destination, mode="append")


@transport("JDBC SELECT, by partition", "text rows", needs=["spark"])
def unload_jdbc_predicates(connection, table, destination):
    """Read ranges of the table's pages (ctid) with `read.jdbc(predicates=...)`, each in a separate task.

    Tasks run at different times: a row updated meanwhile may be read twice or not at all.
    """
    session, ours, theirs = connection
    url, who = jdbc(session, theirs)
    options = who | {"fetchsize": FETCH_ROWS}
    frame = session.read.jdbc(url, identifier(table), predicates=_predicates(ours, table), properties=options)
    frame.write.parquet(destination, mode="append")


@transport("JDBC SELECT, by partition", "text rows", needs=["spark"])
def unload_jdbc_one_moment(connection, table, destination):
    """Read ranges of pages with `read.jdbc`, every task from one exported snapshot, set by `sessionInitStatement`.

    A consistent read: this driver holds the snapshot until the last task is done.
    """
    session, ours, theirs = connection
    url, who = jdbc(session, theirs)
    with one_moment(ours) as snapshot:
        as_of = f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT {literal(snapshot)}"
        options = who | {"fetchsize": FETCH_ROWS, "sessionInitStatement": as_of}
        frame = session.read.jdbc(url, identifier(table), predicates=_predicates(ours, table), properties=options)
        frame.write.parquet(destination, mode="append")


@transport("COPY TO STDOUT (FORMAT binary), by partition", "binary rows", needs=["spark"])
def unload_one_moment(connection, table, destination):
    """Read ranges of pages with ADBC, each in a separate task and all from one exported snapshot.

    A consistent read: this driver holds the snapshot until the last task is done. Arrow goes from COPY to Parquet
    without passing through Spark.
    """
    session, ours, theirs = connection
    with one_moment(ours) as snapshot:
        parts = enumerate(part_queries(ours, table))
        in_tasks(session, parts, lambda part: read_part(theirs, part[1], snapshot, destination, str(part[0])))
