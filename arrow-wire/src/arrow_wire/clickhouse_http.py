"""ClickHouse over HTTP with the standard library: https://clickhouse.com/docs/interfaces/http"""

import json
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from arrow_wire.errors import Conflict, DamagedStream, Disconnected, ServerError, WrongValue
from arrow_wire.sockets import wait_readable

Table: TypeAlias = str | tuple[str, ...]  # "orders", "sales.orders", ("sales", "orders")
Body: TypeAlias = memoryview | Iterable[bytes | memoryview]
TIMEOUT_SECONDS = 300  # a socket that is silent for this long is broken; the native clients have the same default
TAIL_BYTES = 4096  # at the end of an answer, which have the server's error
ON_ONE_LINE = {"print_pretty_type_names": "0"}  # the names of types, as in blocks
_CONFLICTS = re.compile(
    r"Code: (57|218|252|341)\b"
)  # TABLE_ALREADY_EXISTS, TABLE_IS_DROPPED, TOO_MANY_PARTS, UNFINISHED
_NAME = r"\s*(?:`((?:[^`\\]|\\.)+)`|\"((?:[^\"\\]|\\.)+)\"|([^\W\d]\w*))\s*"
_TABLE = re.compile(rf"{_NAME}(?:\.{_NAME})?")


def identifier(name: str) -> str:
    r"""Return the name of a table or column as SQL: between backticks, with \ before every backtick and backslash."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def identifiers(names: Iterable[str]) -> str:
    """Return several names as SQL, with commas between them."""
    return ", ".join(map(identifier, names))


def literal(text: str) -> str:
    r"""Return a string as SQL: between single quotes, with \ before every single quote and backslash."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def parts_of(table: Table) -> tuple[str, ...]:
    """Return the names of a database, if it is given, and a table; nothing for any other string, such as a query."""
    if isinstance(table, tuple):
        return table
    if (found := _TABLE.fullmatch(table)) is None:
        return ()
    groups = found.groups()
    quoted = [re.sub(r"\\(.)", r"\1", groups[n] or groups[n + 1] or "") or groups[n + 2] for n in (0, 3)]
    return tuple(name for name in quoted if name)


def named(table: Table) -> tuple[str, ...]:
    """Return the names of a database, if it is given, and a table. Raises WrongValue if a string is not one."""
    if not (parts := parts_of(table)):
        raise WrongValue(f"{table!r} is not the name of a table; give table, database.table, or a tuple of any names")
    return parts


@dataclass
class Server:
    """Open connections to a server, the user, the parameters of every request, and the types that tables had.

    `types` are those of the tables that were written to, by the names of table and columns, and by those of the columns
    alone (the table None).
    """

    opens: Callable[[], HTTPConnection]
    user: dict[str, bytes]
    parameters: dict[str, str]
    clients: list[HTTPConnection] = field(default_factory=list)
    types: dict[tuple[str | None, ...], dict[str, str]] = field(default_factory=dict)

    def with_settings(self, settings: Mapping[str, object]) -> "Server":
        """Return the same connections with more settings in each request."""
        more = {name: str(int(value) if isinstance(value, bool) else value) for name, value in settings.items()}
        return Server(self.opens, self.user, self.parameters | more, self.clients, self.types)

    def client(self, number: int) -> HTTPConnection:
        """Return a connection by its number; a new one opens with its first request."""
        while len(self.clients) <= number:
            self.clients.append(self.opens())
        return self.clients[number]

    def ask(self, query: str, number: int = 0) -> str:
        """Send a statement and return its answer as a string."""
        return self.sent(query, number=number).decode(errors="replace")

    def sent(
        self, query: str, body: Body | None = None, number: int = 0, settings: Mapping[str, str] | None = None,
        size: int | None = None,
    ) -> bytes:  # fmt: skip
        """As `send`, and read the whole answer."""
        self.begin(query, body, number, settings, size)
        return self.whole_answer(number)

    def whole_answer(self, number: int) -> bytes:
        """As `answer`, and read all of it."""
        response = self.answer(number)
        with told_as_ours(self.client(number)):
            return response.read()

    def rows(self, query: str, number: int = 0, settings: Mapping[str, str] | None = None) -> list[list[Any]]:
        """Send a query that ends with FORMAT JSONCompact and return its rows. Raises DamagedStream for other bytes."""
        return rows_of(self.sent(query, number=number, settings=settings))

    def send(
        self, query: str, body: Body | None = None, number: int = 0, settings: Mapping[str, str] | None = None,
        size: int | None = None,
    ) -> HTTPResponse:  # fmt: skip
        """Send a query, perhaps with a body, and return the answer, still to be read.

        The body is memory, whose size the request states. Or it is an iterable of memory: with this `size` in all, or
        sent as chunks that are made meanwhile. Raises ServerError with the server's message if it refuses, and
        Disconnected if it cannot be reached.
        """
        self.begin(query, body, number, settings, size)
        return self.answer(number)

    def begin(
        self, query: str, body: Body | None = None, number: int = 0, settings: Mapping[str, str] | None = None,
        size: int | None = None,
    ) -> None:  # fmt: skip
        """Send a query as `send` does, but leave waiting to `answer`."""
        client = self.client(number)
        chunked = body is not None and size is None and not isinstance(body, memoryview)
        headers = self.user | {"Transfer-Encoding": "chunked"} if chunked else self.user
        headers = headers if size is None else headers | {"Content-Length": str(size)}
        close_if_hung_up(client)
        parameters = {**self.parameters, **(settings or {}), "query": query}
        with told_as_ours(client):
            if client.sock is None:
                client.connect()
            with suppress(ConnectionError):  # a server that refuses the rest has sent the reason
                client.request("POST", "/?" + urlencode(parameters), body, headers)

    def answer(self, number: int) -> HTTPResponse:
        """Return the answer to a query that `begin` sent over a connection, still to be read. Raises as `send` does."""
        client = self.client(number)
        with told_as_ours(client):
            response = client.getresponse()
        if response.status != 200:
            with told_as_ours(client):
                said = response.read().decode(errors="replace")
            text = f"ClickHouse answered {response.status}: {said}"
            raise (Conflict if _CONFLICTS.search(text) else ServerError)(text)
        return response

    def described(self, what: str, number: int = 0) -> list[list[str]]:
        """Return name, type and `default_kind` of every column of a table or, between parentheses, a query."""
        found = self.rows(f"DESCRIBE {what} FORMAT JSONCompact", number, ON_ONE_LINE)
        return [column[:3] for column in found]


def rows_of(answer: bytes) -> list[list[Any]]:
    """Return the rows of an answer in JSONCompact. Raises DamagedStream for other bytes."""
    try:
        return list(json.loads(answer)["data"])
    except (ValueError, KeyError, TypeError):
        raise DamagedStream(f"the server's answer is not rows as JSON: {answer[:80]!r}") from None


def close_if_hung_up(client: HTTPConnection) -> None:
    """Close a connection that the server has closed: servers close idle connections after a while."""
    if client.sock and wait_readable(client.sock, 0):
        client.close()  # the request opens it again


@contextmanager
def told_as_ours(client: HTTPConnection) -> Iterator[None]:
    """Turn errors of a connection into Disconnected, and close it."""
    try:
        yield
    except (OSError, HTTPException) as error:
        client.close()
        if isinstance(error, Disconnected):
            raise
        raise Disconnected(f"the connection to ClickHouse broke: {type(error).__name__}: {error}") from error


def server_at(uri: str) -> Server:
    """Return the server of an address: http:// or https://, whose certificate is then verified.

    The address has user and password as usual. Its parameters, such as `database`, go with every request.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongValue(
            f"{parts.scheme!r} is not an address of ClickHouse over HTTP; give http://user:password@host:8123"
        )
    name, password = unquote(parts.username or "default"), unquote(parts.password or "")
    user = {"X-ClickHouse-User": name.encode(), "X-ClickHouse-Key": password.encode()}  # strings are sent as Latin-1
    if parts.scheme == "https":
        context = ssl.create_default_context()
        opens: Callable[[], HTTPConnection] = partial(
            HTTPSConnection, parts.hostname, parts.port, timeout=TIMEOUT_SECONDS, context=context
        )
    else:
        opens = partial(HTTPConnection, parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)
    return Server(opens, user, dict(parse_qsl(parts.query)))


@contextmanager
def connected(uri: str, count: int = 0) -> Iterator[Server]:
    """Yield a server with this many open connections; close all of them at the end."""
    server = server_at(uri)
    try:
        for number in range(count):
            server.sent("SELECT 1", number=number)
        yield server
    finally:
        for client in server.clients:
            client.close()


class AnswerBytes:
    """The bytes of an answer. The server sends the status before them, so it reports a later error at their end."""

    def __init__(self, response: HTTPResponse) -> None:
        self.response, self.tail = response, b""
        self.tag = (response.headers.get("X-ClickHouse-Exception-Tag") or "").encode()

    def readinto(self, room: memoryview) -> int:
        """Fill memory; return its bytes, fewer only at the end. Raises ServerError if the answer broke off."""
        try:
            size = self.response.readinto(room)
            broken = bool(size < len(room) and self.response.length)
        except IncompleteRead as error:
            size, broken = len(error.partial), True
        except (OSError, HTTPException) as error:
            raise Disconnected(f"the connection to ClickHouse broke: {type(error).__name__}: {error}") from error
        self.tail = (self.tail + bytes(room[max(size - TAIL_BYTES, 0) : size]))[-TAIL_BYTES:]
        if broken or (size < len(room) and self.tag and self.tag in self.tail[-64:]):
            said = self.tail.partition(b"__exception__")[2].decode(errors="replace")
            if not said:
                raise Disconnected("the connection to ClickHouse broke in the middle of an answer")
            raise ServerError(f"ClickHouse failed in the middle of its answer: {said}")
        return size
