"""Apache Spark: through JDBC as its users do, and per partition with the fastest Python clients.

https://clickhouse.com/docs/integrations/apache-spark/spark-jdbc
"""

from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit

from harness.transports.clickhouse.columns import inner
from harness.transports.clickhouse.server import sessionless
from harness.transports.clickhouse.sql import identifier
from harness.transports.spark import need_driver, spark_session

ENDPOINT = "clickhouse_http"
REQUIRES = ["py4j.protocol", "pyspark.sql", "pyarrow.parquet", "clickhouse_connect"]
DRIVER = "com.clickhouse.jdbc.ClickHouseDriver"
NAMELESS = ("UUID", "IPv4", "IPv6")  # types that JDBC does not support, sent and received as strings


@contextmanager
def connect(uri, workers):
    """Yield a Spark session, and the database's addresses as seen by this driver and by executors."""
    with spark_session(workers, ["pyarrow", "clickhouse-connect"]) as session:
        yield session, uri, workers.uri


def jdbc(session, uri):
    """Return a database's address and user as Spark's JDBC takes them. Raises Unsupported without a driver.

    The driver also connects to the executors' address, because Spark has one address for both.
    """
    need_driver(session, DRIVER)
    parts = urlsplit(uri)
    port = parts.port or (8443 if parts.scheme == "https" else 8123)
    database = parse_qs(parts.query).get("database", ["default"])[0]
    url = f"jdbc:clickhouse:{parts.scheme}://{parts.hostname}:{port}/{database}"
    who = {"user": unquote(parts.username or "default"), "password": unquote(parts.password or "")}
    return url, {"driver": DRIVER} | who


def as_texts(uri, table):
    """Return the query for all rows, with types that JDBC does not support as strings, because Spark refuses them."""
    with sessionless(uri) as client:
        described = client.query(f"DESCRIBE TABLE {identifier(table)}").result_rows
    columns = [
        f"toString({identifier(name)}) AS {identifier(name)}" if inner(sql_type) in NAMELESS else identifier(name)
        for name, sql_type, *_ in described
    ]
    return f"SELECT {', '.join(columns)} FROM {identifier(table)}"
