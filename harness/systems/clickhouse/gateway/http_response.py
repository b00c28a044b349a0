"""An HTTP response that starts late enough to report most errors with a status, and never ends cleanly after one."""

import contextlib
import http
import json
import random
import string
import tempfile
import time
from collections.abc import Callable
from xml.sax.saxutils import escape

from .codecs import Encoder
from .errors import ClickHouseError, http_status
from .wire import Piece

BUFFER_BYTES = 1 << 20  # of a response before its head is sent, as on a server
_MEMORY_BYTES = 16 << 20  # of a response with wait_end_of_query; larger ones go to a file
_PIECE_BYTES = 1 << 20
_HOLD_SECONDS = 0.2  # a result that comes more slowly is sent as it comes, as on a server
_COPIED_BYTES = 1 << 16  # up to this size a copy takes less time than another send
_TAG_LETTERS = 16

_CONTENT_TYPES = {
    "csv": "text/csv; charset=UTF-8; header=absent",
    "csvwithnames": "text/csv; charset=UTF-8; header=present",
    "csvwithnamesandtypes": "text/csv; charset=UTF-8; header=present",
    "json": "application/json; charset=UTF-8",
    "jsoncolumns": "application/json; charset=UTF-8",
    "jsoncompact": "application/json; charset=UTF-8",
    "jsoncompacteachrow": "application/x-ndjson; charset=UTF-8",
    "jsoneachrow": "application/x-ndjson; charset=UTF-8",
    "jsonlines": "application/x-ndjson; charset=UTF-8",
    "ndjson": "application/x-ndjson; charset=UTF-8",
    "native": "application/octet-stream",
    "arrow": "application/octet-stream",
    "arrowstream": "application/octet-stream",
    "orc": "application/octet-stream",
    "parquet": "application/octet-stream",
    "rowbinary": "application/octet-stream",
    "rowbinarywithnames": "application/octet-stream",
    "rowbinarywithnamesandtypes": "application/octet-stream",
    "tabseparated": "text/tab-separated-values; charset=UTF-8",
    "tabseparatedwithnames": "text/tab-separated-values; charset=UTF-8",
    "tabseparatedwithnamesandtypes": "text/tab-separated-values; charset=UTF-8",
    "tsv": "text/tab-separated-values; charset=UTF-8",
    "tsvwithnames": "text/tab-separated-values; charset=UTF-8",
    "tsvwithnamesandtypes": "text/tab-separated-values; charset=UTF-8",
    "xml": "application/xml; charset=UTF-8",
}
PLAIN_TEXT = "text/plain; charset=UTF-8"
# The formats that have a place for an error after their rows: what it replaces at the end of a document, and how.
_JSON_END = ("\n}", ',\n\n\t"exception": %s\n}\n')
_EXCEPTION_ENDS = {
    **dict.fromkeys(("json", "jsoncompact", "jsonstrings", "jsoncompactstrings"), _JSON_END),
    **dict.fromkeys(("jsoneachrow", "jsonlines", "ndjson", "jsonstringseachrow"), ("", '{"exception": %s}\n')),
    **dict.fromkeys(("jsoncompacteachrow", "jsoncompactstringseachrow"), ("", "[%s]\n")),
    "xml": ("</result>", "\t<exception>%s</exception>\n</result>\n"),
}


def content_type(format: str) -> str:
    """Return the Content-Type of a format."""
    return _CONTENT_TYPES.get(format.lower(), PLAIN_TEXT)


def _end_with_exception(format: str, end: bytes, text: str) -> bytes | None:
    """Return the end of a document with an exception in it; None if its format has no place for one."""
    mark, template = _EXCEPTION_ENDS.get(format.lower(), ("", ""))
    place = end.rfind(mark.encode())
    if place < 0 or not template:
        return None
    quoted = escape(text) if template.startswith("\t<") else json.dumps(text, ensure_ascii=False)
    return end[:place] + (template % quoted).encode("utf-8", "surrogateescape")


class Response:
    """The answer to one request, written piece by piece and ended by ``finish`` or ``fail``."""

    def __init__(
        self, send: Callable[[bytes | memoryview | Piece, bool], None], with_body: bool, chunked: bool
    ) -> None:
        """Prepare an answer with status 200; without ``chunked`` (HTTP/1.0) closing the connection ends a long body.

        ``send`` receives whether more data follows at once.
        """
        self._send = send
        self._tag = "".join(random.choices(string.ascii_lowercase, k=_TAG_LETTERS))
        self.headers = {"X-ClickHouse-Exception-Tag": self._tag}
        self.count: Callable[[], dict[str, str]] = dict  # the headers that are known only when the head is sent
        self.fails_in = ""  # the format in which an error is written, if it has a place for it
        self._status = 200
        self._with_body = with_body
        self._chunked = chunked
        self._buffer = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115 (closed by abandon)
        self.limit: int | None = BUFFER_BYTES  # held back before the answer begins; None: until the query has ended
        self.encoder: Encoder | None = None  # compresses the body
        self._begun = False
        self._written = False  # whether any data was written, before encoding
        self._begins: float | None = None  # monotonic seconds, after which held-back data no longer wait

    def write(self, data: bytes | memoryview | Piece) -> None:
        """Add to the body."""
        if isinstance(data, Piece):
            if self._passes_on(data):
                self._send_piece(data)
                return
            data = data.read()
        self._written |= bool(data)
        self._write_encoded(self.encoder.compress(data) if self.encoder else data)

    def _passes_on(self, piece: Piece) -> bool:
        """Return whether a piece can be sent unchanged; send the head now if the piece would fill the buffer."""
        if self.encoder or self.limit is None:
            return False
        if not self._begun and self._buffer.tell() + len(piece) >= self.limit:
            self._begin()
        return self._begun

    def _write_encoded(self, data: bytes | memoryview) -> None:
        if self._begun:
            self._send_piece(data)
            return
        self._buffer.write(data)
        if self.limit is None or not self._written:
            return
        self._begins = self._begins or time.monotonic() + _HOLD_SECONDS
        if self._buffer.tell() > self.limit or time.monotonic() > self._begins:
            self._begin()

    def _begin(self) -> None:
        """Send the head and the held-back data; from now on the status is 200."""
        self._begun = True
        if self._chunked:
            self.headers["Transfer-Encoding"] = "chunked"
        else:
            self.headers["Connection"] = "close"
        self._send_head(self._status)
        self._send_buffer(self._send_piece)

    def _send_buffer(self, send: Callable[[bytes], None]) -> None:
        self._buffer.seek(0)
        while piece := self._buffer.read(_PIECE_BYTES):
            send(piece)
        self._buffer.close()

    def _send_piece(self, data: bytes | memoryview | Piece) -> None:
        if not data or not self._with_body:
            return
        if not self._chunked:
            self._send(data, False)
        elif len(data) < _COPIED_BYTES:
            self._send(b"%x\r\n" % len(data) + (data.read() if isinstance(data, Piece) else data) + b"\r\n", False)
        else:
            self._send(b"%x\r\n" % len(data), True)
            self._send(data, False)
            self._send(b"\r\n", True)

    def _send_head(self, status: int, extra: bytes = b"") -> None:
        self.headers |= self.count()
        lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}"]
        lines += [f"{name}: {_one_line(value)}" for name, value in self.headers.items()]
        self._send("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + extra, False)

    def finish(self) -> None:
        """End the body; a short body is sent in one piece with its Content-Length."""
        if self.encoder and self._written:
            self._write_encoded(self.encoder.flush())
        elif self.encoder:  # as on a server, an empty body is not compressed
            self.headers.pop("Content-Encoding", None)
        if self._begun:
            if self._chunked and self._with_body:
                self._send(b"0\r\n\r\n", False)
            return
        size = self._buffer.tell()
        self.headers["Content-Length"] = str(size)
        if size <= BUFFER_BYTES:
            self._buffer.seek(0)
            self._send_head(self._status, self._buffer.read() if self._with_body else b"")
            self._buffer.close()
        else:
            self._send_head(self._status)
            if self._with_body:
                self._send_buffer(lambda piece: self._send(piece, False))

    def fail(self, error: ClickHouseError, version: str) -> bool:
        """Report an error; return whether the connection can continue.

        Before the body's first byte, the answer is an error status with the message. Later, the answer ends with the
        marker of servers since 25.11. The connection then closes before the body's end, so a client that does not know
        the marker sees a broken transfer.
        """
        text = f"{error} (version {version})"
        end = _end_with_exception(self.fails_in, error.rest, text)
        if end is not None and (self._written or error.rest):
            self._status = http_status(error.code)
            self.headers["X-ClickHouse-Exception-Code"] = str(error.code)
            self.write(end)
            self.finish()
            return True
        if not self._begun:
            self._buffer.close()
            body = (text + "\n").encode("utf-8", "surrogateescape")
            self.headers.pop("Content-Encoding", None)
            self.headers["Content-Type"] = PLAIN_TEXT
            self.headers["Content-Length"] = str(len(body))
            self.headers["X-ClickHouse-Exception-Code"] = str(error.code)
            self._send_head(http_status(error.code), body if self._with_body else b"")
            return True
        size = len(text.encode("utf-8", "surrogateescape")) + 1
        marker = f"\r\n__exception__\r\n{self._tag}\r\n{text}\n{size} {self._tag}\r\n__exception__\r\n"
        data = marker.encode("utf-8", "surrogateescape")
        with contextlib.suppress(ConnectionError):
            self._send_piece(b"".join((self.encoder.compress(data), self.encoder.flush())) if self.encoder else data)
        return False

    def not_found(self, target: str) -> None:
        """Answer that the target does not exist."""
        self._buffer.close()
        body = f"There is no handle {target}\n\nUse / or /ping for health checks.\n".encode("utf-8", "replace")
        self.headers |= {"Content-Type": PLAIN_TEXT, "Content-Length": str(len(body))}
        self._send_head(404, body if self._with_body else b"")

    def abandon(self) -> None:
        """Free the answer's resources when no client waits for it."""
        self._buffer.close()


def _one_line(value: str) -> str:
    """Keep a client's value from breaking out of its header."""
    return value.replace("\r", " ").replace("\n", " ")
