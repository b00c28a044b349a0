"""From a Parquet file into a ClickHouse table, with Spark."""

from contextlib import contextmanager

from harness.registry import Unsupported, transport
from harness.transports.clickhouse.partitions import insert_part, insert_part_once, remembering, staging_of
from harness.transports.clickhouse.server import TEXT_INSERT_SETTINGS, sessionless
from harness.transports.clickhouse.spark.client import as_texts, jdbc
from harness.transports.clickhouse.sql import identifier
from harness.transports.parts import row_groups
from harness.transports.spark import in_tasks

_SETTINGS = {name: TEXT_INSERT_SETTINGS[name] for name in ("async_insert", "precise_float_parsing")}


@transport("JDBC batches of INSERT, by partition", "text rows", needs=["spark"])
def load_jdbc(connection, source, table):
    """Read Parquet with Spark and append it with `write.jdbc`, default options; refused for a UUID column.

    JDBC does not support UUID. Spark would store all rows and then raise UNRECOGNIZED_SQL_TYPE, so a retry would store
    them twice. This function therefore checks the types first, as Spark does afterwards.
    """
    from py4j.protocol import Py4JJavaError

    session, _, uri = connection
    url, who = jdbc(session, uri)
    try:
        session.read.jdbc(url, identifier(table), properties=who)
    except Py4JJavaError as error:
        reason = error.java_exception.getMessage()
        if not reason.startswith("[UNRECOGNIZED_SQL_TYPE]"):
            raise
        raise Unsupported(f"Spark's write.jdbc would raise {reason} after it has stored all rows") from None
    session.read.parquet(source).write.jdbc(url, identifier(table), mode="append", properties=who)


@contextmanager
def _door_of(uri, table):
    """Yield the name of a table that stores nothing and forwards its rows to another, with types that JDBC supports."""
    door, view = identifier(f"{table}_door"), identifier(f"{table}_door_view")
    with sessionless(uri) as client:
        client.command(f"CREATE TABLE {door} ENGINE = Null EMPTY AS {as_texts(uri, table)}")
        try:
            client.command(f"CREATE MATERIALIZED VIEW {view} TO {identifier(table)} AS SELECT * FROM {door}")
            yield f"{table}_door"
        finally:
            client.command(f"DROP TABLE IF EXISTS {view} SYNC")
            client.command(f"DROP TABLE {door} SYNC")


@transport(
    "JDBC batches of INSERT, by partition",
    "text rows",
    requires=["pyarrow.parquet"],
    needs=["spark"],
    settings=_SETTINGS,
)
def load_jdbc_door(connection, source, table):
    """Append with `write.jdbc` to a table of strings that stores nothing; a view feeds its rows to the real table.

    This loads UUIDs, which JDBC does not support: the server parses the string. A batch has 100,000 rows. If a worker
    dies, Spark resends its batch, which duplicates the rows.
    """
    session, ours, theirs = connection
    url, who = jdbc(session, theirs)
    with _door_of(ours, table) as door:
        options = who | {"batchsize": "100000"} | {f"clickhouse_setting_{name}": of for name, of in _SETTINGS.items()}
        session.read.parquet(source).write.jdbc(url, identifier(door), mode="append", properties=options)


@transport("HTTP INSERT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def load_insert(connection, source, table):
    """Insert each row group of the file in a separate task, as Arrow, with clickhouse-connect.

    If a worker dies after an insert, Spark repeats the row group, which duplicates its rows.
    """
    session, _, uri = connection
    in_tasks(session, row_groups(source), lambda group: insert_part(uri, table, source, group))


@transport("HTTP INSERT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def load_insert_once(connection, source, table):
    """Insert each row group under a token that the table remembers during the load: a repetition is dropped.

    Every row is inserted exactly once, even if workers die. Rows are visible during the load.
    """
    session, ours, theirs = connection
    with remembering(ours, table):
        in_tasks(session, row_groups(source), lambda group: insert_part_once(theirs, table, source, group))


@transport("HTTP INSERT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def load_insert_staged(connection, source, table):
    """Insert row groups under tokens into a copy of the table, which is exchanged with it when all are in.

    All or nothing: no row is visible before the exchange, and none ever if anything fails.
    """
    session, ours, theirs = connection
    with staging_of(ours, table) as staging:
        in_tasks(session, row_groups(source), lambda group: insert_part_once(theirs, staging, source, group))
