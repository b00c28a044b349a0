"""Fuzz the encoders and decoders: python arrow-wire/fuzz.py [SECONDS] [SEED]

Structure-aware: Python makes an array or a stream that is right, for each seed another one. `zig/fuzz.zig` then damages
its buffers, lengths, offsets or bytes on the wire and hands it to the compiled code. That is one execution: there are
`MANY` in a call, and `CALLS` calls of a seed. After each call of a decoder, pyarrow checks the result of the last
execution.

Allowed are an answer and an `Error`, TypeError or MemoryError. Anything else is kept in `.fuzz/` with its seed:
`python arrow-wire/fuzz.py 0 SEED` repeats it. A check of the compiled code that fails is a fault, too: it does not end
the process. `.fuzz/seed` is the seed that runs, should one end it. `.fuzz/counts` has one line a run.
"""

import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from ctypes import POINTER, Structure, addressof, byref, c_bool, c_size_t, c_void_p, memmove
from pathlib import Path
from typing import Any, TypeAlias

import arrow_wire.library
import numpy as np
import pyarrow as pa
from arrow_wire import arrays, clickhouse_native, postgres_encoder, postgres_reader, postgres_types
from arrow_wire.clickhouse_blocks import Columns, Room
from arrow_wire.clickhouse_types import head
from arrow_wire.columns import Columns as Targets
from arrow_wire.errors import CheckFailed, Error
from arrow_wire.library import Array, library
from arrow_wire.postgres_reader import LARGE, VIEWS
from arrow_wire.postgres_recipes import recipe

KEPT = Path(__file__).parent / ".fuzz"
MANY, CALLS = 1000, 40
Execution: TypeAlias = Callable[["Ended"], object]
arrow_wire.library.NAME = str(KEPT / "libfuzz.so")  # which `make fuzz` compiles: the library and the damage
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
# Of values of Postgres, in bytes
SIZES = {"bool": 1, "int2": 2, "int4": 4, "int8": 8, "oid": 4, "float4": 4, "float8": 8, "uuid": 16, "date": 4,
         "time": 8, "timestamp": 8, "timestamptz": 8, "interval": 16, "numeric": 12}  # fmt: skip
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


class Ended(Structure):
    """How executions ended: `Ended` in `zig/fuzz.zig`."""

    _fields_ = [("answered", c_size_t), ("refused", c_size_t), ("failed", c_size_t)]


class Place(Structure):
    """A buffer of an array, and memory that it may damage: `Place` in `zig/fuzz.zig`."""

    _fields_ = [("buffer", c_void_p), ("memory", c_void_p), ("right", c_void_p), ("size", c_size_t)]


class Damaged(Structure):
    """An array whose description and buffers are damaged: `Damaged` in `zig/fuzz.zig`."""

    _fields_ = [
        ("places", POINTER(Place)),
        ("place_count", c_size_t),
        ("arrays", POINTER(c_void_p)),
        ("array_count", c_size_t),
        ("rows", c_size_t),
    ]


class Filled(Structure):
    """Columns that a decoder fills: `Targets` in `zig/fuzz.zig`."""

    _fields_ = [("columns", c_void_p), ("shapes", c_void_p), ("count", c_size_t), ("wrong", c_bool)]


def damageable(array: Array, rows: int) -> tuple[Damaged, list[Any]]:
    """Return the damageable parts of an array and all below it, and the objects that must stay alive as long."""
    found, places, keeps = [array], [], []
    for one in found:  # which grows
        for buffer in (one.validity, one.values, one.data, *(one.more[number] for number in range(one.more_count))):
            if buffer.address and buffer.size:
                right = np.empty(buffer.size, np.uint8)
                memmove(right.ctypes.data, buffer.address, buffer.size)
                memory = right.copy()
                buffer.address = memory.ctypes.data
                places.append(Place(addressof(buffer), memory.ctypes.data, right.ctypes.data, buffer.size))
                keeps += [buffer, memory, right]
        found += [one.children[number] for number in range(one.child_count)]
    listed = (Place * len(places))(*places), (c_void_p * len(found))(*map(addressof, found))
    return Damaged(listed[0], len(places), listed[1], len(found), rows), [*keeps, *found, *listed]


def fuzzed(draw: random.Random, name: str, ended: Ended, *arguments: object) -> None:
    """Call a function of `zig/fuzz.zig`. Raises AssertionError where a check of the compiled code has failed."""
    function = getattr(library(), f"fuzz_{name}")
    function.restype = None
    given = [c_size_t(one) if isinstance(one, int) else one for one in arguments]
    function(*given, c_size_t(draw.getrandbits(64)), c_size_t(MANY), byref(ended))
    if ended.failed:
        said = bytearray(200)
        size = library().arrow_wire_failure((c_void_p * 25).from_buffer(said), 200)
        raise AssertionError(f"a check failed: {said[:size].decode(errors='replace')}")


def encode_postgres(draw: random.Random) -> Execution:
    array = column(draw)
    (into,) = postgres_types.types([(draw.choice(OIDS), draw.choice((-1, -1, (9 << 16 | 2) + 4)))])
    while recipe(array.type, into) is None and draw.random() < 0.99:
        (into,) = postgres_types.types([(draw.choice(OIDS), -1)])
    encoder = postgres_encoder.Encoder(["c"], [array], [into])
    for _ in encoder.blocks(None, 0, len(array)):
        pass
    made = encoder._keeps[0].structure
    damaged, keeps = damageable(made if isinstance(made, Array) else made[0], len(array))  # flat columns share an array

    def again(ended: Ended) -> object:
        fuzzed(draw, "postgres_encode", ended, encoder._columns, byref(damaged))
        return keeps

    return again


def encode_clickhouse(draw: random.Random) -> Execution:
    array, room = column(draw), Room()
    columns = Columns([("c", array, draw.choice(TYPES))])
    columns.block(room, range(len(array)))
    damaged, keeps = damageable(columns._plans[0].node.array.contents, len(array))

    def again(ended: Ended) -> object:
        fuzzed(draw, "clickhouse_encode", ended, columns._columns, c_void_p(room.address), byref(damaged))
        return keeps

    return again


def require_valid(array: pa.Array) -> None:
    """Raise ArrowInvalid unless an array is right. Some decimals of ClickHouse have more digits than their type."""
    array.validate(full="decimal" not in str(array.type))


def filled(targets: Targets) -> Filled:
    return Filled(targets.address, addressof(targets._shapes), len(targets._types), False)


def decode_postgres(draw: random.Random) -> Execution:
    """Rows of a binary COPY or of messages, of columns that fit them or others."""
    count = draw.randrange(1, 4)
    found = postgres_types.types([(draw.choice(OIDS), draw.choice((-1, (9 << 16 | 2) + 4))) for _ in range(count)])
    readings = [postgres_reader.reading(one, draw.choice((VIEWS, LARGE)), draw.choice((1, 1, 2))) for one in found]
    framing = draw.randrange(2)
    data = b""
    for _ in range(draw.choice((1, 3, 20))):
        row = count.to_bytes(2, "big")
        for one in found:
            size = draw.choice((SIZES.get(one.name, 20), SIZES.get(one.name, 20), -1, 0, 1, 2, 4, 8, 12, 16, 20, 28))
            row += size.to_bytes(4, "big", signed=True)
            if size == 20:  # an array of one item
                row += b"".join(n.to_bytes(4, "big") for n in (1, 0, draw.choice((16, 23)), draw.randrange(3), 1))
            elif size > 0:
                row += draw.choice((draw.randbytes(size), bytes(size), b"\xff" * size, b"7" * size))
        data += row if framing else b"D" + (len(row) + 4).to_bytes(4, "big") + row
    data += draw.choice((b"", b"\xff\xff", b"Z\0\0\0\5I"))
    decoder = postgres_reader.Decoder([f"c{number}" for number in range(count)], readings, framing)

    targets = filled(decoder._columns)

    def again(ended: Ended) -> object:
        fuzzed(draw, "postgres_decode", ended, decoder._lines, byref(targets), framing, data, len(data))
        decoder._columns.address = targets.columns
        if not targets.wrong:
            for array in decoder._columns.take():
                require_valid(array)
        return None

    return again


def decode_clickhouse(draw: random.Random) -> Execution:
    """Blocks that the encoder has made, in pieces, changed on the way."""
    sql_type = draw.choice(TYPES)
    text = draw.choice((pa.string_view(), pa.large_string()))
    data = b""
    for _ in range(draw.choice((1, 2))):
        try:
            array = values(draw, draw.choice(ARROW), draw.choice((0, 1, 9)))
            data += bytes(Columns([("c", array, sql_type)]).block(Room(), range(len(array))))
        except (Error, TypeError, NotImplementedError):
            data += bytes([1, draw.randrange(1, 5)]) + head("c", sql_type) + draw.randbytes(draw.randrange(60))
    result = clickhouse_native.Result([("c", sql_type)], text)
    targets, address = filled(result._targets), c_void_p(result._address)

    def again(ended: Ended) -> object:
        fuzzed(draw, "clickhouse_decode", ended, result._columns, byref(address), byref(targets), data, len(data))
        result._targets.address, result._address = targets.columns, address.value
        if not targets.wrong:
            require_valid(result.take().column(0))
        return None

    return again


TARGETS: tuple[Callable[[random.Random], Execution], ...] = (
    encode_postgres, encode_clickhouse, decode_postgres, decode_clickhouse
)  # fmt: skip


def run(seed: int, ended: Counter[str]) -> int:
    """Run the executions of a seed, count how they ended, and return how many there were."""
    draw, target, before = random.Random(seed), TARGETS[seed % len(TARGETS)], ended.total()
    how = ""
    try:
        again = target(draw)
        for _ in range(CALLS):
            found = Ended()
            try:
                again(found)
            finally:
                ended[f"{target.__name__}: answered"] += found.answered
                ended[f"{target.__name__}: refused"] += found.refused
    except (Error, TypeError, MemoryError, NotImplementedError) as error:
        how = keep(seed, target) if isinstance(error, CheckFailed) else "refused"  # there is nothing to damage
    except Exception:
        how = keep(seed, target)
    if how:
        ended[f"{target.__name__}: {how}"] += 1
    return ended.total() - before


def keep(seed: int, target: Callable[[random.Random], Execution]) -> str:
    (KEPT / f"{target.__name__}-{seed}.txt").write_text(traceback.format_exc(), "utf-8")
    return "FAULT"


def main(seconds: float, seed: int | None) -> None:
    """Run for so many seconds, or one seed alone, and print how executions ended and how many there were a second."""
    KEPT.mkdir(exist_ok=True)
    ended: Counter[str] = Counter()
    first, began = seed or time.time_ns() % 10**12, time.process_time()
    until, number, totals = time.monotonic() + seconds, first, [0] * len(TARGETS)
    running = os.open(KEPT / "seed", os.O_CREAT | os.O_WRONLY)
    while number == first or time.monotonic() < until:
        os.pwrite(running, b"%20d" % number, 0)
        totals[number % len(TARGETS)] += run(number, ended)
        number += 1
        while totals[number % len(TARGETS)] > 2 * min(totals) + MANY * CALLS:  # some end with their first execution
            number += 1
    for what, times in sorted(ended.items()):
        print(f"{times:>12,} {what}")
    total, spent = ended.total(), time.process_time() - began
    print(f"{total:>12,} executions from seed {first} on, {total / spent:,.0f} a second of a core")
    with (KEPT / "counts").open("a") as counts:
        counts.write(f"{first} {dict(sorted(ended.items()))}\n")
    sys.exit(any("FAULT" in what for what in ended))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, int(sys.argv[2]) if len(sys.argv) > 2 else None)
