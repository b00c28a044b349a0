"""chDB, the ClickHouse engine in this process, as a client of a server by remote(): https://clickhouse.com/docs/chdb"""

from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from harness.transports.clickhouse.sql import literal

ENDPOINT = "clickhouse_native"


@contextmanager
def connect(uri):
    """Yield an engine session and a function that returns a table's remote(...), after one query through both.

    The engine keeps its connection to the server open. network_compression_method sets the compression (zstd since
    26.9).
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
        # Without this, the engine treats a server on its own machine as itself.
        session.query("SET prefer_localhost_replica = 0")
        session.query(f"SELECT * FROM {source('one', 'system')}")
        yield session, source
    finally:
        session.close()
