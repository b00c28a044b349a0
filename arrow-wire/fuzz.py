"""Fuzz the encoders and decoders: python arrow-wire/fuzz.py [SECONDS] [SEED]

Structure-aware: it makes arrays and streams that are right, then damages buffers, lengths, offsets, types and bytes on
the wire, and hands them to the compiled code. Allowed are an answer and an `Error`, TypeError or MemoryError; what else
comes of an execution is kept in `.fuzz/` with its seed: `python arrow-wire/fuzz.py 0 SEED` repeats it. A check of the
compiled code that fails (`CheckFailed`) counts as a fault, though it ends no process.
"""

import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from arrow_wire import arrays, clickhouse_native, postgres_encoder, postgres_reader, postgres_types
from arrow_wire.clickhouse_blocks import Columns, Room
from arrow_wire.errors import CheckFailed, Error
from arrow_wire.postgres_reader import LARGE, VIEWS

KEPT = Path(__file__).parent / ".fuzz"
OIDS = [oid for _, *oids in postgres_types._BUILT_IN for oid in oids]
TYPES = (
    "Bool", "Int8", "Int64", "UInt32", "Int128", "UInt256", "Float32", "Float64", "BFloat16", "Decimal(9, 2)",
    "Decimal(38, 5)", "Decimal(76, 5)", "String", "FixedString(5)", "UUID", "IPv4", "IPv6", "Date", "Date32",
    "DateTime", "DateTime64(6)", "DateTime64(9)", "Time64(6)", "Enum8('a' = 1, 'b' = -2)", "LowCardinality(String)",
    "JSON", "Nullable(String)", "Nullable(Int32)", "Nullable(UUID)", "LowCardinality(Nullable(String))",
    "Array(String)",
    "Array(Nullable(Int16))", "Map(String, Int32)", "Tuple(a Int32, b String)", "Array(Array(UInt8))",
    "Nullable(Decimal(18, 4))", "Array(LowCardinality(String))",
)  # fmt: skip
ARROW = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64(), pa.float32(), pa.float64(),
    pa.decimal128(20, 3), pa.decimal256(50, 3), pa.decimal32(7, 2), pa.string(), pa.large_string(), pa.string_view(),
    pa.binary(), pa.binary_view(), pa.binary(16), pa.binary(5), pa.date32(), pa.date64(), pa.time64("us"),
    pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.duration("us"),
    pa.list_(pa.int32()), pa.large_list(pa.string()), pa.list_(pa.string_view()), pa.list_(pa.int16(), 2),
    pa.struct([("a", pa.int32()), ("b", pa.string())]), pa.map_(pa.string(), pa.int32()), pa.null(),
    pa.list_(pa.list_(pa.int8())),
)  # fmt: skip
TEXTS = ("", "a", "b", "12", "-1", "nan", "7d7c4f3e-0000-0000-0000-000000000001", "10.0.0.1", "::1", "{}", "é" * 9,
         "\0",         "2026-01-01", "x" * 40, "99999999999999999999", "1e400", "true")  # fmt: skip


def values(draw: random.Random, arrow_type: pa.DataType, size: int) -> pa.Array:
    """Return an array whose buffers are noise of the right size, or values that are right."""
    if pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type):
        return pa.array([draw.choice((*TEXTS, None)) for _ in range(size)], pa.string()).cast(arrow_type)
    if arrays.is_text(arrow_type):
        return pa.array([draw.choice((*TEXTS, None)) for _ in range(size)], pa.string()).cast(arrow_type)
    if pa.types.is_null(arrow_type):
        return pa.nulls(size)
    valid = pa.py_buffer(draw.randbytes(size // 8 + 1)) if draw.random() < 0.5 else None
    if pa.types.is_struct(arrow_type):
        below = [values(draw, field.type, size) for field in arrow_type]
        return pa.Array.from_buffers(arrow_type, size, [valid], children=below)
    if pa.types.is_map(arrow_type):
        return pa.array([[(draw.choice(TEXTS), draw.choice((1, None)))] for _ in range(size)], arrow_type)
    if pa.types.is_fixed_size_list(arrow_type):
        below = values(draw, arrow_type.value_type, size * arrow_type.list_size)
        return pa.Array.from_buffers(arrow_type, size, [valid], children=[below])
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        cuts = np.cumsum([0, *(draw.randrange(3) for _ in range(size))])
        below = values(draw, arrow_type.value_type, int(cuts[-1]))
        offsets = pa.py_buffer(cuts.astype("i8" if pa.types.is_large_list(arrow_type) else "i4"))
        return pa.Array.from_buffers(arrow_type, size, [valid, offsets], children=[below])
    width = 1 if pa.types.is_boolean(arrow_type) else arrow_type.byte_width
    data = (
        draw.randbytes(size * width) if draw.random() < 0.5 else bytes([draw.choice((0, 1, 127, 255))]) * size * width
    )
    if pa.types.is_decimal(arrow_type) or pa.types.is_date64(arrow_type):
        data = bytes(b if n % width < 3 else 0 for n, b in enumerate(data))
    return pa.Array.from_buffers(arrow_type, size, [valid, pa.py_buffer(data)])


def damaged(draw: random.Random, array: pa.Array) -> pa.Array:
    """Return an array that contradicts itself: a buffer that is too short or changed, or a length that is too large."""
    if pa.types.is_nested(array.type) or pa.types.is_null(array.type):
        return array
    buffers = list(array.buffers())
    place = draw.randrange(len(buffers))
    if buffers[place] is None:
        return array
    data = bytearray(buffers[place].to_pybytes())
    for _ in range(draw.randrange(4)):
        if data:
            data[draw.randrange(len(data))] = draw.randrange(256)
    buffers[place] = pa.py_buffer(bytes(data[: draw.choice((len(data), len(data), draw.randrange(len(data) + 1)))]))
    length = len(array) + draw.choice((0, 0, 1, 9))
    try:
        return pa.Array.from_buffers(array.type, length, buffers, offset=draw.choice((0, 0, 1)) if length else 0)
    except pa.ArrowInvalid:  # which pyarrow sees itself, and makes no array of
        return array


def column(draw: random.Random) -> pa.Array | pa.ChunkedArray:
    array = values(draw, draw.choice(ARROW), draw.choice((0, 1, 2, 7, 30)))
    if draw.random() < 0.15 and arrays.is_text(array.type):
        array = array.cast(pa.string()).dictionary_encode()
    elif draw.random() < 0.4:
        array = damaged(draw, array)
    if draw.random() < 0.2:
        array = array.slice(draw.randrange(len(array) + 1))
    return pa.chunked_array([array, array]) if draw.random() < 0.1 else array


def encode_postgres(draw: random.Random) -> None:
    array = column(draw)
    (into,) = postgres_types.types([(draw.choice(OIDS), draw.choice((-1, -1, (9 << 16 | 2) + 4)))])
    encoder = postgres_encoder.Encoder(["c"], [array], [into])
    order = None
    if draw.random() < 0.3:
        order = np.array([draw.randrange(len(array) + 2) for _ in range(len(array))], np.uint64)
    for _ in encoder.blocks(order, 0, len(array)):
        pass
    if draw.random() < 0.1:
        encoder.keys(0)


def encode_clickhouse(draw: random.Random) -> None:
    array = column(draw)
    columns = Columns([("c", array, draw.choice(TYPES))])
    rows: range | np.ndarray = range(len(array))
    if draw.random() < 0.3:
        rows = np.array([draw.choice((draw.randrange(len(array) + 2), 2**64 - 1)) for _ in range(9)], np.uint64)
    columns.block(Room(), rows)


def changed(draw: random.Random, data: bytes) -> bytearray:
    """Return bytes with some of them changed, left out, twice, or cut off."""
    made = bytearray(data)
    for _ in range(draw.choice((0, 1, 1, 2, 5))):
        if not made:
            break
        place, how = draw.randrange(len(made)), draw.randrange(5)
        if how == 0:
            made[place] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        elif how == 1:
            del made[place : place + draw.randrange(9)]
        elif how == 2:
            made[place:place] = made[place : place + draw.randrange(9)]
        elif how == 3:
            made[place : place + 8] = draw.choice((b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7, draw.randbytes(8)))
        else:
            del made[place:]
    return made


def decode_postgres(draw: random.Random) -> None:
    """Rows of a binary COPY or of messages, of columns that fit them or others."""
    count = draw.randrange(1, 4)
    found = postgres_types.types([(draw.choice(OIDS), draw.choice((-1, (9 << 16 | 2) + 4))) for _ in range(count)])
    readings = [postgres_reader.reading(one, draw.choice((VIEWS, LARGE)), draw.choice((1, 1, 2))) for one in found]
    framing = draw.randrange(2)
    data = b""
    for _ in range(draw.choice((1, 3, 20))):
        row = count.to_bytes(2, "big")
        for _ in range(count):
            size = draw.choice((-1, 0, 1, 2, 4, 4, 8, 8, 16, 12, 20, 28))
            row += size.to_bytes(4, "big", signed=True)
            if size == 20:  # an array of one item
                row += b"".join(n.to_bytes(4, "big") for n in (1, 0, draw.choice((16, 23)), draw.randrange(3), 1))
            elif size > 0:
                row += draw.choice((draw.randbytes(size), bytes(size), b"\xff" * size, b"7" * size))
        data += row if framing else b"D" + (len(row) + 4).to_bytes(4, "big") + row
    decoder = postgres_reader.Decoder([f"c{number}" for number in range(count)], readings, framing)
    made = changed(draw, data + draw.choice((b"", b"\xff\xff", b"Z\0\0\0\5I")))
    place = decoder.feed(memoryview(made), 0, draw.choice((1, 5, 1 << 40)))
    assert place <= len(made)
    for array in decoder.take():
        array.validate()


def decode_clickhouse(draw: random.Random) -> None:
    """Blocks that the encoder has made, in pieces, changed on the way."""
    sql_type = draw.choice(TYPES)
    result = clickhouse_native.Result([("c", sql_type)], draw.choice((pa.string_view(), pa.large_string())))
    data = b""
    for _ in range(draw.choice((1, 2))):
        try:
            array = values(draw, draw.choice(ARROW), draw.choice((0, 1, 9)))
            data += bytes(Columns([("c", array, sql_type)]).block(Room(), range(len(array))))
        except (Error, TypeError, NotImplementedError):
            rest = bytes([1, draw.randrange(1, 5)]) + clickhouse_head(sql_type)
            data += rest + draw.randbytes(draw.randrange(60))
    view, place = memoryview(changed(draw, data)), 0

    def readinto(room: memoryview) -> int:
        nonlocal place
        size = min(len(room), draw.choice((1, 7, 1 << 19)), len(view) - place)
        room[:size] = view[place : place + size]
        place += size
        return size

    for batch in clickhouse_native.batches(result, readinto, draw.choice((1, sys.maxsize))):
        batch.validate()


def clickhouse_head(sql_type: str) -> bytes:
    from arrow_wire.clickhouse_types import head

    return head("c", sql_type)


TARGETS: tuple[Callable[[random.Random], None], ...] = (
    encode_postgres, encode_clickhouse, decode_postgres, decode_clickhouse
)  # fmt: skip


def one(seed: int) -> str:
    """Run one execution and return how it ended."""
    draw = random.Random(seed)
    target = TARGETS[seed % len(TARGETS)]
    try:
        target(draw)
    except CheckFailed:
        return keep(seed, target, "a check failed")
    except (Error, TypeError, MemoryError, NotImplementedError):
        return f"{target.__name__}: refused"
    except Exception:
        return keep(seed, target, "another exception")
    return f"{target.__name__}: answered"


def keep(seed: int, target: Callable[[random.Random], None], what: str) -> str:
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{target.__name__}-{seed}.txt").write_text(traceback.format_exc(), "utf-8")
    return f"{target.__name__}: FAULT: {what}"


def main(seconds: float, seed: int | None) -> None:
    """Run for so many seconds, or one seed alone, and print how executions ended."""
    ended: Counter[str] = Counter()
    if not seconds and seed is not None:
        ended[one(seed)] += 1
    first, until = seed or time.time_ns() % 10**12, time.monotonic() + seconds
    number = first
    while time.monotonic() < until:
        ended[one(number)] += 1
        number += 1
    for what, times in sorted(ended.items()):
        print(f"{times:>10,} {what}")
    print(f"{sum(ended.values()):>10,} executions from seed {first} on")
    sys.exit(any("FAULT" in what for what in ended))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, int(sys.argv[2]) if len(sys.argv) > 2 else None)
