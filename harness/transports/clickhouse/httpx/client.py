"""httpx, an HTTP client: https://www.python-httpx.org/"""

import json
from contextlib import contextmanager

from harness.registry import phase
from harness.transports.clickhouse.columns import inner
from harness.transports.clickhouse.server import INSERT_SETTINGS, TIMEOUT_SECONDS, raise_if_broken_off
from harness.transports.clickhouse.sql import identifier, insert_into

ENDPOINT = "clickhouse_http"
# httpx copies what is left of a body after every send: 130 MB in one piece cost a second of nothing else.
PIECE_BYTES = 1 << 20
BINARY = {"Content-Type": "application/octet-stream"}
# httpx offers every compression it finds installed, and since 25.10 a server takes the offer: without this the bytes on
# the wire would depend on which other packages are there.
PLAIN = {"enable_http_compression": "0"}


def server_at(uri):
    """Return what a client is made with, httpx.Client and httpx.AsyncClient alike."""
    import httpx

    url = httpx.URL(uri)
    return {
        "base_url": url.copy_with(userinfo=b"", query=None),
        "params": url.params,
        "auth": (url.username, url.password),
        "timeout": TIMEOUT_SECONDS,
        "verify": url.scheme == "https",  # where there is no TLS, no certificates to be read for it
    }


@contextmanager
def connect(uri):
    """Yield a client that holds one open connection."""
    import httpx

    with httpx.Client(**server_at(uri), headers=BINARY) as client:
        send(client, "SELECT 1")
        yield client


@contextmanager
def reading(uri):
    """Yield a client that holds one open connection, for as long as nobody asks anything."""
    import httpx

    # By default a connection is closed after 5 s without a request.
    with httpx.Client(**server_at(uri), limits=httpx.Limits(keepalive_expiry=None)) as client:
        ask(client, "SELECT 1")
        yield client


def send(client, query, settings=None, body=b"", encoding=None):
    """Run one query in one request and return the answer; a refusal raises RuntimeError with the server's text.

    `encoding` is the codec of the body.
    """
    pieces = (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
    headers = {"Content-Length": str(len(body))} | ({"Content-Encoding": encoding} if encoding else {})
    response = client.post("/", params={**(settings or {}), "query": query}, content=pieces, headers=headers)
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")
    return response.content


def insert(client, table, columns, format_name, body, settings=INSERT_SETTINGS):
    """Insert what is encoded in a format already."""
    with phase("send"):
        send(client, f"{insert_into(table, columns)} FORMAT {format_name}", settings, body)


def column_types(client, table):
    """Return of every column its type, without LowCardinality and Nullable around it, and whether it is Nullable."""
    rows = json.loads(send(client, f"DESCRIBE TABLE {identifier(table)} FORMAT JSONCompact"))["data"]
    return {row[0]: (inner(row[1]), "Nullable(" in row[1]) for row in rows}


def ask(client, query, settings=None, encoding="identity", unpack=bytes):
    """Run one query and return the bytes of the answer, unpacked; a refusal raises RuntimeError with its text.

    httpx takes zstd off by itself where the package zstandard is installed, and knows no lz4. An answer of no bytes is
    not packed.
    """
    response = client.post("/", params=settings, content=query, headers={"Accept-Encoding": encoding})
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")
    answer = unpack(response.content) if "Content-Encoding" in response.headers else response.content
    raise_if_broken_off(answer, response.headers.get("X-ClickHouse-Exception-Tag"))
    return answer
