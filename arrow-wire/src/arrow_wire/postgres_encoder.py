"""Rows of Arrow arrays as Postgres' binary COPY: https://www.postgresql.org/docs/current/sql-copy.html"""

from collections.abc import Iterator, Sequence
from ctypes import addressof, byref, c_uint32, pointer, sizeof
from functools import lru_cache
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arrow_wire import arrays, library
from arrow_wire.errors import UnsupportedType, WrongValue
from arrow_wire.postgres_recipes import Recipe, recipe
from arrow_wire.postgres_types import ServerType

HEADER, TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"  # of the whole COPY
BLOCK_BYTES, _FEW_ROWS = 1 << 17, 50
_BEGINNING, _SIZE = Struct("PP"), sizeof(library.Array)  # of a column: its array, its items
_SHOWN = 60  # characters of a value in a message
# The reasons why the server's type cannot hold a value: `postgres_column.Error`, from 1 on.
_REASONS = (
    "",
    "{value} does not fit {type}",
    "{value} has more digits or fractions of a second than {type}; round it first",
    "{value} does not have the form of {type}",
    "{value} does not form a rectangle: lists in {type} have one length, and none is null",
    "{value} is above 1 GB or 6 dimensions",
    "the array is damaged: its buffers are too short",
)


class Encoder:
    """Encodes rows of arrays, one for each column of the table, in their order or in another.

    A column may have several pieces. `names` are for messages. Several threads may encode different rows at a time.
    Raises UnsupportedType for a type that does not fit its column. Raises WrongValue, with column, row and reason, if a
    cast would change a value.
    """

    def __init__(self, names: Sequence[str], columns: Sequence[arrays.Values], types: Sequence[ServerType]) -> None:
        self._names, self._types = names, types
        self._arrays: list[arrays.Values] = list(columns)
        self._keeps: list[Any] = []
        plan = _flat(tuple([array.type for array in columns]), tuple(types))
        if plan and pa.ChunkedArray not in map(type, columns):
            ends, layouts = plan
            made = arrays.flat(columns, layouts)
            begin = addressof(made.structure)
            packed = [_BEGINNING.pack(begin + _SIZE * place, 0) + end for place, end in enumerate(ends)]
            self._columns = (library.Column * len(ends)).from_buffer_copy(b"".join(packed))
            self._keeps.append(made)
            return
        self._arrays.clear()
        lines = []
        for name, array, into in zip(names, columns, types, strict=True):
            found = recipe(array.type, into)
            if found is None:
                do = "make strings of them with str" if array.type == pa.uuid() else "cast it"
                raise UnsupportedType(f'column "{name}": {array.type} does not fit {into.shown}; {do}')
            if found.cast is not None or not arrays.is_read_in_place(array):
                arrays.require_whole(name, array)
            array = arrays.gathered(array)
            array = arrays.gathered(_cast(name, array, found.cast, into)) if found.cast is not None else array
            self._arrays.append(array)
            lines.append(self._line(arrays.described(array), found))
        self._columns = (library.Column * len(lines))(*lines)

    def _line(self, described: arrays.Described, found: Recipe) -> library.Column:
        self._keeps.append(described)
        return self._filled(described.structure, found)

    def _filled(self, structure: library.Array, found: Recipe) -> library.Column:
        item = None
        if found.item is not None and structure.child_count:
            item = pointer(self._filled(structure.children[0], found.item))
            self._keeps.append(item)
        return _column(pointer(structure), item, _for(structure, found.encoder), found)

    def blocks(self, order: "np.ndarray[Any, Any] | None", first: int, end: int) -> Iterator[memoryview]:
        """Yield rows `first` to `end`, of an order (uint64) or of the arrays, as bytes that the next block overwrites.
        Raises WrongValue for a value that its column cannot hold, with column, row and reason.
        """
        assert order is None or (order.dtype == np.uint64 and order.flags.c_contiguous and end <= len(order))
        size = BLOCK_BYTES if end - first > _FEW_ROWS else BLOCK_BYTES >> 4  # few rows: memory that malloc already has
        out, progress = np.empty(size, np.uint8), library.Progress(row=first)
        while progress.row < end:
            library.library().arrow_wire_postgres_encode(
                self._columns, len(self._columns), None if order is None else order.ctypes.data,
                0 if order is None else len(order), end, out.ctypes.data, len(out), byref(progress),
            )  # fmt: skip
            if progress.reason:
                raise self._complaint(progress)
            if progress.needs:
                out = np.empty(progress.needs, np.uint8)
            elif progress.written:
                yield out.data[: progress.written]

    def keys(self, column: int) -> "np.ndarray[Any, Any]":
        """Return a sort key for every row: the server's order of a column, or nearly."""
        keys = np.empty(len(self._arrays[column]), np.int64)
        damaged = c_uint32()
        library.library().arrow_wire_postgres_keys(
            byref(self._columns[column]), keys.ctypes.data, len(keys), byref(damaged)
        )
        if damaged.value:
            name = self._names[column]
            raise WrongValue(f'column "{name}": {_REASONS[-1]}', name)
        return keys

    def _complaint(self, progress: library.Progress) -> WrongValue:
        number, row = progress.column, progress.wrong
        return _complaint(self._names[number], row, self._arrays[number], self._types[number], progress.reason)


@lru_cache(256)
def _flat(
    arrow_types: tuple[pa.DataType, ...], types: tuple[ServerType, ...]
) -> tuple[list[bytes], list[tuple[int, int]]] | None:
    """Return the bytes of `library.Column` after its two pointers, and the layout of the array, for each column. Return
    None if an array is not flat or needs a cast.
    """
    found = [recipe(*pair) for pair in zip(arrow_types, types, strict=True)]
    layouts = arrays.flat_layouts(arrow_types)
    if layouts is None or any(one is None or one.item is not None or one.cast is not None for one in found):
        return None
    structures = [_column(None, None, one.encoder, one) for one in found if one is not None]
    return [bytes(one)[_BEGINNING.size :] for one in structures], layouts


def _column(array: Any, item: Any, encoder: str, found: Recipe) -> library.Column:
    low, high = found.limits
    return library.Column(
        array, item, library.number_of("postgres_encoder", encoder), found.oid,
        found.multiply, found.divide, found.shift, low, high, found.digits, found.scale, found.array_scale,
    )  # fmt: skip


def _for(structure: library.Array, encoder: str) -> str:
    """Return the encoder's name. For strings it ends with their layout, which differs for several pieces."""
    return f"{encoder.rpartition('_')[0]}_pieces" if structure.layout == arrays.PIECES else encoder


def _complaint(name: str, row: int, array: arrays.Values, into: ServerType, reason: int) -> WrongValue:
    try:
        damaged = reason == len(_REASONS) - 1 or row >= len(array) or arrays.first_wrong(array) is not None
        value = "a damaged array" if damaged else arrays.shown(array, row, _SHOWN)
    except (OverflowError, ValueError):  # a time that Python's own types do not hold
        value = " ".join(str(array.slice(row, 1)).split())[:_SHOWN]
    wrong = _REASONS[reason].format(value=value, type=into.shown)
    return WrongValue(f'column "{name}": row {row}: {wrong}', name, row)


def _cast(name: str, array: arrays.Values, arrow_type: pa.DataType, into: ServerType) -> arrays.Values:
    """Return the array as another type. Raises ValueError with the first row whose value would change."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    try:
        return _exact(array, arrow_type)
    except NotImplementedError as error:
        raise UnsupportedType(f'column "{name}": {array.type} does not fit {into.shown}: {error}') from None
    except ValueError:
        row = _first_wrong(array, arrow_type)
        raise _complaint(name, row, array, into, 1) from None


def _exact(array: arrays.Values, arrow_type: pa.DataType) -> arrays.Values:
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    made = array.cast(arrow_type)
    numbers = pa.types.is_boolean(arrow_type) and pa.types.is_primitive(array.type)
    if numbers and pc.any(pc.not_equal(made.cast(array.type), array)).as_py():
        raise ValueError("some values are more than a boolean")
    return made


def _first_wrong(array: arrays.Values, arrow_type: pa.DataType) -> int:
    """Return the first row that cannot be cast, by bisection."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _exact(array.slice(low, middle - low), arrow_type)
            low = middle
        except ValueError:
            high = middle
    return low
