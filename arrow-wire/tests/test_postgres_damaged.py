"""Damaged input gives an error, never a crash: bytes that no server sends, and arrays that are none."""

import ctypes
import random
import struct
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from arrow_wire.errors import DamagedStream
from arrow_wire.errors import UnsupportedType as Unsupported
from arrow_wire.postgres_encoder import TRAILER, Encoder
from arrow_wire.postgres_reader import COPY, LARGE, MESSAGES, VIEWS, Decoder, reading
from arrow_wire.postgres_types import types
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import examples
from postgres_values import arrays
from test_postgres_layouts import encoded

OIDS = [16, 21, 23, 20, 700, 701, 25, 17, 2950, 1082, 1083, 1114, 1184, 1186, 1007, 1009, 1231]
NUMERICS = [(1700, (38 << 16 | 10) + 4), (1700, (76 << 16 | 30) + 4)]


def fed(data: bytes, columns, framing: int) -> None:
    """Decode bytes, which may be wrong in any way; arrays that came of it are whole."""
    decoder = Decoder([str(n) for n in range(len(columns))], [reading(one, VIEWS) for one in columns], framing)
    try:
        position = decoder.feed(memoryview(bytearray(data)), 0, 1000)
        assert 0 <= position <= len(data)
    except ValueError:
        return
    for array in decoder.take():
        array.validate(full="string" not in str(array.type))  # the server checks the encoding of strings


@examples(500)
@given(st.binary(max_size=200), st.sampled_from(OIDS), st.sampled_from([COPY, MESSAGES]))
def test_any_bytes(data, oid, framing):
    columns = types([(oid, -1)])
    fed(data, columns, framing)
    fed(struct.pack("!hi", 1, len(data)) + data, columns, COPY)
    fed(b"D" + struct.pack("!ihi", 10 + len(data), 1, len(data)) + data, columns, MESSAGES)


@pytest.mark.long
@pytest.mark.parametrize("byte", [0, 1, 0x7F, 0x80, 0xFF])
@pytest.mark.parametrize("oid", OIDS)
def test_values_of_the_same_byte_of_every_size(oid, byte):
    for size in range(40):
        fed(struct.pack("!hi", 1, size) + bytes([byte]) * size, types([(oid, -1)]), COPY)
        for at in range(size):
            value = bytearray(size)
            value[at] = byte
            fed(struct.pack("!hi", 1, size) + value, types([(oid, -1)]), COPY)


@examples(500)
@given(st.binary(max_size=60), st.sampled_from(NUMERICS))
def test_any_bytes_as_a_numeric(data, numeric):
    fed(struct.pack("!hi", 1, len(data)) + data, types([numeric]), COPY)
    groups = data[: len(data) // 2 * 2]
    value = struct.pack("!hhhh", len(groups) // 2, len(data) - 30, 0, 5) + groups
    fed(struct.pack("!hi", 1, len(value)) + value, types([numeric]), COPY)


@examples(300)
@given(arrays(), st.integers(0, 2**32))
def test_rows_with_some_wrong_bytes(made, seed):
    case, array = made
    data, source = bytearray(encoded(case, array) + TRAILER), random.Random(seed)
    for _ in range(source.randrange(1, 4)):
        data[source.randrange(len(data))] = source.randrange(256)
    fed(bytes(data[: source.randrange(len(data) + 1)]), [case.server], COPY)


@examples(300)
@given(arrays(), st.data())
def test_buffers_that_are_too_short_are_an_error(made, data):
    case, array = made
    encoder = Encoder(["one"], [array], [case.server])
    structure = encoder._keeps[0].structure
    if isinstance(structure, ctypes.Array):  # flat columns have theirs one behind the other
        structure = structure[0]
    while structure.child_count and data.draw(st.booleans()):
        structure = structure.children[0]
    for name in ("validity", "values", "data"):
        buffer = getattr(structure, name)
        buffer.size = data.draw(st.integers(0, buffer.size))
    complete = encoded(case, array)
    with suppress(ValueError):
        assert b"".join(bytes(block) for block in encoder.blocks(None, 0, len(array))) == complete


@examples(300)
@given(st.binary(min_size=64, max_size=64), st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
def test_offsets_that_point_anywhere_are_an_error_or_inside(garbage, arrow_type):
    width = {pa.string(): 4, pa.large_string(): 8, pa.string_view(): 16}[arrow_type]
    rows, offsets = 64 // width - 1, np.zeros(64, np.uint8)
    array = pa.Array.from_buffers(arrow_type, rows, [None, pa.py_buffer(offsets), pa.py_buffer(b"some bytes of text")])
    offsets[:] = np.frombuffer(garbage, np.uint8)  # pyarrow looks at them when the array is made
    for oid in (25, 2950, 3802, 869, 829):
        with suppress(ValueError):
            for block in Encoder(["one"], [array], types([(oid, -1)])).blocks(None, 0, rows):
                assert len(block) < 1000


@pytest.mark.parametrize("wrong", [[0, 4], [-1, 2], [2, 1], [0, 2**31 - 1]])
def test_lists_that_point_anywhere_are_an_error(wrong):
    items, offsets = pa.array([1, 2, 3], pa.int32()), np.zeros(2, np.int32)
    array = pa.Array.from_buffers(pa.list_(pa.int32()), 1, [None, pa.py_buffer(offsets)], children=[items])
    offsets[:] = wrong
    with pytest.raises(ValueError, match="buffers"):
        list(Encoder(["one"], [array], types([(1007, -1)])).blocks(None, 0, 1))


def test_rows_that_a_column_does_not_have_are_an_error():
    encoder = Encoder(["one"], [pa.array([1, 2], pa.int32())], types([(23, -1)]))
    with pytest.raises(ValueError, match="buffers"):
        list(encoder.blocks(np.array([0, 2], np.uint64), 0, 2))
    with pytest.raises(ValueError, match="buffers"):
        list(encoder.blocks(None, 0, 3))


ARROW_TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us")),
    *(pa.time64("ns"), pa.month_day_nano_interval(), pa.binary(16)),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.decimal32(9, 2), pa.decimal64(18, 5), pa.decimal128(38, 38), pa.decimal128(38, 0), pa.decimal256(76, 5)),
]


@pytest.mark.long
@pytest.mark.parametrize("arrow_type", ARROW_TYPES, ids=str)
def test_numbers_of_any_bytes_are_encoded_or_refused(arrow_type):
    width, source = arrow_type.bit_width // 8, random.Random(1)
    patterns = [bytes([byte]) * width for byte in (0, 1, 0x7F, 0x80, 0xFF)]
    patterns += [bytes(width - 1) + bytes([byte]) for byte in (0x7F, 0x80)] + [b"\xff" * (width - 1) + b"\x7f"]
    patterns += [source.randbytes(width) for _ in range(200)]
    arrays_of_one = [pa.Array.from_buffers(arrow_type, 1, [None, pa.py_buffer(pattern)]) for pattern in patterns]
    for into in types([*((oid, -1) for oid in OIDS), *NUMERICS, (1700, -1), (1700, (5 << 16 | 2) + 4)]):
        for array in arrays_of_one:
            try:
                blocks = b"".join(bytes(block) for block in Encoder(["one"], [array], [into]).blocks(None, 0, 1))
            except (Unsupported, ValueError):
                continue
            assert len(blocks) == 6 + struct.unpack_from("!i", blocks, 2)[0]


TWO = types([(23, -1), (20, -1), (25, -1), (1007, -1)])


def row(*values: bytes) -> bytes:
    return struct.pack("!h", len(values)) + b"".join(struct.pack("!i", len(one)) + one for one in values)


def whole_row(number: int) -> bytes:
    items = b"".join(struct.pack("!ii", 4, one) for one in range(number))
    array = struct.pack("!iiiii", 1, 0, 23, number, 1) + items
    return row(struct.pack("!i", number), struct.pack("!q", number), b"text", array)


ARRAY = struct.pack("!iii", 0, 0, 23)
WRONG = {
    "number": row(bytes(4), b"abc", b"x", ARRAY),
    "depth": row(bytes(4), bytes(8), b"x", struct.pack("!iiiiiiiii", 2, 0, 23, 1, 1, 1, 1, 4, 1)),
    "row": struct.pack("!h", 3) + bytes(40),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("then", ["take", "feed"])
def test_a_decoder_that_failed_says_so_and_gives_no_columns_of_different_lengths(wrong, then):
    decoder = Decoder("abcd", [reading(one, VIEWS) for one in TWO], COPY)
    rows = b"".join(map(whole_row, range(1, 6)))
    decoder.feed(memoryview(bytearray(rows)), 0, 1000)
    assert {len(array) for array in decoder.take()} == {5}
    with pytest.raises(ValueError, match=r'column "\w": row ') as first:
        decoder.feed(memoryview(bytearray(rows + WRONG[wrong] + rows)), 0, 1000)
    for _ in range(2):
        with pytest.raises(ValueError, match="this decoder has failed") as caught:
            decoder.take() if then == "take" else decoder.feed(memoryview(bytearray(rows)), 0, 1000)
        assert str(first.value) in str(caught.value)


LYING = {
    "string": (pa.string(), np.int32, [0, 2, 10**6, 4], 1),
    "large_string": (pa.large_string(), np.int64, [0, 1, 2**60, 4], 1),
    "falling": (pa.large_string(), np.int64, [0, 3, 1, 4], 1),
    "negative": (pa.binary(), np.int32, [0, -5, 2, 4], 0),
}


def lying(how: str) -> pa.Array:
    """Return an array of three values whose offsets pyarrow has not seen: it looks at the first and the last."""
    arrow_type, width, offsets, _ = LYING[how]
    return pa.Array.from_buffers(arrow_type, 3, [None, pa.py_buffer(np.array(offsets, width)), pa.py_buffer(b"1234")])


@pytest.mark.parametrize("how", LYING)
@pytest.mark.parametrize("oid", [16, 21, 23, 20, 700, 701, 25, 17, 1082, 1114, 1184, 1700])
@pytest.mark.parametrize("pieces", ["one", "two", "many"])
def test_offsets_that_lie_are_an_error_with_column_and_row_before_arrow_casts_by_them(how, oid, pieces):
    array = lying(how)
    column = {
        "one": array,
        "two": pa.chunked_array([pa.array(["1", "2"], array.type), array]),
        "many": pa.chunked_array([*[pa.array(["1"], array.type)] * 300, array]),
    }[pieces]
    before = len(column) - 3
    with pytest.raises((ValueError, Unsupported)) as caught:
        for _ in Encoder(["one"], [column], types([(oid, -1)])).blocks(None, 0, len(column)):
            pass
    assert isinstance(caught.value, Unsupported) or f'column "one": row {before + LYING[how][3]}: ' in str(caught.value)


def test_an_index_of_a_dictionary_that_lies_is_an_error_before_arrow_looks_it_up():
    indices = np.array([0, 1, 10**8], np.int32)
    array = pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(["1", "2"]), safe=False)
    with pytest.raises(ValueError, match='column "one": row 2: '):
        list(Encoder(["one"], [array], types([(23, -1)])).blocks(None, 0, 3))


NO_UTF_8 = {"byte": b"a\xe9b", "cut": "é".encode()[:1], "long": b"x" * 40 + b"\xff", "surrogate": b"\xed\xa0\x80"}


@pytest.mark.parametrize("wrong", NO_UTF_8)
@pytest.mark.parametrize("style", [VIEWS, LARGE], ids=["views", "large"])
@pytest.mark.parametrize("oid", [25, 1043, 1009], ids=["text", "varchar", "text[]"])
def test_strings_that_are_no_utf_8_are_an_error_with_column_and_row(oid, style, wrong):
    def sent(text: bytes) -> bytes:
        items = struct.pack("!iiiiii", 1, 0, 25, 1, 1, len(text)) + text
        return row(items if oid == 1009 else text)

    (into,) = types([(oid, -1)])
    decoder = Decoder("c", [reading(into, style)], COPY)
    right = sent("é".encode()) + sent(b"ascii") + sent(b"")
    decoder.feed(memoryview(bytearray(right)), 0, 9)
    (array,) = decoder.take()
    array.validate(full=True)
    with pytest.raises(DamagedStream, match='column "c": row 6: a string is not UTF-8') as caught:
        decoder.feed(memoryview(bytearray(right + sent(NO_UTF_8[wrong]))), 0, 9)
    assert (caught.value.column, caught.value.row) == ("c", 6)
