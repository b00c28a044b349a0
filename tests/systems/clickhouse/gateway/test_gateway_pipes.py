"""Bytes between sockets and pipes: all of them, in order, with or without splice, and never for ever."""

import contextlib
import io
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from email.message import Message

import chdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.systems.clickhouse.gateway import blocks, http_request, pipes
from harness.systems.clickhouse.gateway.blocks import (
    UnknownTypeError,
    header_block,
    read_block,
    read_blocks,
    with_columns,
)
from harness.systems.clickhouse.gateway.http_request import Body
from harness.systems.clickhouse.gateway.wire import ProtocolError, Reader, TimedSocket, receiver, string, varint

DATA = os.urandom(3 << 20)
CHUNKS = (DATA[:10], DATA[10 : 1 << 20], DATA[1 << 20 : (1 << 20) + 1], DATA[(1 << 20) + 1 :])
CHUNKED = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in CHUNKS) + b"0\r\n\r\n"
FRAMINGS = {
    "chunked": ({"Transfer-Encoding": "chunked"}, CHUNKED),
    "counted": ({"Content-Length": str(len(DATA))}, DATA),
}


@pytest.fixture(params=(True, False), ids=("splice", "copies"))
def splices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether this system can move bytes, or a test forbids it."""
    splices = bool(request.param) and pipes.CAN_SPLICE
    monkeypatch.setattr(pipes, "CAN_SPLICE", splices)
    monkeypatch.setattr(http_request, "CAN_SPLICE", splices)
    return splices


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection over TCP."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        far = listening.accept()[0]
    with near, far:
        yield near, far


@pytest.fixture
def pipe() -> Iterator[list[int]]:
    """Both ends of a pipe; one that a test closes becomes -1."""
    both = list(pipes.open_pipe())
    yield both
    for end in both:
        if end >= 0:
            os.close(end)


def _close(pipe: list[int], end: int) -> None:
    os.close(pipe[end])
    pipe[end] = -1


class _Collected(threading.Thread):
    """All bytes out of a descriptor until its other end is closed, taken slowly."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(daemon=True)
        self.descriptor, self.data = descriptor, b""
        self.start()

    def run(self) -> None:
        while piece := os.read(self.descriptor, 50_000):
            self.data += piece

    def all(self) -> bytes:
        self.join(90)
        assert not self.is_alive()
        return self.data


def _body(connection: socket.socket, headers: dict[str, str], idle_seconds: float = 10.0) -> Body:
    message = Message()
    for name, value in headers.items():
        message[name] = value
    return Body(io.BufferedReader(TimedSocket(connection, idle_seconds)), message)


@pytest.mark.usefixtures("splices")
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("before", [0, 1, 3], ids=lambda count: f"{count} pieces read before")
def test_a_body_is_poured_as_it_is(
    ends: tuple[socket.socket, socket.socket], pipe: list[int], framing: str, before: int
) -> None:
    headers, sent = FRAMINGS[framing]
    near, far = ends
    sender = threading.Thread(target=lambda: near.sendall(sent), daemon=True)
    sender.start()
    body = _body(far, headers)
    pieces = body.decoded(in_frames=False)
    begun = b"".join(next(pieces) for _ in range(before))
    collected = _Collected(pipe[0])
    body.pour(pipe[1])
    _close(pipe, 1)
    assert begun + collected.all() == DATA
    assert body.drain()
    sender.join(90)


@pytest.mark.usefixtures("splices")
@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_body_that_breaks_off_is_no_end(
    ends: tuple[socket.socket, socket.socket], pipe: list[int], framing: str
) -> None:
    headers, sent = FRAMINGS[framing]
    near, far = ends
    collected = _Collected(pipe[0])

    def send_some() -> None:
        near.sendall(sent[:-100_000])
        near.shutdown(socket.SHUT_WR)

    threading.Thread(target=send_some, daemon=True).start()
    body = _body(far, headers)
    body.decoded(in_frames=False)
    with pytest.raises(EOFError, match=r"ended \d+ bytes too early"):
        body.pour(pipe[1])
    _close(pipe, 1)
    assert DATA.startswith(collected.all())


@pytest.mark.usefixtures("splices")
def test_a_body_that_stops_coming_is_given_up(ends: tuple[socket.socket, socket.socket], pipe: list[int]) -> None:
    near, far = ends
    near.sendall(DATA[:100_000])
    body = _body(far, {"Content-Length": str(len(DATA))}, idle_seconds=0.2)
    body.decoded(in_frames=False)
    with pytest.raises(TimeoutError):
        body.pour(pipe[1])


@pytest.mark.usefixtures("splices")
def test_a_reader_that_leaves_ends_the_pouring(ends: tuple[socket.socket, socket.socket], pipe: list[int]) -> None:
    near, far = ends
    threading.Thread(target=lambda: near.sendall(DATA), daemon=True).start()
    body = _body(far, {"Content-Length": str(len(DATA))})
    body.decoded(in_frames=False)
    _close(pipe, 0)
    body.pour(pipe[1])
    assert body.drain()


@pytest.mark.long
@pytest.mark.usefixtures("splices")
def test_pieces_are_moved_to_a_client_that_reads_slowly(
    ends: tuple[socket.socket, socket.socket], pipe: list[int]
) -> None:
    near, far = ends
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    near.settimeout(90.0)
    threading.Thread(target=lambda: (pipes.write_all(pipe[1], (DATA,)), _close(pipe, 1)), daemon=True).start()
    collected = _Collected(far.fileno())
    sizes = []
    for piece in pipes.pieces(pipe[0]):
        sizes.append(len(piece))
        piece.move(near, 90.0)
    near.shutdown(socket.SHUT_WR)
    assert collected.all() == DATA
    assert sum(sizes) == len(DATA)


@pytest.mark.usefixtures("splices")
def test_a_client_that_does_not_read_is_given_up(ends: tuple[socket.socket, socket.socket], pipe: list[int]) -> None:
    near, _ = ends
    near.settimeout(0.2)
    writer = threading.Thread(target=lambda: pipes.write_all(pipe[1], (DATA * 10,)), daemon=True)
    writer.start()

    def move_all() -> None:
        for piece in pipes.pieces(pipe[0]):
            piece.move(near, 0.2)

    with pytest.raises(TimeoutError):
        move_all()
    _close(pipe, 0)
    writer.join(90)
    assert not writer.is_alive()


def test_a_piece_that_was_not_taken_is_gone_with_the_next(pipe: list[int]) -> None:
    os.write(pipe[1], b"first")
    pieces = pipes.pieces(pipe[0])
    next(pieces)
    os.write(pipe[1], b"second")
    assert next(pieces).read() == b"second"
    _close(pipe, 1)
    assert next(pieces, None) is None


EXPRESSIONS = [
    "toUInt8(number)",
    "toInt64(number)",
    "toString(number)",
    "repeat('ä', number * 40)",
    "toFloat32(number)",
    "number::UInt256",
    "toDate(number)",
    "toDate32(number)",
    "toDateTime(number, 'Europe/Berlin')",
    "toDateTime64(number, 6, 'UTC')",
    "toDecimal32(number, 3)",
    "toDecimal64(number, 3)",
    "toDecimal128(number, 3)",
    "toDecimal256(number, 3)",
    "toFixedString(toString(number % 10), 7)",
    "generateUUIDv4()",
    "toIPv4('1.2.3.4')",
    "toIPv6('::1')",
    "number % 2 = 0",
    "if(number % 2, NULL, number)",
    "if(number % 2, NULL, toString(number))",
    "NULL",
    "CAST(number % 2, 'Enum8(\\'a,(\\' = 0, \\'b\\' = 1)')",
    "toLowCardinality(toString(number % 300))",
    "toLowCardinality(if(number % 3, toString(number % 7), NULL))",
    "range(number % 5)",
    "arrayMap(x -> arrayMap(y -> toString(y), range(x)), range(number % 4))",
    "[toLowCardinality(toString(number % 3))]",
    "map('k' || toString(number), [number])",
    "map(toLowCardinality('k'), toLowCardinality('v'))",
    "(number, 'x', [number])",
    "CAST((number, 'x'), 'Tuple(a UInt64, `b c` String)')",
    "CAST([(number, 'x')], 'Nested(a UInt64, b String)')",
    "(1., 2.)::Point",
    "toIntervalDay(number)",
    "tuple()",
    "if(number % 3, toString(number), NULL)::Variant(String, UInt64)",
    "multiIf(number % 3 = 0, number::Variant(String, UInt64), number % 3 = 1, 'x', NULL)",
    "if(number % 2, number::Dynamic, [number]::Dynamic)",
    "CAST(toString(number), 'Dynamic(max_types=0)')",
    'concat(\'{"a": {"b": \', toString(number), \'}, "k\', toString(number % 50), \'": [1, "x"]}\')::JSON',
    '\'{"a": 1, "zz": 2, "q": "s"}\'::JSON(zz UInt32, `a b` String, max_dynamic_paths=1, SKIP e)',
    "[map('k', ('{\"a\": [{\"b\": 1}]}'::JSON, number))]",
    '\'{"a": [{"b": 1}, {"c": [2]}]}\'::JSON',
]


@pytest.fixture(scope="module")
def engine():
    with contextlib.closing(chdb.connect(":memory:")) as connection:
        yield connection


@pytest.mark.parametrize("rows", [0, 1, 1000])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_end_of_a_block_is_found_for_each_type(engine, expression, rows):
    data = engine.query(f"SELECT {expression} AS x, 'end' AS y FROM numbers({rows})", "Native").bytes()
    behind = b"the next packet"
    if not data:
        assert rows == 0
        return
    reader = Reader(receiver([data, behind]))
    block = read_block(reader)
    assert (block.rows, block.data) == (rows, data)
    assert [column.name for column in block.columns] == ["x", "y"]
    assert reader.exact(len(behind)) == behind


@pytest.mark.parametrize("rows", [1, 1000])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_block_of_a_later_revision_is_the_engines_with_a_byte_before_each_columns_values(engine, expression, rows):
    data = engine.query(f"SELECT 'a' AS w, {expression} AS x, 'end' AS y FROM numbers({rows})", "Native").bytes()
    (block,) = read_blocks(data)
    later = with_columns(block, block.columns, 54454)
    assert len(later.data) == len(data) + 3
    assert read_block(Reader(receiver([later.data])), 54454) == block
    assert with_columns(block, block.columns, 54453).data is block.data


PARAMETERS = dict.fromkeys(("Decimal32", "Decimal64", "Decimal128", "Decimal256"), "2")
PARAMETERS |= dict.fromkeys(("DateTime64", "Time64"), "3") | dict.fromkeys(("Enum8", "Enum16"), "'a' = 0")


@pytest.mark.parametrize("name", sorted(blocks._WIDTHS.keys() - {"Nothing"}))  # a type without values
def test_the_width_of_each_type_is_the_one_that_the_engine_writes(engine, name):
    full = f"{name}({PARAMETERS[name]})" if name in PARAMETERS else name
    made = f"SELECT materialize(defaultValueOfTypeName($${full}$$)) AS x FROM numbers(3)"
    data = engine.query(f"{made} SETTINGS enable_time_time64_type = 1", "Native").bytes()
    (block,) = read_blocks(data)
    assert len(data) - len(header_block(block.columns)) == 3 * blocks._WIDTHS[name]


@pytest.mark.parametrize(("size", "width"), [(0, 1), (1, 2), (2, 4), (3, 8)])
def test_the_places_in_a_dictionary_are_of_the_size_that_its_column_says(size, width):
    """The engine makes no dictionary of more than 65,409 values, so the larger ones are made here."""
    head = b"\x01\x02" + string("x") + string("LowCardinality(String)") + struct.pack("<QQQ", 1, 1 << 9 | size, 1)
    data = head + string("only value") + struct.pack("<Q", 2) + bytes(2 * width)
    behind = b"the next packet"
    reader = Reader(receiver([data, behind]))
    assert read_block(reader).data == data
    assert reader.exact(len(behind)) == behind


SPARSE_COLUMNS = [
    ("UInt32", "if(number % 3 = 1, number, 0)", lambda n: struct.pack("<I", n)),
    ("Decimal(30, 2)", "if(number % 3 = 1, number, 0)", lambda n: struct.pack("<QQ", 100 * n, 0)),
    ("FixedString(3)", "if(number % 3 = 1, leftPad(toString(number), 3), '')", lambda n: b"%3d" % n),
    ("String", "if(number % 3 = 1, repeat('ä', number), '')", lambda n: string("ä" * n)),
    ("SimpleAggregateFunction(sum, UInt64)", "if(number % 3 = 1, number, 0)", lambda n: struct.pack("<Q", n)),
]


@pytest.mark.parametrize("rows", [1, 2, 5, 200])
@pytest.mark.parametrize(("type_name", "expression", "encode"), SPARSE_COLUMNS)
def test_a_sparse_column_becomes_full(engine, type_name, expression, encode, rows):
    places = range(1, rows, 3)
    gaps = [1, *[2] * (len(places) - 1)][: len(places)]
    rest = rows - places[-1] - 1 if places else rows
    sparse = b"".join(map(varint, gaps)) + varint(1 << 62 | rest) + b"".join(map(encode, places))
    head = b"\x02" + varint(rows) + string("x") + string(type_name)
    pair = string("y") + string(f"Tuple(UInt8, {type_name})")
    data = head + b"\x01\x01" + sparse + pair + b"\x01\x00\x00\x01" + bytes(rows) + sparse
    query = f"SELECT CAST({expression}, '{type_name}') AS x, CAST((0, x), 'Tuple(UInt8, {type_name})') AS y"
    full = engine.query(f"{query} FROM numbers({rows})", "Native").bytes()
    assert read_block(Reader(receiver([data])), 54465) == read_blocks(full)[0]


@pytest.mark.parametrize("places", [[0, 3], [2, 0], [3], [0, 0, 0, 0], [1 << 61]])
def test_a_sparse_column_with_values_outside_its_block_is_refused(places):
    column = b"".join(map(varint, places)) + varint(1 << 62) + b"abcd"
    data = b"\x01\x03" + string("x") + string("UInt8") + b"\x01\x01" + column
    with pytest.raises(ProtocolError, match="3 rows"):
        read_block(Reader(receiver([data])), 54465)


def test_a_sparse_column_that_would_fill_the_memory_is_refused():
    data = b"\x01" + varint(1 << 31) + string("x") + string("UInt8") + b"\x01\x01" + varint(1 << 62 | 1 << 31)
    with pytest.raises(ProtocolError, match="longer than 1073741824 bytes"):
        read_block(Reader(receiver([data])), 54465)


def test_several_blocks_are_taken_apart(engine):
    query = "SELECT number, toString(number) FROM numbers(10) SETTINGS max_block_size = 3"
    data = engine.query(query, "Native").bytes()
    found = read_blocks(data)
    assert sum(block.rows for block in found) == 10
    assert b"".join(block.data for block in found) == data


@pytest.mark.parametrize(
    "type_name",
    ["Dynamic", "AggregateFunction(sum, UInt8)", "NoSuch", "FixedString(" + "9" * 5000 + ")", "Decimal(9999999999)"],
)
def test_a_type_of_unknown_layout_is_named_in_the_error(type_name):
    data = b"\x01\x01" + string("x") + string(type_name) + bytes(100)
    with pytest.raises(UnknownTypeError, match="FORMAT"):
        read_blocks(data)


def test_a_header_block_has_columns_and_no_rows(engine):
    block = read_blocks(engine.query("SELECT 1 AS a, 'x' AS b", "Native").bytes())[0]
    header = read_blocks(header_block(block.columns))[0]
    assert (header.columns, header.rows) == (block.columns, 0)


@given(st.lists(st.binary(max_size=300), max_size=50), st.integers(1, 40))
@settings(max_examples=50)
def test_strings_are_walked_over_however_they_arrive(values, piece):
    column = b"".join(string(value) for value in values)
    data = b"\x01" + varint(len(values)) + string("s") + string("String") + column
    pieces = [data[start : start + piece] for start in range(0, len(data), piece)]
    assert read_block(Reader(receiver(pieces))).data == data


@given(st.binary(max_size=300))
def test_any_bytes_are_a_block_or_an_error(data):
    with contextlib.suppress(ProtocolError, EOFError):
        for block in read_blocks(data):
            assert block.data in data


@given(st.sampled_from(EXPRESSIONS), st.data())
@settings(max_examples=60)
def test_a_cut_block_is_never_taken_for_a_whole_one(engine, expression, data):
    whole = engine.query(f"SELECT {expression} AS x FROM numbers(3)", "Native").bytes()
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises((EOFError, ProtocolError)):
        read_block(Reader(receiver([whole[:cut]])))


def test_a_block_over_the_limit_is_refused_before_it_is_received():
    reader = Reader(receiver([b"\x01" + varint(1 << 30) + string("x") + string("UInt64")]), limit=1 << 20)
    with pytest.raises(ProtocolError, match="longer than 1048576 bytes"):
        read_block(reader)


BLOCKS = """
import sys
from pathlib import Path

from harness.systems.clickhouse.gateway.engine import Engine
from harness.systems.clickhouse.gateway.sql import parse_query

session = Engine(Path(sys.argv[1])).session()
blocks = session.blocks(parse_query(b"SELECT number FROM numbers(200000)"), "Native")
rows, first = next(blocks)
copied = bytes(first)
next(blocks)
try:
    first[0]
except ValueError as error:
    print(rows, len(copied), error)
"""


@pytest.mark.long
def test_the_bytes_of_a_block_cannot_be_used_once_the_next_is_asked_for(tmp_path):
    asked = [sys.executable, "-c", BLOCKS, str(tmp_path / "data")]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    rows, size, error = done.stdout.split(maxsplit=2)
    assert int(rows) * 8 < int(size) < int(rows) * 8 + 100
    assert "released" in error
