"""Fuzz the encoders and decoders: python arrow-wire/fuzz.py [SECONDS] [SEED]

Structure-aware: it makes arrays and streams that are right, then damages buffers, lengths, offsets, types and bytes on
the wire, and hands them to the compiled code. Each execution hands over one of them. A seed makes one array or stream
and up to `BATCH` executions of it, each with other damage.

Allowed are an answer and an `Error`, TypeError or MemoryError. Anything else is kept in `.fuzz/` with its seed:
`python arrow-wire/fuzz.py 0 SEED` repeats it. A check of the compiled code that fails (`CheckFailed`) is a fault, too:
it does not end the process. `.fuzz/seed` is the seed that runs, should one end it.
"""

import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from ctypes import byref, c_char, c_void_p, memmove
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from arrow_wire import arrays, clickhouse_blocks, clickhouse_native, postgres_encoder, postgres_reader, postgres_types
from arrow_wire.clickhouse_blocks import Columns, Room
from arrow_wire.clickhouse_library import Fed, functions
from arrow_wire.clickhouse_types import head
from arrow_wire.columns import Columns as Targets
from arrow_wire.errors import CheckFailed, Error
from arrow_wire.library import Array, Buffer, Progress, ReadProgress, library
from arrow_wire.postgres_reader import LARGE, VIEWS
from arrow_wire.postgres_recipes import recipe

KEPT = Path(__file__).parent / ".fuzz"
BATCH = 100  # executions of a seed
Execution: TypeAlias = Callable[[], object]
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
EDGES = (0, 1, 4, 0x7F, 0x80, 0xFF)
WORDS = [np.frombuffer(n.to_bytes(4, "little"), np.uint8) for n in (0, 1, 13, 1 << 31, (1 << 31) - 1, (1 << 32) - 1)]
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


class Damage:
    """Changes what an array says of itself to the compiled code, and the bytes of its buffers, and undoes that.

    No buffer becomes longer than it is: how long it is, is what the compiled code has to believe.
    """

    def __init__(self, array: Array) -> None:
        self._arrays: list[Array] = []
        self._buffers: list[tuple[Any, str | int, bytes, np.ndarray]] = []
        self._undo: list[tuple[Any, ...]] = []
        self._walk(array)

    def _walk(self, array: Array) -> None:
        self._arrays.append(array)
        places: list[tuple[Any, str | int]] = [(array, name) for name in ("validity", "values", "data")]
        places += [(array.more, number) for number in range(array.more_count)]
        for where, name in places:
            buffer = where[name] if isinstance(name, int) else getattr(where, name)
            if buffer.address and buffer.size:
                own = np.empty(buffer.size, np.uint8)
                memmove(own.ctypes.data, buffer.address, buffer.size)
                self._set(where, name, own.ctypes.data, buffer.size)
                self._buffers.append((where, name, own.tobytes(), own))
        for number in range(array.child_count):
            self._walk(array.children[number])

    def _set(self, where: Any, name: str | int, address: int, size: int) -> None:
        if isinstance(name, int):
            where[name] = Buffer(address, size)
        else:
            setattr(where, name, Buffer(address, size))

    def do(self, draw: random.Random) -> None:
        for _ in range(1 + int(3 * draw.random())):
            if self._buffers and draw.random() < 0.7:
                where, name, _, own = self._buffers[int(len(self._buffers) * draw.random())]
                place, how = int(len(own) * draw.random()), draw.random()
                if how < 0.5:
                    own[place] = EDGES[int(len(EDGES) * draw.random())]
                elif how < 0.8:
                    own[place & ~3 :][:4] = draw.choice(WORDS)[: len(own) - (place & ~3)]
                else:
                    self._set(where, name, own.ctypes.data, place)
                self._undo.append((where, name, own))
            else:
                array = self._arrays[int(len(self._arrays) * draw.random())]
                name = "length" if draw.random() < 0.5 else "offset"
                self._undo.append((array, name, getattr(array, name)))
                much = draw.choice((0, 1, 2, 9, 1 << 20, 1 << 31, 1 << 32, 1 << 61, (1 << 64) - 1))
                setattr(array, name, (getattr(array, name) + much) % (1 << 64) if draw.random() < 0.5 else much)

    def undo(self) -> None:
        while self._undo:
            where, name, before = self._undo.pop()
            if isinstance(before, int):
                setattr(where, name, before)
        for where, name, before, own in self._buffers:
            own[:] = np.frombuffer(before, np.uint8)
            self._set(where, name, own.ctypes.data, len(own))


def order_of(draw: random.Random, rows: int) -> np.ndarray | None:
    """Return row numbers, of which some are none of the array's, or None: rows as they are."""
    if draw.random() < 0.7:
        return None
    return np.array([draw.choice((int((rows + 2) * draw.random()), 2**64 - 1)) for _ in range(rows)], np.uint64)


def encode_postgres(draw: random.Random) -> Execution:
    array = column(draw)
    (into,) = postgres_types.types([(draw.choice(OIDS), draw.choice((-1, -1, (9 << 16 | 2) + 4)))])
    while recipe(array.type, into) is None and draw.random() < 0.99:
        (into,) = postgres_types.types([(draw.choice(OIDS), -1)])
    encoder = postgres_encoder.Encoder(["c"], [array], [into])
    for _ in encoder.blocks(order_of(draw, len(array)), 0, len(array)):
        pass
    damage, out = Damage(encoder._keeps[0].structure), np.empty(1 << 12, np.uint8)

    def again() -> object:
        damage.do(draw)
        order = order_of(draw, len(array))
        if draw.random() < 0.1:
            return encoder.keys(0)
        progress = Progress()
        while progress.row < len(array) and not progress.reason and not progress.needs:
            library().arrow_wire_postgres_encode(
                encoder._columns, 1, None if order is None else order.ctypes.data, 0 if order is None else len(order),
                len(array), out.ctypes.data, len(out), byref(progress),
            )  # fmt: skip
        damage.undo()
        return progress.reason or None

    return again


def encode_clickhouse(draw: random.Random) -> Execution:
    array, room = column(draw), Room()
    columns = Columns([("c", array, draw.choice(TYPES))])
    rows = order_of(draw, len(array))
    columns.block(room, range(len(array)) if rows is None else rows)
    damage = Damage(columns._plans[0].node.array.contents)

    def again() -> object:
        damage.do(draw)
        rows = order_of(draw, len(array))
        result = clickhouse_blocks._encoded(columns._columns, 1, room, range(len(array)) if rows is None else rows)
        damage.undo()
        return result.failure or None

    return again


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


def require_valid(array: pa.Array) -> None:
    """Raise ArrowInvalid unless an array is right. Of decimals of ClickHouse some have more digits than their type."""
    array.validate(full="decimal" not in str(array.type))


def renew(targets: Targets) -> None:
    """Make columns anew, as those that a decoder failed in give nothing any more."""
    made = c_void_p()
    library().arrow_wire_columns_free(targets.address)
    library().arrow_wire_columns_new(targets._shapes, len(targets._types), byref(made))
    targets.address, targets._failed = made.value, ""


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

    def again() -> object:
        made, limit = changed(draw, data), draw.choice((1, 5, 1 << 40))
        progress = ReadProgress()
        with decoder._columns.in_use():
            place = byref(c_char.from_buffer(made)) if made else None
            library().arrow_wire_postgres_decode(
                decoder._lines, count, decoder._columns.address, framing, place, len(made), limit, byref(progress)
            )
        assert progress.position <= len(made)
        if progress.end == postgres_reader._WRONG:
            renew(decoder._columns)
            return progress.reason
        for array in decoder._columns.take():
            require_valid(array)
        return None

    return again


def decode_clickhouse(draw: random.Random) -> Execution:
    """Blocks that the encoder has made, in pieces, changed on the way."""
    sql_type = draw.choice(TYPES)
    text, enough = draw.choice((pa.string_view(), pa.large_string())), draw.choice((1, sys.maxsize))
    data = b""
    for _ in range(draw.choice((1, 2))):
        try:
            array = values(draw, draw.choice(ARROW), draw.choice((0, 1, 9)))
            data += bytes(Columns([("c", array, sql_type)]).block(Room(), range(len(array))))
        except (Error, TypeError, NotImplementedError):
            data += bytes([1, draw.randrange(1, 5)]) + head("c", sql_type) + draw.randbytes(draw.randrange(60))
    result = clickhouse_native.Result([("c", sql_type)], text)
    address = c_void_p()

    def begin_anew() -> None:
        functions().arrow_wire_clickhouse_decoder_free(result._address)
        renew(result._targets)
        functions().arrow_wire_clickhouse_decoder_new(result._columns, 1, result._targets.address, byref(address))
        result._address, result._open = address.value, False

    def again() -> object:
        made = np.frombuffer(changed(draw, data), np.uint8)
        start, piece = 0, draw.choice((13, *[1 << 19] * 9))
        try:
            fed, end = Fed(), min(piece, len(made))
            while end > start:
                fed = result.feed(made[start:end], enough)
                start += fed.consumed
                if fed.rows and fed.rows >= enough:
                    require_valid(result.take().column(0))
                elif end == len(made):
                    break
                else:
                    end = min(end + piece, len(made))
            if result._open or start < len(made):
                begin_anew()
            elif fed.rows:
                require_valid(result.take().column(0))
        except BaseException:
            begin_anew()
            raise

    return again


TARGETS: tuple[Callable[[random.Random], Execution], ...] = (
    encode_postgres, encode_clickhouse, decode_postgres, decode_clickhouse
)  # fmt: skip


def run(seed: int, ended: Counter[str]) -> int:
    """Run the executions of a seed, count how they ended, and return how many there were."""
    draw = random.Random(seed)
    target = TARGETS[seed % len(TARGETS)]
    again: Execution | None = None
    for number in range(BATCH):
        try:
            if again is None:
                again, said = target(draw), None
            else:
                said = again()
            how = "answered" if said is None else "refused"
        except (Error, TypeError, MemoryError, NotImplementedError) as error:
            how = keep(seed, number, target, "a check failed") if isinstance(error, CheckFailed) else "refused"
        except Exception:
            how = keep(seed, number, target, "another exception")
        ended[f"{target.__name__}: {how}"] += 1
        if again is None:  # there is nothing to damage
            break
    return number + 1


def keep(seed: int, number: int, target: Callable[[random.Random], Execution], what: str) -> str:
    (KEPT / f"{target.__name__}-{seed}-{number}.txt").write_text(traceback.format_exc(), "utf-8")
    return f"FAULT: {what}"


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
        while totals[number % len(TARGETS)] > 2 * min(totals) + BATCH:  # some end with their first execution
            number += 1
    for what, times in sorted(ended.items()):
        print(f"{times:>12,} {what}")
    total, spent = sum(ended.values()), time.process_time() - began
    print(f"{total:>12,} executions from seed {first} on, {total / spent:,.0f} a second of a core")
    sys.exit(any("FAULT" in what for what in ended))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, int(sys.argv[2]) if len(sys.argv) > 2 else None)
