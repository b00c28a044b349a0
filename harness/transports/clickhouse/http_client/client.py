"""http.client of the standard library, for our own transports into and out of ClickHouse, in its Native format.

https://clickhouse.com/docs/interfaces/formats/Native; what encodes and decodes is `arrow_wire`, a library of this
project that is compiled (arrow-wire/).
"""

import json
import select
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPSConnection, IncompleteRead
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from harness.transports.clickhouse.server import TIMEOUT_SECONDS

ENDPOINT = "clickhouse_http"
FOR_POLARS = ["arrow_wire", "numpy", "polars", "pyarrow"]
FOR_PANDAS = ["arrow_wire", "numpy", "pandas", "pyarrow"]
PAYLOAD = "native columns"
UNCOMPRESSED = {"enable_http_compression": "0"}
TAIL_BYTES = 4096  # of an answer, in which the server says what failed
ON_ONE_LINE = {"print_pretty_type_names": "0"}  # the names of types, as they stand in blocks


def server_at(uri):
    """Return what makes a connection, who asks as headers, and the parameters of every request."""
    parts = urlsplit(uri)
    name, password = unquote(parts.username or "default"), unquote(parts.password or "")
    connection = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    user = {"X-ClickHouse-User": name.encode(), "X-ClickHouse-Key": password.encode()}  # texts are sent as Latin-1
    return partial(connection, parts.hostname, parts.port, timeout=TIMEOUT_SECONDS), user, dict(parse_qsl(parts.query))


def close_if_hung_up(client):
    """Close a connection whose other end is closed: a server keeps an idle one only so long."""
    if client.sock and select.select([client.sock], [], [], 0)[0]:
        client.close()  # the request opens it again


def send(client, user, parameters, query, body=None):
    """Send a query, perhaps with a body, and return the answer, still to be read.

    The body is memory, of which the request says how much it is, or chunks that are made on the way.

    A refusal raises RuntimeError with the server's text.
    """
    chunked = body is not None and not isinstance(body, memoryview)
    headers = user | {"Transfer-Encoding": "chunked"} if chunked else user
    close_if_hung_up(client)
    with suppress(ConnectionError):  # a server that does not want to hear the rest has said why
        client.request("POST", "/?" + urlencode({**parameters, "query": query}), body, headers)
    response = client.getresponse()
    if response.status != 200:
        raise RuntimeError(f"ClickHouse answered {response.status}: {response.read().decode(errors='replace')}")
    return response


def described(client, user, parameters, what):
    """Return name, type and `default_kind` of every column of a table or, between parentheses, a query."""
    answer = send(client, user, parameters | ON_ONE_LINE, f"DESCRIBE {what} FORMAT JSONCompact").read()
    return [column[:3] for column in json.loads(answer)["data"]]


@contextmanager
def connected(uri, count):
    """Yield so many open connections, who asks, and the parameters of every request."""
    opened, user, parameters = server_at(uri)
    clients = [opened() for _ in range(count)]
    try:
        for client in clients:
            send(client, user, parameters, "SELECT 1").read()
        yield clients, user, parameters
    finally:
        for client in clients:
            client.close()


class AnswerBytes:
    """The bytes of an answer. The status was sent before them, so that what fails later is said at their end."""

    def __init__(self, response):
        self.response, self.tail = response, b""
        self.tag = (response.headers.get("X-ClickHouse-Exception-Tag") or "").encode()

    def readinto(self, room):
        """Fill memory and return how much of it; less only at the end. Raises RuntimeError where it was broken off."""
        try:
            size = self.response.readinto(room)
            broken = size < len(room) and self.response.length
        except IncompleteRead as error:
            size, broken = len(error.partial), True
        self.tail = (self.tail + bytes(room[max(size - TAIL_BYTES, 0) : size]))[-TAIL_BYTES:]
        if broken or (size < len(room) and self.tag and self.tag in self.tail[-64:]):
            said = self.tail.partition(b"__exception__")[2].decode(errors="replace")
            raise RuntimeError(f"ClickHouse failed in the middle of its answer: {said or 'it broke off'}")
        return size
