"""chdb, the ClickHouse engine in this process, as a client of a server through remote(): https://clickhouse.com/docs/chdb"""

from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from harness.transports.clickhouse.sql import literal

ENDPOINT = "clickhouse_native"


@contextmanager
def engine_beside(uri):
    """Yield a session of the engine and a function that says where a table is, after one query through both.

    The engine keeps the connection to the server, compressed with the method that network_compression_method says (zstd
    since 26.9).
    """
    import chdb

    parts = urlsplit(uri)
    secure = parts.scheme == "clickhouses"
    address = f"{parts.hostname}:{parts.port or (9440 if secure else 9000)}"
    user, password = unquote(parts.username or "default"), unquote(parts.password or "")
    own_database = unquote(parts.path[1:]) or "default"

    def source(table, database=own_database):
        arguments = ", ".join(literal(argument) for argument in (address, database, table, user, password))
        return f"{'remoteSecure' if secure else 'remote'}({arguments})"

    session = chdb.connect(":memory:")
    try:
        # Without this, an engine takes an address of its own machine for itself.
        session.query("SET prefer_localhost_replica = 0")
        session.query(f"SELECT * FROM {source('one', 'system')}")
        yield session, source
    finally:
        session.close()
