"""Apache Spark: by JDBC as its users do, and partition by partition with the clients of Python that are fastest.

https://spark.apache.org/docs/latest/sql-data-sources-jdbc.html
"""

from contextlib import contextmanager
from urllib.parse import unquote, urlsplit, urlunsplit

from harness.transports.spark import need_driver, spark_session

DRIVER = "org.postgresql.Driver"


@contextmanager
def connect(uri, workers):
    """Yield a session of Spark, the address of the database for this driver, and the one for executors."""
    packages = ["pyarrow", "psycopg", "pgpq", "adbc-driver-postgresql"]
    with spark_session(workers, packages) as session:
        yield session, uri, workers.uri


def jdbc(session, uri):
    """Return the address of a database, and who connects, as Spark's JDBC takes them. Raises Unsupported: no driver.

    The driver connects to the address of the executors too: Spark has one for both. Options of libpq that pgjdbc has
    not, it passes over.
    """
    need_driver(session, DRIVER)
    parts = urlsplit(uri)
    host = f"{parts.hostname}:{parts.port or 5432}"
    url = urlunsplit(parts._replace(scheme="jdbc:postgresql", netloc=host))
    who = {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    return url, {"driver": DRIVER} | {name: value for name, value in who.items() if value}
