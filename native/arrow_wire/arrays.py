"""Arrow arrays of pyarrow as the compiled library reads them: addresses and sizes of their buffers."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from arrow_wire.library import Array, Buffer

NOTHING, BITS, FIXED, TEXT32, TEXT64, VIEW, LIST32, LIST64, LIST_FIXED, FIELDS, DICTIONARY, PIECES = range(12)
Values: TypeAlias = pa.Array | pa.ChunkedArray  # of a column, in one piece or in several
_MOST_PIECES = 256  # their numbers are a byte


@dataclass
class Described:
    """The structure of an array, and what has to stay alive as long as it is used."""

    structure: Array
    keeps: list[Any] = field(default_factory=list)


def gathered(column: Values) -> Values:
    """Return a column as one array; but texts that stand in several are read where they are, up to 256 of these."""
    if isinstance(column, pa.Array):
        return column
    pieces = [piece for piece in column.chunks if len(piece)]
    if len(pieces) > 1 and len(pieces) <= _MOST_PIECES and is_text(column.type):
        return pa.chunked_array(pieces)
    if len(pieces) == 1:
        return pieces[0]
    return pa.concat_arrays(column.unify_dictionaries().chunks) if pieces else pa.array([], column.type)


def is_text(arrow_type: pa.DataType) -> bool:
    """Whether values are texts or bytes of any length."""
    return any(is_one(arrow_type) for is_one, layout in _LAYOUTS if layout in (TEXT32, TEXT64, VIEW))


def described(array: Values) -> Described:
    """Return the structure of what `gathered` gives and of all below it.

    Raises TypeError for a layout that nobody here reads.
    """
    if isinstance(array, pa.ChunkedArray):
        return _pieces(array)
    made = Described(Array(), [array])
    if isinstance(array, pa.ExtensionArray):
        return described(array.storage)
    layout, width, children = _layout(array)
    structure = made.structure
    structure.layout, structure.width = layout, width
    structure.length, structure.offset = len(array), array.offset
    buffers = array.buffers()
    if layout != NOTHING:
        structure.validity = _buffer(buffers[0])
    if layout in (BITS, FIXED, TEXT32, TEXT64, VIEW, LIST32, LIST64, DICTIONARY):
        structure.values = _buffer(buffers[1])
    if layout in (TEXT32, TEXT64):
        structure.data = _buffer(buffers[2])
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
    """Return the structure of texts in several arrays: `arrow.Array.piece`."""
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


def _buffer(buffer: pa.Buffer | None) -> Buffer:
    return Buffer(buffer.address, buffer.size) if buffer is not None else Buffer(None, 0)


def _layout(array: pa.Array) -> tuple[int, int, list[pa.Array]]:
    """Return the layout of an array, the width of its values and its children, which begin where their buffers do."""
    arrow_type = array.type
    layout, width = layout_of(arrow_type)
    if layout in (LIST32, LIST64, LIST_FIXED):
        return layout, width, [array.values]
    if layout == FIELDS:
        return layout, width, [array.field(i) for i in range(arrow_type.num_fields)]
    return layout, width, [array.dictionary] if layout == DICTIONARY else []


def layout_of(arrow_type: pa.DataType) -> tuple[int, int]:
    """Return the layout of a type's arrays and the width of their values. Raises TypeError for one not known here."""
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
        raise TypeError(f"expected an array of a known layout, found {arrow_type}") from None


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
