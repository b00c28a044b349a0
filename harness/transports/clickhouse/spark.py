"""Apache Spark: through JDBC as its users do, and per partition with the fastest Python clients.

https://clickhouse.com/docs/integrations/apache-spark/spark-jdbc
"""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from urllib.parse import parse_qs, unquote, urlsplit

from harness.registry import Unsupported, transport
from harness.transports.clickhouse.columns import inner
from harness.transports.clickhouse.partitions import (
    insert_part,
    insert_part_once,
    one_moment,
    part_queries,
    read_part,
    remembering,
    staging_of,
)
from harness.transports.clickhouse.server import TEXT_INSERT_SETTINGS, sessionless
from harness.transports.clickhouse.sql import identifier
from harness.transports.parts import row_groups
from harness.transports.spark import in_tasks, need_driver, spark_session

ENDPOINT = "clickhouse_http"
DRIVER = "com.clickhouse.jdbc.ClickHouseDriver"
_SETTINGS = {name: TEXT_INSERT_SETTINGS[name] for name in ("async_insert", "precise_float_parsing")}
NAMELESS = ("UUID", "IPv4", "IPv6")  # types that JDBC does not support, sent and received as strings


@contextmanager
def connect(uri, workers):
    """Yield a Spark session, and the database's addresses as seen by this driver and by executors."""
    with spark_session(workers, ["pyarrow", "clickhouse-connect"]) as session:
        yield SimpleNamespace(session=session, uri=uri, workers_uri=workers.uri)


def jdbc(connection):
    """Return a database's address and user as Spark's JDBC takes them. Raises Unsupported without a driver.

    The driver also connects to the executors' address, because Spark has one address for both.
    """
    need_driver(connection.session, DRIVER)
    parts = urlsplit(connection.workers_uri)
    port = parts.port or (8443 if parts.scheme == "https" else 8123)
    database = parse_qs(parts.query).get("database", ["default"])[0]
    url = f"jdbc:clickhouse:{parts.scheme}://{parts.hostname}:{port}/{database}"
    who = {"user": unquote(parts.username or "default"), "password": unquote(parts.password or "")}
    return url, {"driver": DRIVER} | who


def as_strings(uri, table):
    """Return the query for all rows, with types that JDBC does not support as strings, because Spark refuses them."""
    with sessionless(uri) as client:
        described = client.query(f"DESCRIBE TABLE {identifier(table)}").result_rows
    columns = [
        f"toString({identifier(name)}) AS {identifier(name)}" if inner(sql_type) in NAMELESS else identifier(name)
        for name, sql_type, *_ in described
    ]
    return f"SELECT {', '.join(columns)} FROM {identifier(table)}"


@transport("JDBC batches of INSERT, by partition", "text rows", needs=["spark"])
def load_jdbc(connection, source, table):
    """Read Parquet with Spark and append it with `write.jdbc`, default options; refused for a UUID column.

    JDBC does not support UUID. Spark would store all rows and then raise UNRECOGNIZED_SQL_TYPE, so a retry would store
    them twice. This function therefore checks the types first, as Spark does afterwards.
    """
    from py4j.protocol import Py4JJavaError

    url, who = jdbc(connection)
    try:
        connection.session.read.jdbc(url, identifier(table), properties=who)
    except Py4JJavaError as error:
        reason = error.java_exception.getMessage()
        if not reason.startswith("[UNRECOGNIZED_SQL_TYPE]"):
            raise
        raise Unsupported(f"Spark's write.jdbc would raise {reason} after it has stored all rows") from None
    connection.session.read.parquet(source).write.jdbc(url, identifier(table), mode="append", properties=who)


@contextmanager
def _door_of(uri, table):
    """Yield the name of a table that stores nothing and forwards its rows to another, with types that JDBC supports."""
    door, view = identifier(f"{table}_door"), identifier(f"{table}_door_view")
    with sessionless(uri) as client:
        client.command(f"CREATE TABLE {door} ENGINE = Null EMPTY AS {as_strings(uri, table)}")
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
    url, who = jdbc(connection)
    with _door_of(connection.uri, table) as door:
        options = who | {"batchsize": "100000"} | {f"clickhouse_setting_{name}": of for name, of in _SETTINGS.items()}
        connection.session.read.parquet(source).write.jdbc(url, identifier(door), mode="append", properties=options)


@transport("HTTP INSERT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def load_insert(connection, source, table):
    """Insert each row group of the file in a separate task, as Arrow, with clickhouse-connect.

    If a worker dies after an insert, Spark repeats the row group, which duplicates its rows.
    """
    in_tasks(connection.session, row_groups(source), partial(insert_part, connection.workers_uri, table, source))


@transport("HTTP INSERT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def load_insert_once(connection, source, table):
    """Insert each row group under a token that the table remembers during the load: a repetition is dropped.

    Every row is inserted exactly once, even if workers die. Rows are visible during the load.
    """
    with remembering(connection.uri, table):
        inserted = partial(insert_part_once, connection.workers_uri, table, source)
        in_tasks(connection.session, row_groups(source), inserted)


@transport("HTTP INSERT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def load_insert_staged(connection, source, table):
    """Insert row groups under tokens into a copy of the table, which is exchanged with it when all are in.

    All or nothing: no row is visible before the exchange, and none ever if anything fails.
    """
    with staging_of(connection.uri, table) as staging:
        inserted = partial(insert_part_once, connection.workers_uri, staging, source)
        in_tasks(connection.session, row_groups(source), inserted)


@transport("JDBC SELECT", "RowBinary", needs=["spark"])
def unload_jdbc(connection, table, destination):
    """Read the table with `read.jdbc` and write it with `write.parquet`: one task, over one connection.

    The query turns a UUID into a string, because JDBC does not support UUID and Spark refuses it.
    """
    url, who = jdbc(connection)
    query = f"({as_strings(connection.uri, table)}) AS rows_of_it"
    connection.session.read.jdbc(url, query, properties=who).write.parquet(destination, mode="append")


def _unload(connection, table, destination):
    """Have executors write each partition of the table to a separate file."""
    uri, parts = connection.workers_uri, enumerate(part_queries(connection.uri, table))
    in_tasks(connection.session, parts, lambda part: read_part(uri, part[1], destination, str(part[0])))


@transport("HTTP SELECT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def unload_by_parts(connection, table, destination):
    """Read each partition of the table (PARTITION BY) in a separate task, as Arrow, with clickhouse-connect.

    Tasks run at different times, and so the result can mix rows from before and after concurrent changes.
    """
    _unload(connection, table, destination)


@transport("HTTP SELECT FORMAT Arrow, by partition", "Arrow", needs=["spark"])
def unload_one_moment(connection, table, destination):
    """Read each partition of a clone of the table in a separate task: all rows are from the clone's creation.

    The clone shares the table's files and is dropped at the end.
    """
    with one_moment(connection.uri, table) as clone:
        _unload(connection, clone, destination)
