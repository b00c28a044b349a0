"""ClickHouse's HTTP protocol: one thread per connection, whose requests share an engine session if they may."""

import contextlib
import io
import json
import re
import socket
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler

from . import sql, transfer
from .codecs import ENCODERS, FrameEncoder, choose_encoding, method_of_setting
from .engine import Progress, Session
from .errors import ClickHouseError, Code, refusal
from .http_request import Body, FormFile, Request, parse_request, read_form
from .http_response import PLAIN_TEXT, Response, content_type
from .http_sessions import DEFAULT_TIMEOUT_SECONDS, LatestSession, parse_timeout
from .server import LoopbackServer
from .transfer import ExternalTables
from .watch import client_left
from .wire import SEND_SECONDS, Piece, ProtocolError, TimedSocket, send, write_all

MAX_TARGET_BYTES = 1 << 20  # http_max_uri_size of a server
_MSG_MORE = getattr(socket, "MSG_MORE", 0)  # Linux; elsewhere this sends another packet
_DEFAULT_COMPRESSION_LEVEL = "3"  # http_zlib_compression_level
_READONLY = {"readonly": "2"}
_READING_METHODS = ("GET", "HEAD")
_QUERY_TARGETS = ("/?", "?", "/query?")
_READONLY_TEXT = (
    "Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. "
    "You should use method POST for modifying queries."
)
_FORMAT_NAME = re.compile(r"\w+")
_Pieces = Generator[bytes | memoryview | Piece, None, None]


class HttpConnection(BaseHTTPRequestHandler):
    """One client; serves its requests one after the other."""

    server: LoopbackServer
    connection: socket.socket
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """Set up time limits for reads."""
        super().setup()
        self.input = TimedSocket(self.connection)
        self.rfile = self.received = io.BufferedReader(self.input)
        self.latest = LatestSession(self.server.engine)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a URL may hold a password."""

    def handle(self) -> None:
        """Serve requests until the client leaves or breaks the protocol."""
        with (
            contextlib.suppress(ConnectionError, EOFError, TimeoutError),
            contextlib.closing(self.latest),
        ):
            super().handle()

    def handle_one_request(self) -> None:
        """Read one request within its time limit, and answer it."""
        self.input.deadline = None
        if not self.received.peek(1):
            self.close_connection = True
            return
        self.input.deadline = time.monotonic() + self.server.greeting_seconds
        self.raw_requestline = self.rfile.readline(MAX_TARGET_BYTES + 1)
        if len(self.raw_requestline) > MAX_TARGET_BYTES:
            self.requestline, self.request_version, self.command = "", "", ""
            self.send_error(414)
            return
        if not self.parse_request():
            return
        self.input.deadline = None
        if self.command not in ("GET", "HEAD", "POST"):
            self.send_error(501)
            return
        self._respond()

    def _send(self, data: bytes | memoryview | Piece, more: bool) -> None:
        """Send data; if more follows at once, it may wait and go out with it."""
        if isinstance(data, Piece):
            self.connection.settimeout(SEND_SECONDS)
            data.move(self.connection, SEND_SECONDS)
        else:
            send(self.connection, data, _MSG_MORE if more else 0)

    def _respond(self) -> None:
        response = Response(self._send, self.command != "HEAD", self.request_version >= "HTTP/1.1")
        body = None
        try:
            response.headers |= self._common_headers()
            body = Body(self.received, self.headers)
            if self.command in _READING_METHODS and (
                self.path in ("/", "/ping") or self.path.startswith("/replicas_status")
            ):
                response.write(b"Ok.\n")
            elif self.path != "/" and not self.path.startswith(_QUERY_TARGETS):
                self._keep_alive(body, response)
                response.not_found(self.path)
                return
            else:
                self._answer(parse_request(self.command, self.path, self.headers), body, response)
            self._keep_alive(body, response)
            response.finish()
        except ClickHouseError as error:
            self._keep_alive(body, response)
            self.close_connection |= not response.fail(error, self.server.engine.version)
        except (ValueError, ProtocolError) as error:  # a body that breaks the framing
            self.close_connection = True
            response.headers["Connection"] = "close"
            response.fail(refusal(Code.BAD_ARGUMENTS, str(error)), self.server.engine.version)
        finally:
            response.abandon()

    def _common_headers(self) -> dict[str, str]:
        return {
            "Date": self.date_time_string(),
            "Connection": "close" if self.close_connection else "Keep-Alive",
            "Content-Type": PLAIN_TEXT,
            "X-ClickHouse-Server-Display-Name": "chdb",
            "X-ClickHouse-Timezone": self.server.engine.timezone,
        }

    def _keep_alive(self, body: Body | None, response: Response) -> None:
        """Read the rest of the request to find the next one, or announce the connection's end."""
        if body is None or not body.drain():
            self.close_connection = True
        if self.close_connection:
            response.headers["Connection"] = "close"

    # ------------------------------------------------------------ one request

    def _answer(self, request: Request, body: Body, response: Response) -> None:
        """Fill the response. Raises ClickHouseError."""
        response.headers["X-ClickHouse-Query-Id"] = request.params.get("query_id") or str(uuid.uuid4())
        user, password = request.credentials()
        self.server.users.check(user, password)
        if timezone := request.params.get("session_timezone"):
            response.headers["X-ClickHouse-Timezone"] = timezone
        chunks = body.decoded(request.flag("decompress"))
        files: list[FormFile] = []
        if self.headers.get("Content-Type", "").startswith("multipart/form-data"):
            request, files = read_form(request, chunks)
            chunks = iter(())
        text = _Text(request.params.get("query", ""), chunks, body.pour)
        insert = text.insert_head()
        # Without a session id, the engine itself runs in read-only mode and enforces it.
        reads = self.command in _READING_METHODS and bool(request.params.get("session_id"))
        with self._session(request, user) as session, contextlib.closing(ExternalTables(session)) as tables:
            response.count = lambda: _counts(session.progress, request)
            for file in files:
                tables.add(file.name, file.structure, file.format, file.pour)
            if insert is not None:
                if reads and not session.has_temporary(insert.table):
                    raise refusal(Code.READONLY, f"{user}: {_READONLY_TEXT}")
                pour = partial(text.pour, insert.payload_start)
                parameters = request.query_parameters
                transfer.insert(session, insert, insert.format, pour, parameters)
                response.count = partial(_counts, session.progress, request)
                return
            query = sql.parse_query(text.whole())
            if reads and not query.reads_only:
                raise refusal(Code.READONLY, f"{user}: {_READONLY_TEXT}")
            with self.server.watch.watching(self.connection, client_left, session.stop):
                size = self._run(session, query, request, response)
            # Without wait_end_of_query, a server writes its head before it counts the result.
            size = size if request.flag("wait_end_of_query") else 0
            response.count = partial(_counts, session.progress, request, size)

    @contextlib.contextmanager
    def _session(self, request: Request, user: str) -> Iterator[Session]:
        """Open a request's engine session, or use the one it names, with the request's settings."""
        settings = request.settings
        database = request.params.get("database") or request.header("X-ClickHouse-Database")
        name = request.params.get("session_id")
        if not name:
            settings |= _READONLY if self.command in _READING_METHODS else {}
            with self.latest.acquire(database, settings) as session:
                yield session
            return
        timeout = parse_timeout(request.params.get("session_timeout", str(DEFAULT_TIMEOUT_SECONDS)))
        session = self.server.sessions.acquire(self.server.engine, user, name, request.flag("session_check"))
        try:
            session.begin()
            with session.changed_for_request(settings, database):
                yield session
        finally:
            self.server.sessions.release(user, name, timeout)

    def _run(self, session: Session, query: sql.Query, request: Request, response: Response) -> int:
        """Run a statement without inline data; return the bytes of its result."""
        parameters = request.query_parameters
        if not query.has_result:
            session.run(query, parameters)
            return 0
        format = (
            query.format
            or request.params.get("default_format")
            or self.headers.get("X-ClickHouse-Format")
            or "TabSeparated"
        )
        if not _FORMAT_NAME.fullmatch(format):
            raise refusal(Code.UNKNOWN_FORMAT, f"Unknown format {format}")
        response.headers |= {"Content-Type": content_type(format), "X-ClickHouse-Format": format}
        if request.flag("http_write_exception_in_output_format"):
            response.fails_in = format
        if format.lower() == "null":  # nothing to send, so the head can have the whole summary, as on a server
            session.execute(query.text, "Null", parameters)
            return 0
        self._choose_compression(session, request, response)
        if request.flag("wait_end_of_query"):
            response.limit = None  # until the query has ended
        size = 0
        revision = request.native_revision if format.lower() == "native" else 0
        if revision:
            stream: _Pieces = transfer.stream_native(session, query, revision, parameters)
        else:
            stream = transfer.stream(session, query, format, parameters)
        with contextlib.closing(stream) as pieces:
            for piece in pieces:
                size += len(piece)
                response.write(piece)
        return size

    def _choose_compression(self, session: Session, request: Request, response: Response) -> None:
        if request.flag("compress"):
            response.encoder = FrameEncoder(method_of_setting(session.compression_method(request.settings)))
            return
        if request.params.get("enable_http_compression", "1") in ("1", "true"):
            encoding = choose_encoding(self.headers.get("Accept-Encoding", ""))
            if encoding:
                level = request.params.get("http_zlib_compression_level", _DEFAULT_COMPRESSION_LEVEL)
                response.encoder = ENCODERS[encoding](int(level))
                response.headers["Content-Encoding"] = encoding


def _counts(counted: Progress, request: Request, result_bytes: int = 0) -> dict[str, str]:
    """Return the headers that count the rows and bytes the engine has read and written."""
    numbers = {name: str(getattr(counted, name)) for name in Progress.__slots__}
    summary = numbers | {"result_rows": str(counted.written_rows), "result_bytes": str(result_bytes)}
    headers = {"X-ClickHouse-Summary": json.dumps(summary)}
    if request.flag("send_progress_in_http_headers"):
        headers["X-ClickHouse-Progress"] = json.dumps(numbers)
    return headers


class _Text:
    """A statement's text: the query parameter, followed by the body while it arrives."""

    def __init__(self, beginning: str, chunks: Iterator[bytes], pour: Callable[[int], None]) -> None:
        """Begin with the parameter; ``pour`` writes the rest of ``chunks`` into a pipe."""
        self._data = beginning.encode("utf-8", "surrogateescape") + b"\n" if beginning else b""
        self._chunks, self._pour = chunks, pour

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._data += chunk
        return bool(chunk)

    def insert_head(self) -> sql.InsertHead | None:
        """Read until it is clear whether this is an INSERT with inline data; return its head or None."""
        while not (word := sql.first_word(self._data)) and len(self._data) < sql.HEAD_BYTES and self._more():
            pass
        if word not in sql.WORDS_BEFORE_INSERT:
            return None
        while (head := self._complete_head()) is None and len(self._data) < sql.HEAD_BYTES and self._more():
            pass
        return head or sql.parse_insert(self._data)

    def _complete_head(self) -> sql.InsertHead | None:
        """Return the INSERT's head, unless the next bytes may still belong to it."""
        head = sql.parse_insert(self._data)
        return head if head and (self._data[head.payload_start :] or self._data.endswith(b"\n")) else None

    def whole(self) -> bytes:
        """Return the whole text. Raises ClickHouseError with code 229 if it is too long for a statement."""
        pieces, size = [self._data], len(self._data)
        for chunk in self._chunks:
            pieces.append(chunk)
            if (size := size + len(chunk)) > sql.MAX_QUERY_BYTES:
                raise refusal(Code.QUERY_IS_TOO_LARGE, f"Query: longer than {sql.MAX_QUERY_BYTES} bytes")
        self._data = b"".join(pieces)
        return self._data

    def pour(self, start: int, pipe: int) -> None:
        """Write the text after an offset into a pipe while it arrives."""
        write_all(pipe, (self._data[start:],))
        self._pour(pipe)
