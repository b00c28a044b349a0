"""From a Parquet file into a table of Postgres, with Spark."""

from harness.registry import transport
from harness.transports.parts import row_groups
from harness.transports.postgres.partitions import copy_part, copy_part_once, ledger_of, staging_of
from harness.transports.postgres.spark.client import jdbc
from harness.transports.postgres.sql import identifier
from harness.transports.spark import in_tasks

_REQUIRES = ["py4j.protocol", "pyspark.sql", "pyarrow.parquet", "psycopg", "pgpq"]


def _append(connection, source, table, options):
    """Have Spark read the file and append it by JDBC; a partition is a transaction, unless its task is done again."""
    session, _, uri = connection
    url, who = jdbc(session, uri)
    # a uuid is a text in Parquet; sent without a type, the server takes it for what the column is
    frame = session.read.parquet(source)
    frame.write.jdbc(url, identifier(table), mode="append", properties=who | {"stringtype": "unspecified"} | options)


@transport(
    "load",
    path="JDBC batches of INSERT, by partition",
    payload="binary rows",
    requires=["py4j.protocol", "pyspark.sql"],
    needs=["spark"],
)
def load_jdbc(connection, source, table):
    """Read Parquet with Spark and append it with `write.jdbc`, all options but one as they are.

    Each partition is one transaction of INSERTs, 1,000 rows a batch. A partition that is done again, because its worker
    died after the commit, is there twice. `stringtype=unspecified` is needed where a column is a uuid.
    """
    _append(connection, source, table, {})


@transport(
    "load",
    path="JDBC batches of INSERT, by partition",
    payload="binary rows",
    requires=["py4j.protocol", "pyspark.sql"],
    needs=["spark"],
)
def load_jdbc_rewrite(connection, source, table):
    """Append with `write.jdbc` in batches of 10,000 rows, which the driver makes INSERTs of many rows.

    `reWriteBatchedInserts` of pgjdbc saves the server most of the messages. As plain `load_jdbc`, it may repeat rows.
    """
    _append(connection, source, table, {"reWriteBatchedInserts": "true", "batchsize": "10000"})


@transport(
    "load",
    path="COPY FROM STDIN (FORMAT binary), by partition",
    payload="binary rows",
    requires=_REQUIRES,
    needs=["spark"],
)
def load_copy(connection, source, table):
    """COPY each row group of the file in a task of its own: pgpq encodes Arrow, psycopg sends it.

    A row group is one transaction. One that is done again, because its worker died after the commit, is there twice.
    """
    session, _, uri = connection
    in_tasks(session, row_groups(source), lambda group: copy_part(uri, table, source, group))


@transport(
    "load",
    path="COPY FROM STDIN (FORMAT binary), by partition",
    payload="binary rows",
    requires=_REQUIRES,
    needs=["spark"],
)
def load_copy_once(connection, source, table):
    """COPY each row group with its entry in a ledger, in one transaction: whoever does it again does nothing.

    Every row is there once, whichever workers die; rows are seen as they come.
    """
    session, uri, theirs = connection
    with ledger_of(uri, table) as ledger:
        in_tasks(session, row_groups(source), lambda group: copy_part_once(theirs, table, ledger, source, group))


@transport(
    "load",
    path="COPY FROM STDIN (FORMAT binary), by partition",
    payload="binary rows",
    requires=_REQUIRES,
    needs=["spark"],
)
def load_copy_staged(connection, source, table):
    """COPY row groups with a ledger into a copy of the table, which takes its place when all of them are in.

    All or nothing: nobody sees a part of the rows, and if anything goes wrong nobody ever does.
    """
    session, uri, theirs = connection
    with staging_of(uri, table) as staging, ledger_of(uri, table) as ledger:
        in_tasks(session, row_groups(source), lambda group: copy_part_once(theirs, staging, ledger, source, group))
