"""clickhouse-connect, ClickHouse's official Python client, over HTTP: https://clickhouse.com/docs/integrations/python

If a column name is itself wrapped in backticks or double quotes, the client treats it as already quoted. insert and its
variants then refuse the name.
"""

from contextlib import contextmanager
from urllib.parse import parse_qsl, unquote, urlsplit

from harness.transports.clickhouse.sql import identifier

ENDPOINT = "clickhouse_http"
# The server's default, set explicitly because it may change.
ARROW_SETTINGS = {"output_format_arrow_compression_method": "lz4_frame"}
ARROW_UNCOMPRESSED = {"output_format_arrow_compression_method": "none"}


@contextmanager
def connect(uri):
    """Yield a client with an open connection; it first reads the server's version and settings.

    The client keeps its defaults: it creates a session and requests every compression it supports.
    """
    import clickhouse_connect

    with clickhouse_connect.get_client(**arguments(uri)) as client:
        yield client


def arguments(uri):
    """Return an address as the arguments of the client."""
    parts = urlsplit(uri)
    return {
        "interface": parts.scheme,
        "host": parts.hostname,
        "port": parts.port,
        "username": unquote(parts.username or "default"),
        "password": unquote(parts.password or ""),
        **dict(parse_qsl(parts.query)),
    }


def select(table):
    """Return the query for all rows, with the table's name quoted."""
    return f"SELECT * FROM {identifier(table)}"
