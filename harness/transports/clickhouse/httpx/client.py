"""httpx, an HTTP client: https://www.python-httpx.org/"""

import json
from contextlib import contextmanager

from harness.registry import phase
from harness.transports.clickhouse.columns import inner
from harness.transports.clickhouse.server import INSERT_SETTINGS, TIMEOUT_SECONDS, raise_if_broken_off
from harness.transports.clickhouse.sql import identifier, insert_into

ENDPOINT = "clickhouse_http"
# httpx copies the rest of a body after every send: with 130 MB in one piece the copies took a second.
PIECE_BYTES = 1 << 20
BINARY = {"Content-Type": "application/octet-stream"}
# httpx offers every compression it finds installed, and a server since 25.10 accepts. Without this header the bytes
# sent would depend on the installed packages.
PLAIN = {"enable_http_compression": "0"}


def server_at(uri):
    """Return the options of a client, for both httpx.Client and httpx.AsyncClient."""
    import httpx

    url = httpx.URL(uri)
    return {
        "base_url": url.copy_with(userinfo=b"", query=None),
        "params": url.params,
        "auth": (url.username, url.password),
        "timeout": TIMEOUT_SECONDS,
        "verify": url.scheme == "https",  # without TLS, do not read certificates
    }


@contextmanager
def opened(uri):
    """Yield a client with one open connection that stays open while idle."""
    import httpx

    # By default httpx closes a connection after 5 s without a request.
    with httpx.Client(**server_at(uri), headers=BINARY, limits=httpx.Limits(keepalive_expiry=None)) as client:
        send(client, "SELECT 1")
        yield client


connect = opened


def accepted(response):
    """Return a response whose status is no error. A refusal raises RuntimeError with the server's message."""
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")
    return response


def send(client, query, settings=None, body=b"", encoding=None):
    """Run one query in one request and return the answer. A refusal raises RuntimeError.

    `encoding` is the codec of the body.
    """
    pieces = (memoryview(body)[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
    headers = {"Content-Length": str(len(body))} | ({"Content-Encoding": encoding} if encoding else {})
    return accepted(
        client.post("/", params={**(settings or {}), "query": query}, content=pieces, headers=headers)
    ).content


def insert(client, frame, table, format_name, encode, *how, settings=INSERT_SETTINGS):
    """Encode a frame in a format with `encode(frame, *how)`, and insert it."""
    with phase("encode"):
        body = encode(frame, *how)
    with phase("send"):
        send(client, f"{insert_into(table, frame.columns)} FORMAT {format_name}", settings, body)


def insert_arrow(client, table, arrow_of, frame, format_name, body_of, encoding=None):
    """Insert a frame as Arrow in a format; `body_of(arrow, types)` encodes it, `encoding` is the codec of the body."""
    import pyarrow as pa

    with phase("send"):
        types = column_types(client, table)
    with phase("encode"):
        arrow = arrow_of(frame)
        body = body_of(arrow, types)
        if encoding:
            body = pa.compress(body, codec=encoding, asbytes=True)  # pyarrow's lz4 is the frame format, like HTTP's
    with phase("send"):
        send(client, f"{insert_into(table, arrow.column_names)} FORMAT {format_name}", INSERT_SETTINGS, body, encoding)


def column_types(client, table):
    """Return each column's type, without LowCardinality and Nullable around it, and whether it is Nullable."""
    rows = json.loads(send(client, f"DESCRIBE TABLE {identifier(table)} FORMAT JSONCompact"))["data"]
    return {row[0]: (inner(row[1]), "Nullable(" in row[1]) for row in rows}


def ask(client, query, settings=None, encoding="identity", unpack=bytes):
    """Run one query and return the bytes of the answer, decompressed. A refusal raises RuntimeError.

    httpx decompresses zstd itself if the package zstandard is installed. It does not support lz4. An empty answer is
    not compressed.
    """
    response = accepted(client.post("/", params=settings, content=query, headers={"Accept-Encoding": encoding}))
    answer = unpack(response.content) if "Content-Encoding" in response.headers else response.content
    raise_if_broken_off(answer, response.headers.get("X-ClickHouse-Exception-Tag"))
    return answer
