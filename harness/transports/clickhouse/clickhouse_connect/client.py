"""clickhouse-connect, ClickHouse's own client for Python, over HTTP: https://clickhouse.com/docs/integrations/python

The name of a column that stands in backticks or double quotes itself it takes for quoted: insert and its kin refuse it.
"""

from contextlib import contextmanager
from urllib.parse import parse_qsl, unquote, urlsplit

from harness.transports.clickhouse.sql import identifier

ENDPOINT = "clickhouse_http"
# The server's default, written down because it may change.
ARROW_SETTINGS = {"output_format_arrow_compression_method": "lz4_frame"}
ARROW_UNCOMPRESSED = {"output_format_arrow_compression_method": "none"}


@contextmanager
def connect(uri):
    """Yield a client with an open connection; it reads the server's version and settings before anything else.

    All is as the client chooses by itself: it makes a session, and asks for answers in every compression it knows.
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
