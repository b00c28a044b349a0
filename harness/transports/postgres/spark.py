"""Apache Spark: through JDBC as its users do, and per partition with the fastest Python clients.

https://spark.apache.org/docs/latest/sql-data-sources-jdbc.html
"""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit, urlunsplit

from harness.registry import transport
from harness.transports.parts import row_groups
from harness.transports.postgres.partitions import (
    copy_part,
    copy_part_once,
    ledger_of,
    one_moment,
    part_queries,
    read_part,
    staging_of,
)
from harness.transports.postgres.sql import identifier, literal
from harness.transports.spark import in_tasks, need_driver, spark_session

DRIVER = "org.postgresql.Driver"
FETCH_ROWS = "10000"


@contextmanager
def connect(uri, workers):
    """Yield a Spark session, and the database's addresses as seen by this driver and by executors."""
    packages = ["pyarrow", "psycopg", "pgpq", "adbc-driver-postgresql"]
    with spark_session(workers, packages) as session:
        yield SimpleNamespace(session=session, uri=uri, workers_uri=workers.uri)


def jdbc(connection):
    """Return a database's address and user as Spark's JDBC takes them. Raises Unsupported without a driver.

    The driver also connects to the executors' address, because Spark has one address for both. pgjdbc ignores libpq
    options that it does not support.
    """
    need_driver(connection.session, DRIVER)
    parts = urlsplit(connection.workers_uri)
    host = f"{parts.hostname}:{parts.port or 5432}"
    url = urlunsplit(parts._replace(scheme="jdbc:postgresql", netloc=host))
    who = {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    return url, {"driver": DRIVER} | {name: value for name, value in who.items() if value}


def _append(connection, source, table, options):
    """Have Spark read the file and append it by JDBC; a partition is a transaction, unless Spark repeats its task."""
    url, who = jdbc(connection)
    # a uuid is a string in Parquet; sent without a type, the server casts it to the column's type
    frame = connection.session.read.parquet(source)
    frame.write.jdbc(url, identifier(table), mode="append", properties=who | {"stringtype": "unspecified"} | options)


@transport("JDBC batches of INSERT, by partition", "binary rows", needs=["spark"])
def load_jdbc(connection, source, table):
    """Read Parquet with Spark and append it with `write.jdbc`, all options but one at their defaults.

    Each partition is one transaction of INSERTs, 1,000 rows a batch. If a worker dies after a commit, Spark repeats its
    partition, which duplicates the rows. A uuid column needs `stringtype=unspecified`.
    """
    _append(connection, source, table, {})


@transport("JDBC batches of INSERT, by partition", "binary rows", needs=["spark"])
def load_jdbc_rewrite(connection, source, table):
    """Append with `write.jdbc` in batches of 10,000 rows, which the driver turns into INSERTs of many rows.

    pgjdbc's `reWriteBatchedInserts` saves the server most of the messages. It may duplicate rows, like `load_jdbc`.
    """
    _append(connection, source, table, {"reWriteBatchedInserts": "true", "batchsize": "10000"})


@transport("COPY FROM STDIN (FORMAT binary), by partition", "binary rows", needs=["spark"])
def load_copy(connection, source, table):
    """COPY each row group of the file in a separate task: pgpq encodes Arrow, and psycopg sends it.

    A row group is one transaction. If a worker dies after a commit, Spark repeats its row group, which duplicates the
    rows.
    """
    in_tasks(connection.session, row_groups(source), partial(copy_part, connection.workers_uri, table, source))


@transport("COPY FROM STDIN (FORMAT binary), by partition", "binary rows", needs=["spark"])
def load_copy_once(connection, source, table):
    """COPY each row group with its entry in a ledger, in one transaction: a repetition does nothing.

    Every row is inserted exactly once, even if workers die. Rows are visible during the load.
    """
    with ledger_of(connection.uri, table) as ledger:
        copied = partial(copy_part_once, connection.workers_uri, table, ledger, source)
        in_tasks(connection.session, row_groups(source), copied)


@transport("COPY FROM STDIN (FORMAT binary), by partition", "binary rows", needs=["spark"])
def load_copy_staged(connection, source, table):
    """COPY row groups with a ledger into a copy of the table, which replaces the table when all are in.

    All or nothing: no row is visible before the end, and none ever if anything fails.
    """
    with staging_of(connection.uri, table) as staging, ledger_of(connection.uri, table) as ledger:
        copied = partial(copy_part_once, connection.workers_uri, staging, ledger, source)
        in_tasks(connection.session, row_groups(source), copied)


def _predicates(uri, table):
    """Return the conditions of the queries that together read a table."""
    return [query.removeprefix(f"SELECT * FROM {identifier(table)} WHERE ") for query in part_queries(uri, table)]


def _unload(connection, table, destination, options):
    """Have Spark read ranges of the table's pages by JDBC with further options, and write them."""
    url, who = jdbc(connection)
    options = who | {"fetchsize": FETCH_ROWS} | options
    predicates = _predicates(connection.uri, table)
    frame = connection.session.read.jdbc(url, identifier(table), predicates=predicates, properties=options)
    frame.write.parquet(destination, mode="append")


@transport("JDBC SELECT", "text rows", needs=["spark"])
def unload_jdbc(connection, table, destination):
    """Read the table with `read.jdbc` and write it with `write.parquet`, all options at their defaults.

    One task reads everything over one connection. Without a `fetchsize`, pgjdbc loads the whole answer into the
    executor's memory, and a large table kills the executor.
    """
    url, who = jdbc(connection)
    connection.session.read.jdbc(url, identifier(table), properties=who).write.parquet(destination, mode="append")


@transport("JDBC SELECT, by partition", "text rows", needs=["spark"])
def unload_jdbc_predicates(connection, table, destination):
    """Read ranges of the table's pages (ctid) with `read.jdbc(predicates=...)`, each in a separate task.

    Tasks run at different times: a row updated meanwhile may be read twice or not at all.
    """
    _unload(connection, table, destination, {})


@transport("JDBC SELECT, by partition", "text rows", needs=["spark"])
def unload_jdbc_one_moment(connection, table, destination):
    """Read ranges of pages with `read.jdbc`, every task from one exported snapshot, set by `sessionInitStatement`.

    A consistent read: this driver holds the snapshot until the last task is done.
    """
    with one_moment(connection.uri) as snapshot:
        as_of = f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT {literal(snapshot)}"
        _unload(connection, table, destination, {"sessionInitStatement": as_of})


@transport("COPY TO STDOUT (FORMAT binary), by partition", "binary rows", needs=["spark"])
def unload_one_moment(connection, table, destination):
    """Read ranges of pages with ADBC, each in a separate task and all from one exported snapshot.

    A consistent read: this driver holds the snapshot until the last task is done. Arrow goes from COPY to Parquet
    without passing through Spark.
    """
    uri = connection.workers_uri
    with one_moment(connection.uri) as snapshot:
        parts = enumerate(part_queries(connection.uri, table))
        in_tasks(connection.session, parts, lambda part: read_part(uri, part[1], snapshot, destination, str(part[0])))
