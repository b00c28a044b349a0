"""The native protocol's packets at revisions from 54058 to 54479: parse the client's, build the server's.

Client and server use the lower of their revisions. After 54479 follow more layouts of columns, which the engine's
Native format cannot read: replicated columns, sparse Nullable columns, and strings with their sizes apart.
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from .blocks import BLOCK_INFO, Block, read_block
from .codecs import compress_frames, read_frame
from .engine import Progress
from .errors import ClickHouseError, Code, refusal
from .wire import ProtocolError, Reader, string, varint

REVISION = 54479
OLDEST_REVISION = 54058
# The first revision with each part of a packet: ClickHouse's src/Core/ProtocolDefines.h.
Since = IntEnum(
    "Since",
    {
        "QUOTA_KEY": 54060,
        "DISPLAY_NAME": 54372,
        "PATCH_VERSION": 54401,
        "WRITTEN": 54420,
        "SETTINGS_AS_STRINGS": 54429,
        "INTERSERVER_SECRET": 54441,
        "OPENTELEMETRY": 54442,
        "FORWARDED_FOR": 54443,
        "REFERER": 54447,
        "DISTRIBUTED_DEPTH": 54448,
        "START_TIME": 54449,
        "PARALLEL_REPLICAS": 54453,
        "EVENTS_OF_INSERT": 54456,
        "ADDENDUM": 54458,
        "PARAMETERS": 54459,
        "ELAPSED": 54460,
        "PASSWORD_RULES": 54461,
        "NONCE": 54462,
        "TOTAL_BYTES": 54463,
        "TIME_ZONE_UPDATES": 54464,
        "ROWS_BEFORE_AGGREGATION": 54469,
        "CHUNKS": 54470,
        "PARALLEL_REPLICAS_VERSION": 54471,
        "ROLES": 54472,
        "SETTINGS_OF_SERVER": 54474,
        "LINE_NUMBERS": 54475,
        "JWT": 54476,
        "QUERY_PLAN_VERSION": 54477,
        "CLUSTER_FUNCTION_VERSION": 54479,
    },
)

CLIENT_HELLO, CLIENT_QUERY, CLIENT_DATA, CLIENT_CANCEL, CLIENT_PING, CLIENT_TABLES_STATUS = 0, 1, 2, 3, 4, 5
_CLIENT_SCALAR = 7
_HELLO, _EXCEPTION, _PROGRESS, _PROFILE_INFO = b"\x00", b"\x02", b"\x03", b"\x06"
DATA, TOTALS, EXTREMES = b"\x01", b"\x07", b"\x08"
_TABLES_STATUS, _TIME_ZONE_UPDATE = b"\x09", b"\x11"
PROFILE_EVENTS = b"\x0e\x00" + BLOCK_INFO + b"\x00\x00"  # without any: the gateway counts none
PONG, END_OF_STREAM = b"\x04", b"\x05"

_BLOCK_INFO_WIDTHS = {1: 1, 2: 4}
_SETTING_IS_IMPORTANT = 0x01
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"0": "\0", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_INITIAL = 1
_TEXT, _NUMBER = -1, -2  # parts of a packet
_OVER_TCP, _OVER_HTTP = 1, 2
_CLIENTS = {  # how each describes itself
    _OVER_TCP: [*3 * [(0, _TEXT)], *3 * [(0, _NUMBER)]],  # system user, host, name; version and revision
    _OVER_HTTP: [(0, 1), (0, _TEXT), (Since.FORWARDED_FOR, _TEXT), (Since.REFERER, _TEXT)],  # method, user agent
}
MAX_HANDSHAKE_TEXT_BYTES = 1 << 16
_MAX_SETTINGS = 10_000
_MAX_TABLES = 10_000
_MAX_SETTING_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Hello:
    """The client's greeting."""

    revision: int
    database: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class QueryHead:
    """The part of a Query packet before the query's text."""

    initial: bool  # a client's own query, not one that another server sends for its client (remote())
    settings: dict[str, str]
    important_settings: frozenset[str]  # a server ignores an unknown setting unless it is marked as important
    compressed: bool
    text_bytes: int


def read_hello(reader: Reader) -> Hello | None:
    """Read a client's greeting; return None for a request of HTTP. Raises ProtocolError for anything else."""
    packet = reader.byte()
    if packet in b"GP":  # GET, POST
        return None
    if packet != CLIENT_HELLO:
        raise ProtocolError("the connection does not begin with a ClickHouse native handshake")
    limit = MAX_HANDSHAKE_TEXT_BYTES
    reader.text(limit)  # the client's name
    reader.varint(), reader.varint()
    revision = reader.varint()
    return Hello(revision, reader.text(limit), reader.text(limit), reader.text(limit))


def read_query_head(reader: Reader, revision: int, is_number: Callable[[str], bool]) -> QueryHead:
    """Read a Query packet up to the length of its text.

    ``is_number`` says whether a setting is a number: old revisions send it as one.
    """
    reader.text(MAX_HANDSHAKE_TEXT_BYTES)  # the query's id
    if origin := reader.byte():  # 0 means that no client info follows
        _skip_client_info(reader, revision)
    settings, important = _read_settings(reader, None if revision >= Since.SETTINGS_AS_STRINGS else is_number)
    _skip(reader, revision, (Since.ROLES, _TEXT), (Since.INTERSERVER_SECRET, _TEXT), (0, _NUMBER))  # the stage
    compressed = bool(reader.varint())
    return QueryHead(origin == _INITIAL, settings, frozenset(important), compressed, reader.varint())


def _read_settings(reader: Reader, is_number: Callable[[str], bool] | None = None) -> tuple[dict[str, str], set[str]]:
    """Read names, flags and values up to an empty name; return the values, and the names marked as important.

    With `is_number` there are no flags, and some values are numbers.
    """
    settings: dict[str, str] = {}
    important = set()
    while name := reader.text(MAX_HANDSHAKE_TEXT_BYTES):
        if len(settings) >= _MAX_SETTINGS:
            raise ProtocolError(f"a query has more than {_MAX_SETTINGS} settings")
        if is_number is None and reader.varint() & _SETTING_IS_IMPORTANT:
            important.add(name)
        as_number = is_number is not None and is_number(name)
        settings[name] = str(reader.varint()) if as_number else reader.text(_MAX_SETTING_BYTES)
    return settings, important


def read_parameters(reader: Reader, revision: int) -> dict[str, str]:
    """Read the values for ``{name:Type}`` that follow a query's text; each is a quoted string."""
    if revision < Since.PARAMETERS:
        return {}
    return {name: _unquote(value) for name, value in _read_settings(reader)[0].items()}


def _unquote(value: str) -> str:
    """Return the value of a quoted string; anything else stays as it is."""
    if len(value) < 2 or value[0] != "'" or value[-1] != "'":
        return value
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), value[1:-1])


def _skip_client_info(reader: Reader, revision: int) -> None:
    """Skip the client info; another server (remote()) describes its own client."""
    _skip(reader, revision, *3 * [(0, _TEXT)], (Since.START_TIME, 8))  # initial user, query id and address
    interface = reader.byte()
    _skip(reader, revision, *_CLIENTS.get(interface, ()), (Since.QUOTA_KEY, _TEXT), (Since.DISTRIBUTED_DEPTH, _NUMBER))
    if interface == _OVER_TCP:
        _skip(reader, revision, (Since.PATCH_VERSION, _NUMBER))
    if revision >= Since.OPENTELEMETRY and reader.byte():
        _skip(reader, revision, (0, 24), (0, _TEXT), (0, 1))  # trace and span, state, flags
    _skip(reader, revision, *3 * [(Since.PARALLEL_REPLICAS, _NUMBER)], *2 * [(Since.LINE_NUMBERS, _NUMBER)])
    if revision >= Since.JWT and reader.byte():
        reader.text(MAX_HANDSHAKE_TEXT_BYTES)


def _skip(reader: Reader, revision: int, *parts: tuple[int, int]) -> None:
    """Skip the parts of a packet that a revision has: each a string, a number, or so many bytes."""
    for since, part in parts:
        if revision < since:
            continue
        if part == _TEXT:
            reader.text(MAX_HANDSHAKE_TEXT_BYTES)
        elif part == _NUMBER:
            reader.varint()
        else:
            reader.skip(part)


def read_tables(reader: Reader) -> list[tuple[str, str]]:
    """Read the database and name of each table whose state a server requests before remote() sends its query."""
    if (number := reader.varint()) > _MAX_TABLES:
        raise ProtocolError(f"a request asks for the state of more than {_MAX_TABLES} tables")
    limit = MAX_HANDSHAKE_TEXT_BYTES
    return [(reader.text(limit), reader.text(limit)) for _ in range(number)]


def read_data(reader: Reader, compressed: bool, revision: int) -> tuple[str, Block]:
    """Read a Data packet with its packet number; returns the name of an external table ("" for none) and the block.

    Skips scalars, which another server's remote() sends with its query; a query that needs one fails. Raises
    ClickHouseError for another packet, and the exceptions of ``read_frame`` and ``read_block``.
    """
    while (packet := reader.varint()) == _CLIENT_SCALAR:
        _read_named_block(reader, compressed, revision)
    if packet == CLIENT_CANCEL:
        raise refusal(Code.UNEXPECTED_PACKET_FROM_CLIENT, "The client cancelled the query while it was to send data")
    if packet != CLIENT_DATA:
        raise refusal(Code.UNEXPECTED_PACKET_FROM_CLIENT, f"Unexpected packet {packet} from client: send Data")
    return _read_named_block(reader, compressed, revision)


def _read_named_block(reader: Reader, compressed: bool, revision: int) -> tuple[str, Block]:
    name = reader.text(MAX_HANDSHAKE_TEXT_BYTES)
    body = Reader(lambda: read_frame(reader)) if compressed else reader
    while field := body.varint():
        if field not in _BLOCK_INFO_WIDTHS:
            raise ProtocolError(f"a block's info has an unknown field, number {field}")
        body.skip(_BLOCK_INFO_WIDTHS[field])
    return name, read_block(body, revision)


def hello(version: str, timezone: str, revision: int) -> bytes:
    """Build the server's greeting; the version is like 26.9.2.1."""
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    parts = (
        (0, _HELLO + string("ClickHouse") + varint(major) + varint(minor) + varint(REVISION)),
        (Since.PARALLEL_REPLICAS_VERSION, b"\x00"),
        (0, string(timezone)),
        (Since.DISPLAY_NAME, string("chdb")),
        (Since.PATCH_VERSION, varint(patch)),
        (Since.CHUNKS, 2 * string("notchunked_optional")),  # for sending and receiving
        (Since.PASSWORD_RULES, b"\x00"),
        (Since.NONCE, bytes(8)),
        (Since.SETTINGS_OF_SERVER, b"\x00"),
        (Since.QUERY_PLAN_VERSION, b"\x00"),
        (Since.CLUSTER_FUNCTION_VERSION, b"\x00"),
    )
    return b"".join(part for since, part in parts if revision >= since)


def read_addendum(reader: Reader, revision: int) -> tuple[bool, bool]:
    """Read the end of the client's greeting; return whether the client sends in chunks, and receives in chunks."""
    _skip(reader, revision, (Since.ADDENDUM, _TEXT))  # the quota key
    limit = MAX_HANDSHAKE_TEXT_BYTES
    in_chunks = [revision >= Since.CHUNKS and reader.text(limit).startswith("chunked") for _ in range(2)]
    _skip(reader, revision, (Since.PARALLEL_REPLICAS_VERSION, _NUMBER))
    return in_chunks[0], in_chunks[1]


def data(
    block: bytes | memoryview, compression_method: int | None, packet: bytes = DATA
) -> tuple[bytes, bytes | memoryview]:
    """Build a Data packet around a block, in two pieces so that a large block need not be copied."""
    if compression_method is None:
        return packet + b"\x00" + BLOCK_INFO, block
    return packet + b"\x00", compress_frames(BLOCK_INFO + block, compression_method)


def time_zone_update(timezone: str) -> bytes:
    """Build a TimezoneUpdate packet: the time zone of the columns that name none."""
    return _TIME_ZONE_UPDATE + string(timezone)


def tables_status(existing: list[tuple[str, str]]) -> bytes:
    """Build a TablesStatusResponse packet: the tables that exist, none of them replicated."""
    states = (string(database) + string(table) + b"\x00" for database, table in existing)
    return _TABLES_STATUS + varint(len(existing)) + b"".join(states)


def exception(error: ClickHouseError) -> bytes:
    """Build an Exception packet without a nested one."""
    text = string("DB::Exception: " + error.text)
    return _EXCEPTION + struct.pack("<i", error.code) + string("DB::Exception") + text + string("") + b"\x00"


def progress(counted: Progress, revision: int) -> bytes:
    """Build a Progress packet; a client adds up several packets."""
    numbers = (
        (0, counted.read_rows),
        (0, counted.read_bytes),
        (0, counted.total_rows_to_read),
        (Since.TOTAL_BYTES, 0),
        (Since.WRITTEN, counted.written_rows),
        (Since.WRITTEN, counted.written_bytes),
        (Since.ELAPSED, counted.elapsed_ns),
    )
    return _PROGRESS + b"".join(varint(number) for since, number in numbers if revision >= since)


def profile_info(rows: int, blocks: int, bytes: int, revision: int) -> bytes:
    """Build a ProfileInfo packet: the result's size, without counts before LIMIT and aggregation."""
    before_aggregation = b"\x00\x00" if revision >= Since.ROWS_BEFORE_AGGREGATION else b""
    return _PROFILE_INFO + varint(rows) + varint(blocks) + varint(bytes) + b"\x00\x00\x00" + before_aggregation
