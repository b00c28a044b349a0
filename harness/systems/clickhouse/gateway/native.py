"""The native TCP protocol: one thread and one engine session per connection."""

import contextlib
import socket
import socketserver
import time
from collections.abc import Iterator

from . import packets, sql, transfer
from .arriving import ArrivingText
from .blocks import Block, UnknownTypeError, header_block
from .codecs import method_of_setting
from .errors import (
    INCORRECT_DATA,
    NOT_IMPLEMENTED,
    QUERY_WAS_CANCELLED,
    ClickHouseError,
    refusal,
)
from .pipes import write_all
from .server import LoopbackServer
from .wire import ProtocolError, Reader, TimedSocket

IDLE_SECONDS = 3600.0  # between queries (idle_connection_timeout of a server) and between a query's bytes
SEND_SECONDS = 300.0  # for a megabyte (send_timeout of a server)
_SEND_BYTES = 1 << 20


class OutOfStep(Exception):
    """The rest of the client's data can no longer be parsed, so the connection must end."""


class NativeConnection(socketserver.BaseRequestHandler):
    """One client."""

    server: LoopbackServer
    request: socket.socket

    def setup(self) -> None:
        """Prepare the socket."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = TimedSocket(self.request, IDLE_SECONDS)
        self.reader = Reader(self.input.receive)
        self.compression_method: int | None = None

    def handle(self) -> None:
        """Greet the client and serve its queries until it leaves."""
        with contextlib.suppress(ConnectionError, EOFError, TimeoutError, ProtocolError):
            self.input.deadline = time.monotonic() + self.server.greeting_seconds
            greeting = packets.read_hello(self.reader)
            self.input.deadline = None
            try:
                self.server.users.check(greeting.user, greeting.password)
                if greeting.revision < packets.REVISION:
                    wanted = packets.REVISION
                    raise refusal(NOT_IMPLEMENTED, f"client revision {greeting.revision}: expected at least {wanted}")
                self.session = self.server.engine.session(greeting.database)
            except ClickHouseError as error:
                self._send(packets.exception(error))
                return
            with contextlib.closing(self.session), contextlib.suppress(OutOfStep):
                self._send(packets.hello(self.server.engine.version, self.server.engine.timezone))
                self._serve()

    def _serve(self) -> None:
        while True:
            packet = self.reader.varint()
            if packet == packets.CLIENT_PING:
                self._send(packets.PONG)
            elif packet == packets.CLIENT_QUERY:
                self._query()
            elif packet == packets.CLIENT_TABLES_STATUS:
                tables = packets.read_tables(self.reader)
                self._send(packets.tables_status([table for table in tables if self.session.has_table(*table)]))
            elif packet != packets.CLIENT_CANCEL:  # a Cancel here arrived after the end of its query
                raise ProtocolError(
                    f"expected a Query, Ping, Cancel or TablesStatusRequest packet, found number {packet}"
                )

    def _send(self, *pieces: bytes | memoryview) -> None:
        self.request.settimeout(SEND_SECONDS)
        for piece in pieces:
            view = memoryview(piece)
            for start in range(0, len(piece), _SEND_BYTES):
                self.request.sendall(view[start : start + _SEND_BYTES])

    # ------------------------------------------------------------ one query

    def _query(self) -> None:
        """Read and run one query; answer an error with an Exception packet and keep the connection."""
        self.session.begin()
        head = packets.read_query_head(self.reader)
        self.compressed = head.compressed
        arriving = ArrivingText(self.reader, head.text_bytes, self.read_data)
        try:
            with self._settings(head) as self.compression_method:
                self._run(arriving)
        except ClickHouseError as error:
            arriving.drain()
            self._send(packets.exception(error))
        except (UnknownTypeError, ProtocolError) as error:
            self._send(packets.exception(refusal(INCORRECT_DATA, str(error))))
            raise OutOfStep from error
        else:
            self._send(packets.END_OF_STREAM)

    @contextlib.contextmanager
    def _settings(self, head: packets.QueryHead) -> Iterator[int | None]:
        """Apply a query's settings for its duration, and yield the compression method of its answer, or None."""
        applied = self.session.set_for_query(head.settings, head.important_settings)
        try:
            yield method_of_setting(self.session.compression_method(head.settings)) if head.compressed else None
        finally:
            self.session.restore(applied)

    def _run(self, arriving: ArrivingText) -> None:
        beginning = arriving.beginning
        if sql.first_word(beginning) == b"INSERT":
            insert = sql.parse_insert(beginning)
            if insert is not None:
                if arriving.has_payload(insert.payload_start):
                    self._insert(insert, insert.format, arriving.payload(insert.payload_start))
                else:
                    arriving.finish()
                    self._insert_blocks(insert)
                return  # no Progress packet: asynch treats the first packet after an INSERT as its end
        query = sql.parse_query(sql.without_outfile(arriving.whole()))
        arriving.finish()
        with self.server.watch.watching(self.request, _left_or_cancelled, self.session.stop):
            if query.has_result:
                self._answer(query)
            else:
                self.session.run(query)

    def _insert_blocks(self, insert: sql.InsertHead) -> None:
        """Send the columns to fill, and insert the blocks that arrive."""
        columns = self.session.describe(f"SELECT {insert.columns} FROM {insert.table}")
        blocks = self._arriving_blocks()
        self._send(*packets.data(header_block(columns), self.compression_method))
        try:
            self._insert(insert, "Native", blocks)
        except ClickHouseError:
            for _ in blocks:  # the client sends everything before it reads an answer
                pass
            raise

    def _insert(self, insert: sql.InsertHead, format: str, chunks: Iterator[bytes | memoryview]) -> None:
        transfer.insert(self.session, insert, format, lambda pipe: write_all(pipe, chunks))

    def _arriving_blocks(self) -> Iterator[bytes | memoryview]:
        while True:
            block = self.read_data()[1]
            if not block.columns:
                return
            if block.rows:
                yield block.data

    def read_data(self) -> tuple[str, Block]:
        """Read a Data packet. If its end cannot be found, tell the client why and raise OutOfStep."""
        try:
            return packets.read_data(self.reader, self.compressed)
        except ClickHouseError as error:
            self._send(packets.exception(error))
            raise OutOfStep from error

    def _answer(self, query: sql.Query) -> None:
        """Send a result: first its columns without rows, then its blocks."""
        rows = blocks = size = 0
        with contextlib.closing(transfer.stream_blocks(self.session, query)) as stream:
            try:
                for block in stream:
                    if not blocks:
                        self._send(*packets.data(header_block(block.columns), self.compression_method))
                    if block.rows:
                        self._send(*packets.data(block.data, self.compression_method))
                    rows, blocks, size = rows + block.rows, blocks + 1, size + len(block.data)
            except ClickHouseError as error:
                if error.code != QUERY_WAS_CANCELLED or not self.session.stopped:
                    raise
        self._send(packets.progress(rows, size) + packets.profile_info(rows, blocks, size))


def _left_or_cancelled(first: bytes) -> bool:
    return first in (b"", bytes((packets.CLIENT_CANCEL,)))
