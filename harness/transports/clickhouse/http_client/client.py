"""http.client of the standard library, for our own ways into and out of ClickHouse, by compiled loops.

https://clickhouse.com/docs/interfaces/formats/Native
"""

import select
from functools import partial
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import parse_qsl, unquote, urlsplit

from harness.transports.clickhouse.server import TIMEOUT_SECONDS

ENDPOINT = "clickhouse_http"
FOR_POLARS = ["numba", "numpy", "polars", "pyarrow"]
SLACK = 32  # bytes that a loop may read or write behind the end of a value
NUMBERS = [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)] + ["Float32", "Float64"]


def server_at(uri):
    """Return what makes a connection, who asks as headers, and the parameters of every request."""
    parts = urlsplit(uri)
    name, password = unquote(parts.username or "default"), unquote(parts.password or "")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    user = {"X-ClickHouse-User": name.encode(), "X-ClickHouse-Key": password.encode()}  # texts are sent as Latin-1
    return partial(kind, parts.hostname, parts.port, timeout=TIMEOUT_SECONDS), user, dict(parse_qsl(parts.query))


def close_if_hung_up(client):
    """Close a connection whose other end is closed: a server keeps an idle one only so long."""
    if client.sock and select.select([client.sock], [], [], 0)[0]:
        client.close()  # the request opens it again
