"""Arrow arrays of pyarrow as the compiled library reads them: addresses and sizes of their buffers."""

import ctypes
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from arrow_wire.errors import WrongValue
from arrow_wire.library import Array, Buffer

NOTHING, BITS, FIXED, TEXT32, TEXT64, VIEW, LIST32, LIST64, LIST_FIXED, FIELDS, DICTIONARY, PIECES = range(12)
Values: TypeAlias = pa.Array | pa.ChunkedArray  # of a column, in one piece or in several
# The buffers of a layout that its structure has; of views there are more.
_BUFFERS: dict[int, tuple[str, ...]] = {NOTHING: (), LIST_FIXED: ("validity",), FIELDS: ("validity",)}
_BUFFERS |= dict.fromkeys((BITS, FIXED, VIEW, LIST32, LIST64, DICTIONARY), ("validity", "values"))
_BUFFERS |= dict.fromkeys((TEXT32, TEXT64), ("validity", "values", "data"))
_FLAT = {BITS, FIXED, TEXT32, TEXT64, VIEW}
_ARRAY = "IINNPNPNPNPNPN"  # `Array`: packed in a third of the time of ctypes
_MOST_PIECES = 256  # their numbers are a byte
_SHOWN = 1 << 20  # bytes or items of a value that a message can show
_INLINE = 12  # bytes of the longest string that is inside its view


@dataclass
class Described:
    """The structure of an array, or of several, and the objects that must stay alive while it is used."""

    structure: Any
    keeps: list[Any] = field(default_factory=list)


def gathered(column: Values) -> Values:
    """Return a column as one array. Up to 256 arrays of strings stay separate: encoders read them in place."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    pieces = [piece for piece in column.chunks if len(piece)]
    if len(pieces) == 1:
        return pieces[0]
    if is_read_in_place(column):
        return pa.chunked_array(pieces, column.type)
    return pa.concat_arrays(column.unify_dictionaries().chunks) if pieces else pa.array([], column.type)


def is_read_in_place(column: Values) -> bool:
    """Whether `gathered` leaves all values where they are."""
    if isinstance(column, pa.Array) or column.num_chunks == 1:
        return True
    pieces = sum(len(piece) > 0 for piece in column.chunks)
    return pieces == 1 or (1 < pieces <= _MOST_PIECES and is_text(column.type))


@lru_cache(1024)
def is_text(arrow_type: pa.DataType) -> bool:
    """Whether values are strings or bytes of any length."""
    return any(is_one(arrow_type) for is_one, layout in _LAYOUTS if layout in (TEXT32, TEXT64, VIEW))


def flat_layouts(arrow_types: Iterable[pa.DataType]) -> list[tuple[int, int]] | None:
    """Return the layouts of types, with the widths of their values; None if an array of one type has children."""
    if any(isinstance(one, pa.BaseExtensionType) for one in arrow_types):
        return None
    found = [layout_of(one) for one in arrow_types]
    return found if all(layout in _FLAT for layout, _ in found) else None


def flat(columns: Sequence[pa.Array], layouts: list[tuple[int, int]]) -> Described:
    """Return the structures of arrays of flat layouts, one after the other.

    That takes a third of the time of `described`, which matters for a few rows.
    """
    numbers: list[int] = []
    more: list[int] = []  # the buffers of views
    views: list[tuple[int, int]] = []  # places of their addresses: in `numbers`, in `more`
    for array, (layout, width) in zip(columns, layouts, strict=True):
        validity, values, *others = array.buffers()
        numbers += (layout, width, len(array), array.offset)
        numbers += (validity.address, validity.size) if validity is not None else (0, 0)
        numbers += (values.address, values.size) if values is not None else (0, 0)
        if layout == VIEW:
            views.append((len(numbers) + 2, len(more)))
            numbers += (0, 0, 0, len(others), 0, 0)
            for one in others:
                more += (one.address, one.size) if one is not None else (0, 0)
        elif others and others[0] is not None:
            numbers += (others[0].address, others[0].size, 0, 0, 0, 0)
        else:
            numbers += (0, 0, 0, 0, 0, 0)
    buffers = (ctypes.c_size_t * max(1, len(more)))(*more)
    begin = ctypes.addressof(buffers)
    for place, number in views:
        numbers[place] = begin + number * ctypes.sizeof(ctypes.c_size_t)
    packed = struct.pack(_ARRAY * len(layouts), *numbers)
    return Described((Array * len(layouts)).from_buffer_copy(packed), [*columns, buffers])


def described(array: Values) -> Described:
    """Return the structure of an array and its children. Raises TypeError for a layout that no encoder reads."""
    if isinstance(array, pa.ChunkedArray):
        return _pieces(array)
    if isinstance(array, pa.ExtensionArray):
        return described(array.storage)
    layout, width, children = _layout(array)
    made = Described(Array(), [array])
    structure = made.structure
    structure.layout, structure.width = layout, width
    structure.length, structure.offset = len(array), array.offset
    buffers = array.buffers()
    for name, buffer in zip(_BUFFERS[layout], buffers, strict=False):
        if buffer is not None:
            setattr(structure, name, Buffer(buffer.address, buffer.size))
    if layout == VIEW:
        more = (Buffer * max(1, len(buffers) - 2))(*map(_buffer, buffers[2:]))
        structure.more, structure.more_count = more, len(buffers) - 2
        made.keeps.append(more)
    if children:
        below = [described(child) for child in children]
        structure.children = (Array * len(below))(*(one.structure for one in below))
        structure.child_count = len(below)
        made.keeps += [structure.children, *below]
    return made


def _pieces(column: pa.ChunkedArray) -> Described:
    """Return the structure of strings in several arrays: `arrow.Array.piece`."""
    below = [described(piece) for piece in column.chunks]
    starts = np.cumsum([0, *map(len, column.chunks)], dtype=np.uint64)
    shift = max(0, (len(column) - 1).bit_length() - 8)
    found = np.searchsorted(starts, np.arange(0, len(column), 1 << shift, dtype=np.uint64), side="right") - 1
    valid = pa.concat_arrays(column.is_valid().chunks).buffers()[1] if column.null_count else None
    kept = [pa.py_buffer(starts), pa.py_buffer(found.astype(np.uint8)), valid]
    made = Described(Array(), [*below, *kept])
    structure = made.structure
    structure.layout, structure.width, structure.length = PIECES, shift, len(column)
    structure.values, structure.data, structure.validity = map(_buffer, kept)
    structure.children = (Array * len(below))(*(one.structure for one in below))
    structure.child_count = len(below)
    made.keeps.append(structure.children)
    return made


def require_whole(name: str, column: Values) -> None:
    """Raise ValueError, with column and row, if a column refers to values that it does not have.

    Compiled code checks every row that it encodes. Arrow does not check offsets, views and indices before it casts a
    column or joins its pieces, so they must be right.
    """
    row = first_wrong(column)
    if row is None:
        try:
            column.validate()
        except pa.ArrowInvalid:
            row = 0
    if row is not None:
        raise WrongValue(
            f'column "{name}": row {row}: the array is damaged: its buffers are too short, or offsets point outside '
            "them",
            name,
            row,
        )


def first_wrong(column: Values) -> int | None:
    """Return the first row that refers to values outside its array; None if all are right."""
    if isinstance(column, pa.ChunkedArray):
        before = 0
        for piece in column.chunks:
            if (row := first_wrong(piece)) is not None:
                return before + row
            before += len(piece)
        return None
    if isinstance(column, pa.ExtensionArray):
        return first_wrong(column.storage)
    if not len(column):
        return None
    layout, width, children = _layout(column)
    buffers = column.buffers()
    if layout in (TEXT32, TEXT64, LIST32, LIST64):
        dtype = "i8" if layout in (TEXT64, LIST64) else "i4"
        offsets = _numbers(buffers[1], dtype)[column.offset : column.offset + len(column) + 1]
        if children:
            return _first_wrong_list(offsets, len(column), children[0])
        return _first_wrong_offset(offsets, len(column), 0 if buffers[2] is None else buffers[2].size)
    if layout == VIEW:
        return _first_wrong_view(column, buffers)
    if layout == DICTIONARY:
        dtype = "u" if pa.types.is_unsigned_integer(column.type.index_type) else "i"
        indices = _numbers(buffers[1], f"{dtype}{width}")[column.offset : column.offset + len(column)]
        if len(indices) < len(column):
            return len(indices)
        below = first_wrong(column.dictionary)
        wrong = (indices < 0) | (indices >= len(column.dictionary)) | (indices == (-1 if below is None else below))
        return _first(wrong & _valid(column))
    rows = [row for child in children if (row := first_wrong(child)) is not None]
    if layout == LIST_FIXED:
        rows = [min(max(row // max(width, 1) - column.offset, 0), len(column) - 1) for row in rows]
    return min(rows, default=None)


def shown(column: Values, row: int, most: int) -> str:
    """Return a value as a message shows it, cut to a number of characters, or its length if that is above 1 MB.

    Raises OverflowError or ValueError if Python's own types cannot hold it.
    """
    one = column.slice(row, 1)
    one = one if isinstance(one, pa.Array) else next(piece for piece in one.chunks if len(piece))
    layout, _, children = _layout(one.storage if isinstance(one, pa.ExtensionArray) else one)
    if layout in (TEXT32, TEXT64, LIST32, LIST64, VIEW) and not one.null_count:
        ends = _numbers(one.buffers()[1], "i8" if layout in (TEXT64, LIST64) else "i4")
        size = int(ends[4 * one.offset] if layout == VIEW else ends[one.offset + 1] - ends[one.offset])
        if size > _SHOWN:  # which Arrow would copy
            return f"one of {size:,} {'items' if children else 'bytes'}"
    found = repr(one[0].as_py())
    return found if len(found) <= most else f"{found[:most]}..."


def _first_wrong_offset(offsets: "np.ndarray[Any, Any]", rows: int, size: int) -> int | None:
    """Return the first row whose offsets decrease, or exceed this number of bytes or items."""
    if len(offsets) <= rows:
        return max(0, len(offsets) - 1)
    return _first((offsets[:-1] < 0) | (offsets[1:] < offsets[:-1]) | (offsets[1:] > size))


def _first_wrong_list(offsets: "np.ndarray[Any, Any]", rows: int, items: pa.Array) -> int | None:
    row = _first_wrong_offset(offsets, rows, len(items))
    if row is None and (item := first_wrong(items)) is not None:
        row = min(max(int(np.searchsorted(offsets, item, side="right")) - 1, 0), rows - 1)
    return row


def _first_wrong_view(column: pa.Array, buffers: list[pa.Buffer | None]) -> int | None:
    views = _numbers(buffers[1], "i4")[4 * column.offset : 4 * (column.offset + len(column))]
    if len(views) < 4 * len(column):
        return len(views) // 4
    size, number, first = views[0::4], views[2::4], views[3::4].astype(np.int64)
    sizes = np.array([0 if one is None else one.size for one in buffers[2:]] + [0], np.int64)
    known = (number >= 0) & (number < len(sizes) - 1)
    beyond = (first < 0) | (first + size > sizes[np.where(known, number, -1)]) | ~known
    return _first(((size < 0) | (size > _INLINE) & beyond) & _valid(column))


def _numbers(buffer: pa.Buffer | None, dtype: str) -> "np.ndarray[Any, Any]":
    if buffer is None or buffer.size < np.dtype(dtype).itemsize:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, buffer.size // np.dtype(dtype).itemsize)


def _valid(column: pa.Array) -> "np.ndarray[Any, Any]":
    bits = column.buffers()[0]
    if bits is None:
        return np.ones(len(column), bool)
    end = column.offset + len(column)
    found = np.unpackbits(_numbers(bits, "u1"), count=end, bitorder="little")  # zeros after a buffer that is too short
    return found[column.offset :].astype(bool)


def _first(wrong: "np.ndarray[Any, Any]") -> int | None:
    return int(wrong.argmax()) if wrong.any() else None


def _buffer(buffer: pa.Buffer | None) -> Buffer:
    return Buffer(buffer.address, buffer.size) if buffer is not None else Buffer(None, 0)


def _layout(array: pa.Array) -> tuple[int, int, list[pa.Array]]:
    """Return the layout of an array, the width of its values, and its children without offsets."""
    arrow_type = array.type
    layout, width = layout_of(arrow_type)
    if layout in (LIST32, LIST64, LIST_FIXED):
        return layout, width, [array.values]
    if layout == FIELDS:
        return layout, width, [array.field(i) for i in range(arrow_type.num_fields)]
    return layout, width, [array.dictionary] if layout == DICTIONARY else []


@lru_cache(1024)
def layout_of(arrow_type: pa.DataType) -> tuple[int, int]:
    """Return the layout of a type's arrays and the width of their values. Raises TypeError for an unknown layout."""
    for is_one, layout in _LAYOUTS:
        if is_one(arrow_type):
            return layout, 0
    if pa.types.is_fixed_size_list(arrow_type):
        return LIST_FIXED, arrow_type.list_size
    if pa.types.is_dictionary(arrow_type):
        return DICTIONARY, arrow_type.index_type.byte_width
    try:
        return FIXED, arrow_type.byte_width
    except ValueError:
        raise TypeError(f"the layout of {arrow_type} is not known") from None


_LAYOUTS = (
    (pa.types.is_null, NOTHING),
    (pa.types.is_boolean, BITS),
    (pa.types.is_string, TEXT32),
    (pa.types.is_binary, TEXT32),
    (pa.types.is_large_string, TEXT64),
    (pa.types.is_large_binary, TEXT64),
    (pa.types.is_string_view, VIEW),
    (pa.types.is_binary_view, VIEW),
    (pa.types.is_list, LIST32),
    (pa.types.is_map, LIST32),
    (pa.types.is_large_list, LIST64),
    (pa.types.is_struct, FIELDS),
)
