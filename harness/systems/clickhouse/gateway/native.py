"""The native TCP protocol: one thread and one engine session per connection."""

import contextlib
import socket
import socketserver
import time
from collections.abc import Callable, Iterator
from functools import partial

from . import packets, sql, transfer
from .blocks import Block, BlockColumn, UnknownTypeError, header_block, with_columns
from .codecs import method_of_setting
from .engine import Progress
from .errors import ClickHouseError, Code, refusal
from .server import LoopbackServer
from .sql import HEAD_BYTES, MAX_QUERY_BYTES
from .transfer import ExternalTables
from .wire import ProtocolError, Reader, TimedSocket, chunk_size, send, without_chunks, write_all

# A query's text while it arrives over the native protocol; it may include hundreds of megabytes of inline data.

_PIECE_BYTES = 1 << 20


class ArrivingText:
    """A query's text of a known length, then its parameters, then the Data packets of its external tables."""

    def __init__(
        self,
        reader: Reader,
        size: int,
        read_parameters: Callable[[], dict[str, str]],
        read_data: Callable[[], tuple[str, Block]],
        add_table: Callable[[str, Block], None],
    ) -> None:
        """Take the beginning of the text from the reader.

        ``read_parameters`` reads all parameters, ``read_data`` one Data packet. ``add_table`` receives each block of an
        external table, and its first error ends the query.
        """
        self._reader = reader
        self._read_parameters, self._read_data, self._add_table = read_parameters, read_data, add_table
        self._left = size
        self._drained = False
        self.parameters: dict[str, str] = {}  # none before the whole text has arrived
        self.beginning = self._piece(HEAD_BYTES)

    def _piece(self, most: int) -> bytes:
        data = self._reader.exact(min(self._left, most))
        self._left -= len(data)
        if not self._left:
            self.parameters = self._read_parameters()
        return data

    def whole(self) -> bytes:
        """Return the whole text. Raises ClickHouseError with code 229 if it is too long for a statement."""
        if self._left > MAX_QUERY_BYTES:
            size = len(self.beginning) + self._left
            raise refusal(Code.QUERY_IS_TOO_LARGE, f"Query of {size} bytes: longer than {MAX_QUERY_BYTES} bytes")
        return self.beginning + (self._piece(self._left) if self._left else b"")

    def has_payload(self, start: int) -> bool:
        """Return whether anything but white space and semicolons follows an offset."""
        return self._left > 0 or bool(self.beginning[start:].strip(b" \t\r\n;"))

    def payload(self, start: int) -> Iterator[bytes]:
        """Yield the text after an offset while it arrives, then read the packets that follow it.

        Raises ClickHouseError for an external table.
        """
        yield self.beginning[start:]
        while self._left:
            yield self._piece(_PIECE_BYTES)
        if self._next_data() is not None:
            raise refusal(Code.NOT_IMPLEMENTED, "External tables are not supported with inline data")

    def finish(self) -> None:
        """Read to the end of the query's packets, and make its external tables. Raises ClickHouseError."""
        while (packet := self._next_data()) is not None:
            self._add_table(*packet)

    def drain(self) -> None:
        """Read to the end of the query's packets and ignore them."""
        while self._left:
            self._piece(_PIECE_BYTES)
        while self._next_data() is not None:
            pass

    def _next_data(self) -> tuple[str, Block] | None:
        if self._drained:
            return None
        name, block = self._read_data()
        self._drained = not (name or block.columns)
        return None if self._drained else (name, block)


_REPORT_SECONDS = 0.1  # between two reports of progress (interactive_delay of a server)


class OutOfStep(Exception):
    """The rest of the client's data can no longer be parsed, so the connection must end."""


class NativeConnection(socketserver.BaseRequestHandler):
    """One client."""

    server: LoopbackServer
    request: socket.socket

    def setup(self) -> None:
        """Prepare the socket."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = TimedSocket(self.request)
        self.reader = Reader(self.input.receive)
        self.compression_method: int | None = None
        self.sends_chunks = False
        self.ends_query = (b"", bytes((packets.CLIENT_CANCEL,)))  # the client's next byte then

    def handle(self) -> None:
        """Greet the client and serve its queries until it leaves."""
        with contextlib.suppress(ConnectionError, EOFError, TimeoutError, ProtocolError):
            self.input.deadline = time.monotonic() + self.server.greeting_seconds
            greeting = packets.read_hello(self.reader)
            if greeting is None:
                port = self.server.server_address[1]
                self._send(b"HTTP/1.0 400 Bad Request\r\n\r\nPort %d is for clickhouse-client program\r\n" % port)
                return
            try:
                self.server.users.check(greeting.user, greeting.password)
                self.revision = min(greeting.revision, packets.REVISION)
                if self.revision < packets.OLDEST_REVISION:
                    wanted = packets.OLDEST_REVISION
                    raise refusal(
                        Code.NOT_IMPLEMENTED,
                        f"client revision {greeting.revision} is too old; update the client: {wanted} or newer",
                    )
                self.session = self.server.engine.session(greeting.database)
            except ClickHouseError as error:
                self._send(packets.exception(error))
                return
            with contextlib.closing(self.session), contextlib.suppress(OutOfStep):
                self._send(packets.hello(self.server.engine.version, self.server.engine.timezone, self.revision))
                self._take_chunks(*packets.read_addendum(self.reader, self.revision))
                self.input.deadline = None
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
                    f"packet {packet} is not known here: send a Query, Ping, Cancel or TablesStatusRequest"
                )

    def _take_chunks(self, from_client: bool, to_client: bool) -> None:
        """Go on in chunks, as the client asked."""
        self.sends_chunks = to_client
        if from_client:
            self.reader = Reader(without_chunks(self.reader).__next__)
            self.ends_query = (b"", b"\x01")  # a Cancel is a chunk of one byte

    def _send(self, *pieces: bytes | memoryview) -> None:
        """Send one packet."""
        if self.sends_chunks:
            pieces = (chunk_size(sum(map(len, pieces))), *pieces, chunk_size(0))
        for piece in pieces:
            send(self.request, piece)

    # ------------------------------------------------------------ one query

    def _query(self) -> None:
        """Read and run one query; answer an error with an Exception packet and keep the connection."""
        self.session.begin()
        head = packets.read_query_head(self.reader, self.revision, self.session.is_number)
        self.compressed = head.compressed
        # As on a server: clickhouse-driver waits for events before it sends more; remote() reads none before its end.
        self.sends_events = head.initial and self.revision >= packets.Since.EVENTS_OF_INSERT
        tables = ExternalTables(self.session)
        read_parameters = partial(packets.read_parameters, self.reader, self.revision)
        arriving = ArrivingText(self.reader, head.text_bytes, read_parameters, self.read_data, tables.add_block)
        try:
            with contextlib.closing(tables), self._settings(head) as self.compression_method:
                self._run(arriving, head)
        except ClickHouseError as error:
            arriving.drain()
            self._send(packets.exception(error))
        except (UnknownTypeError, ProtocolError) as error:
            self._send(packets.exception(refusal(Code.INCORRECT_DATA, str(error))))
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

    def _run(self, arriving: ArrivingText, head: packets.QueryHead) -> None:
        beginning = arriving.beginning
        if sql.first_word(beginning) in sql.WORDS_BEFORE_INSERT:
            insert = sql.parse_insert(beginning)
            if insert is not None:
                if arriving.has_payload(insert.payload_start):
                    self._insert(insert, insert.format, arriving.payload(insert.payload_start), arriving.parameters)
                else:
                    arriving.finish()
                    self._insert_blocks(insert, arriving.parameters)
                return  # no Progress packet: asynch treats the first packet after an INSERT as its end
        query = sql.parse_query(sql.without_outfile(arriving.whole()))
        arriving.finish()
        if self.revision >= packets.Since.TIME_ZONE_UPDATES and (timezone := head.settings.get("session_timezone")):
            self._send(packets.time_zone_update(timezone))
        with self.server.watch.watching(self.request, self.ends_query.__contains__, self.session.stop):
            if query.has_result:
                self._answer(query, arriving.parameters)
            else:
                self.session.run(query, arriving.parameters)

    def _insert_blocks(self, insert: sql.InsertHead, parameters: dict[str, str]) -> None:
        """Send the columns to fill, and insert the blocks that arrive."""
        source = insert.table if insert.structure is None else f"input({insert.structure})"
        columns = self.session.describe(f"SELECT {insert.columns} FROM {source}", parameters)
        blocks = self._arriving_blocks()
        self._send(*packets.data(header_block(columns, self.revision), self.compression_method))
        try:
            self._insert(insert, "Native", blocks, parameters)
        except ClickHouseError:
            for _ in blocks:  # the client sends everything before it reads an answer
                pass
            raise

    def _insert(
        self, insert: sql.InsertHead, format: str, chunks: Iterator[bytes | memoryview], parameters: dict[str, str]
    ) -> None:
        transfer.insert(self.session, insert, format, lambda pipe: write_all(pipe, chunks), parameters)

    def _arriving_blocks(self) -> Iterator[bytes | memoryview]:
        while True:
            block = self.read_data()[1]
            if self.sends_events:
                self._send(packets.PROFILE_EVENTS)
            if not block.columns:
                return
            if block.rows:
                yield block.data

    def read_data(self) -> tuple[str, Block]:
        """Read a Data packet. If its end cannot be found, tell the client why and raise OutOfStep."""
        try:
            return packets.read_data(self.reader, self.compressed, self.revision)
        except ClickHouseError as error:
            self._send(packets.exception(error))
            raise OutOfStep from error

    def _answer(self, query: sql.Query, parameters: dict[str, str]) -> None:
        """Send a result: first its columns without rows, then its blocks, and the counts between and after them."""
        rows = blocks = size = 0
        columns: tuple[BlockColumn, ...] = ()
        told, next_report = Progress(), time.monotonic() + _REPORT_SECONDS
        with contextlib.closing(transfer.stream_blocks(self.session, query, self.revision, parameters)) as stream:
            try:
                for block in stream:
                    if not blocks:
                        columns = block.columns
                        header = header_block(columns, self.revision)
                        self._send(*packets.data(header, self.compression_method))
                    if block.rows:
                        self._send(*packets.data(block.data, self.compression_method))
                    rows, blocks, size = rows + block.rows, blocks + 1, size + len(block.data)
                    if time.monotonic() >= next_report:
                        told, next_report = self._report(told), time.monotonic() + _REPORT_SECONDS
            except ClickHouseError as error:
                if error.code != Code.QUERY_WAS_CANCELLED or not self.session.stopped:
                    raise
        self._report(told)
        if not self.session.stopped:
            self._send_totals(query, columns, parameters)
        self._send(packets.profile_info(rows, blocks, size, self.revision))
        self._send(packets.progress(Progress(), self.revision))

    def _send_totals(self, query: sql.Query, columns: tuple[BlockColumn, ...], parameters: dict[str, str]) -> None:
        totals, extremes = transfer.totals_and_extremes(self.session, query, columns, parameters)
        for packet, found in ((packets.TOTALS, totals), (packets.EXTREMES, extremes)):
            for block in found:
                data = with_columns(block, columns, self.revision).data
                self._send(*packets.data(data, self.compression_method, packet))

    def _report(self, told: Progress) -> Progress:
        """Send the client the engine's counts since the last report; return all that it has counted."""
        counted = self.session.progress
        self._send(packets.progress(counted.since(told), self.revision))
        return counted
