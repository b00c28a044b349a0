"""Apache Spark: through JDBC as its users do, and per partition with the fastest Python clients.

https://spark.apache.org/docs/latest/sql-data-sources-jdbc.html
"""

from contextlib import contextmanager
from urllib.parse import unquote, urlsplit, urlunsplit

from harness.transports.spark import need_driver, spark_session

DRIVER = "org.postgresql.Driver"


@contextmanager
def connect(uri, workers):
    """Yield a Spark session, and the database's addresses as seen by this driver and by executors."""
    packages = ["pyarrow", "psycopg", "pgpq", "adbc-driver-postgresql"]
    with spark_session(workers, packages) as session:
        yield session, uri, workers.uri


def jdbc(session, uri):
    """Return a database's address and user as Spark's JDBC takes them. Raises Unsupported without a driver.

    The driver also connects to the executors' address, because Spark has one address for both. pgjdbc ignores libpq
    options that it does not support.
    """
    need_driver(session, DRIVER)
    parts = urlsplit(uri)
    host = f"{parts.hostname}:{parts.port or 5432}"
    url = urlunsplit(parts._replace(scheme="jdbc:postgresql", netloc=host))
    who = {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    return url, {"driver": DRIVER} | {name: value for name, value in who.items() if value}
