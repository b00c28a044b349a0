"""The native protocol's packets at revision 54429: parse the client's, build the server's.

54429 is the first revision with settings as strings. Later revisions add OpenTelemetry, sparse columns, a second
handshake and chunked packets, which the embedded engine could not use.
"""

import struct
from dataclasses import dataclass

from .blocks import Block, read_block
from .codecs import compress_frames, read_frame
from .errors import UNEXPECTED_PACKET_FROM_CLIENT, ClickHouseError, refusal
from .wire import ProtocolError, Reader, string, varint

REVISION = 54429

CLIENT_HELLO, CLIENT_QUERY, CLIENT_DATA, CLIENT_CANCEL, CLIENT_PING, CLIENT_TABLES_STATUS = 0, 1, 2, 3, 4, 5
_CLIENT_SCALAR = 7
_HELLO, _DATA, _EXCEPTION, _PROGRESS, _PROFILE_INFO = b"\x00", b"\x01", b"\x02", b"\x03", b"\x06"
_TABLES_STATUS = b"\x09"
PONG, END_OF_STREAM = b"\x04", b"\x05"

_BLOCK_INFO = b"\x01\x00\x02\xff\xff\xff\xff\x00"  # field 1: no overflow; field 2: bucket -1; end
_BLOCK_INFO_WIDTHS = {1: 1, 2: 4}
_SETTING_IS_IMPORTANT = 0x01
_OVER_TCP, _OVER_HTTP = 1, 2
MAX_HANDSHAKE_TEXT_BYTES = 1 << 16
_MAX_SETTINGS = 10_000
_MAX_TABLES = 10_000
_MAX_SETTING_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Hello:
    """The client's greeting."""

    client: str
    revision: int
    database: str
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Hello(client={self.client!r}, user={self.user!r})"


@dataclass(frozen=True, slots=True)
class QueryHead:
    """The part of a Query packet before the query's text."""

    query_id: str
    settings: dict[str, str]
    important_settings: frozenset[str]  # a server ignores an unknown setting unless it is marked as important
    compressed: bool
    text_bytes: int


def read_hello(reader: Reader) -> Hello:
    """Read a client's greeting, with its packet number. Raises ProtocolError for another packet."""
    if reader.byte() != CLIENT_HELLO:
        raise ProtocolError("expected a ClickHouse native handshake")
    limit = MAX_HANDSHAKE_TEXT_BYTES
    client = reader.text(limit)
    reader.varint(), reader.varint()
    revision = reader.varint()
    return Hello(client, revision, reader.text(limit), reader.text(limit), reader.text(limit))


def read_query_head(reader: Reader) -> QueryHead:
    """Read a Query packet up to the length of its text."""
    limit = MAX_HANDSHAKE_TEXT_BYTES
    query_id = reader.text(limit)
    if reader.byte():  # the query's origin; 0 means that no client info follows
        _skip_client_info(reader)
    settings: dict[str, str] = {}
    important = set()
    while name := reader.text(limit):
        if len(settings) >= _MAX_SETTINGS:
            raise ProtocolError(f"expected at most {_MAX_SETTINGS} settings with a query")
        if reader.varint() & _SETTING_IS_IMPORTANT:
            important.add(name)
        settings[name] = reader.text(_MAX_SETTING_BYTES)
    reader.varint()  # the processing stage: always complete
    compressed = bool(reader.varint())
    return QueryHead(query_id, settings, frozenset(important), compressed, reader.varint())


def _skip_client_info(reader: Reader) -> None:
    """Skip the client info; another server (remote()) describes its own client."""
    limit = MAX_HANDSHAKE_TEXT_BYTES
    for _ in range(3):  # initial user, query id and address
        reader.text(limit)
    interface = reader.byte()
    if interface == _OVER_TCP:
        for _ in range(3):  # operating system user, host, client name
            reader.text(limit)
        for _ in range(3):  # client version and revision
            reader.varint()
    elif interface == _OVER_HTTP:
        reader.skip(1)  # method
        reader.text(limit)  # user agent
    reader.text(limit)  # quota key
    if interface == _OVER_TCP:
        reader.varint()  # client patch version


def read_tables(reader: Reader) -> list[tuple[str, str]]:
    """Read the database and name of each table whose state a server requests before remote() sends its query."""
    if (number := reader.varint()) > _MAX_TABLES:
        raise ProtocolError(f"expected at most {_MAX_TABLES} tables to tell the state of")
    limit = MAX_HANDSHAKE_TEXT_BYTES
    return [(reader.text(limit), reader.text(limit)) for _ in range(number)]


def read_data(reader: Reader, compressed: bool) -> tuple[str, Block]:
    """Read a Data packet with its packet number; returns the name of an external table ("" for none) and the block.

    Skips scalars, which another server's remote() sends with its query; a query that needs one fails. Raises
    ClickHouseError for another packet, and the exceptions of ``read_frame`` and ``read_block``.
    """
    while (packet := reader.varint()) == _CLIENT_SCALAR:
        _read_named_block(reader, compressed)
    if packet == CLIENT_CANCEL:
        raise refusal(UNEXPECTED_PACKET_FROM_CLIENT, "The client cancelled the query while it was to send data")
    if packet != CLIENT_DATA:
        raise refusal(UNEXPECTED_PACKET_FROM_CLIENT, f"Unexpected packet {packet} from client: expected Data")
    return _read_named_block(reader, compressed)


def _read_named_block(reader: Reader, compressed: bool) -> tuple[str, Block]:
    name = reader.text(MAX_HANDSHAKE_TEXT_BYTES)
    body = Reader(lambda: read_frame(reader)) if compressed else reader
    while field := body.varint():
        if field not in _BLOCK_INFO_WIDTHS:
            raise ProtocolError(f"expected a field of a block's info, found number {field}")
        body.skip(_BLOCK_INFO_WIDTHS[field])
    return name, read_block(body)


def hello(version: str, timezone: str) -> bytes:
    """Build the server's greeting; the version is like 26.9.2.1."""
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    numbers = varint(major) + varint(minor) + varint(REVISION)
    return _HELLO + string("ClickHouse") + numbers + string(timezone) + string("chdb") + varint(patch)


def data(block: bytes | memoryview, compression_method: int | None) -> tuple[bytes, bytes | memoryview]:
    """Build a Data packet around a block, in two pieces so that a large block need not be copied."""
    if compression_method is None:
        return _DATA + b"\x00" + _BLOCK_INFO, block
    return _DATA + b"\x00", compress_frames(_BLOCK_INFO + block, compression_method)


def tables_status(existing: list[tuple[str, str]]) -> bytes:
    """Build a TablesStatusResponse packet: the tables that exist, none of them replicated."""
    states = (string(database) + string(table) + b"\x00" for database, table in existing)
    return _TABLES_STATUS + varint(len(existing)) + b"".join(states)


def exception(error: ClickHouseError) -> bytes:
    """Build an Exception packet without a nested one."""
    text = string("DB::Exception: " + error.text)
    return _EXCEPTION + struct.pack("<i", error.code) + string("DB::Exception") + text + string("") + b"\x00"


def progress(rows: int, bytes: int) -> bytes:
    """Build a Progress packet with the result's size; the total and the written counts stay 0."""
    return _PROGRESS + varint(rows) + varint(bytes) + b"\x00\x00\x00"


def profile_info(rows: int, blocks: int, bytes: int) -> bytes:
    """Build a ProfileInfo packet: the result's size, without a count for LIMIT."""
    return _PROFILE_INFO + varint(rows) + varint(blocks) + varint(bytes) + b"\x00\x00\x00"
