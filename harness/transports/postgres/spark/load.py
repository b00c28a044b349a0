"""From a Parquet file into a Postgres table, with Spark."""

from harness.registry import transport
from harness.transports.parts import row_groups
from harness.transports.postgres.partitions import copy_part, copy_part_once, ledger_of, staging_of
from harness.transports.postgres.spark.client import jdbc
from harness.transports.postgres.sql import identifier
from harness.transports.spark import in_tasks


def _append(connection, source, table, options):
    """Have Spark read the file and append it by JDBC; a partition is a transaction, unless Spark repeats its task."""
    session, _, uri = connection
    url, who = jdbc(session, uri)
    # a uuid is a string in Parquet; sent without a type, the server casts it to the column's type
    frame = session.read.parquet(source)
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
    session, _, uri = connection
    in_tasks(session, row_groups(source), lambda group: copy_part(uri, table, source, group))


@transport("COPY FROM STDIN (FORMAT binary), by partition", "binary rows", needs=["spark"])
def load_copy_once(connection, source, table):
    """COPY each row group with its entry in a ledger, in one transaction: a repetition does nothing.

    Every row is inserted exactly once, even if workers die. Rows are visible during the load.
    """
    session, uri, theirs = connection
    with ledger_of(uri, table) as ledger:
        in_tasks(session, row_groups(source), lambda group: copy_part_once(theirs, table, ledger, source, group))


@transport("COPY FROM STDIN (FORMAT binary), by partition", "binary rows", needs=["spark"])
def load_copy_staged(connection, source, table):
    """COPY row groups with a ledger into a copy of the table, which replaces the table when all are in.

    All or nothing: no row is visible before the end, and none ever if anything fails.
    """
    session, uri, theirs = connection
    with staging_of(uri, table) as staging, ledger_of(uri, table) as ledger:
        in_tasks(session, row_groups(source), lambda group: copy_part_once(theirs, staging, ledger, source, group))
