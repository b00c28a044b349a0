"""Arrow arrays from blocks of ClickHouse's Native format, a piece at a time."""

import sys
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_void_p, pointer
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from arrow_wire import columns
from arrow_wire.clickhouse_library import Fed, ResultColumn, functions
from arrow_wire.clickhouse_shapes import Form, form
from arrow_wire.clickhouse_types import head, parsed
from arrow_wire.errors import DamagedStream, WrongValue
from arrow_wire.library import Buffer

PIECE_BYTES = 1 << 19  # at a time: it is decoded while it is still in the processor's cache
_FORM, _RANGE, _TEXT, _DAMAGED, _CHANGED, _MEMORY = range(1, 7)
_FOUND = {
    _FORM: "a number is not a value of {type}",
    _RANGE: "a value of {type} is out of range for {arrow_type}",
    _TEXT: "a string is not UTF-8; select hex() of it",
    _DAMAGED: "its bytes are not values of {type}",
    _CHANGED: "it is no longer of {type}, because the columns were changed; read again",
}


class Result:
    """Columns of a result, each with its name and the name of its type, to be filled piece by piece.

    `text` is the Arrow type of strings. Raises TypeError for a type that is not known here, and names its column.
    """

    def __init__(self, names_and_types: Sequence[tuple[str, str]], text: pa.DataType) -> None:
        self._plan = _planned(tuple(names_and_types), text)
        self.schema = self._plan.schema
        self._targets = columns.Columns(self.schema.types)
        self._free = functions().arrow_wire_clickhouse_decoder_free  # at the interpreter's end globals are gone
        made = c_void_p()
        functions().arrow_wire_clickhouse_decoder_new(
            self._plan.columns, len(names_and_types), self._targets.address, byref(made)
        )
        self._address = made.value
        if not self._address:
            raise MemoryError(f"no memory for {len(names_and_types)} columns")
        self._open = False

    def __del__(self) -> None:
        if getattr(self, "_address", None):
            self._free(self._address)
            self._address = None

    def feed(self, piece: np.ndarray, enough: int = sys.maxsize) -> Fed:
        """Decode bytes to their end, or to the end of the block that makes `enough` rows.

        `piece` is of uint8, without gaps. Returns the number of bytes used, the rows of all complete blocks, and
        whether a block is open. Raises ValueError for bytes that are not a block of these columns; after that nothing
        can be decoded or taken.
        """
        if piece.dtype != np.uint8 or piece.ndim != 1 or not piece.flags.c_contiguous:
            raise TypeError(f"bytes come as one array of uint8 without gaps, not as {piece.dtype}, {piece.strides}")
        fed = Fed()
        with self._targets.in_use():
            functions().arrow_wire_clickhouse_decode(self._address, piece.ctypes.data, len(piece), enough, byref(fed))
            if fed.failure:
                raise self._complaint(fed)
            self._open = bool(fed.open)
        return fed

    def _complaint(self, fed: Fed) -> Exception:
        if not self.schema.names:
            return DamagedStream("the server sent columns, and none were asked for")
        field = self.schema.field(fed.column)
        if fed.failure == _MEMORY:
            return MemoryError(f'column "{field.name}": no memory for its values')
        wrong = _FOUND[fed.failure].format(type=self._plan.types[fed.column], arrow_type=field.type)
        error = DamagedStream if fed.failure in (_DAMAGED, _CHANGED) else WrongValue
        return error(f'column "{field.name}": {wrong}', field.name)

    def take(self) -> pa.RecordBatch:
        """Return the rows of all blocks until now, without a copy.

        Raises ValueError if a block is open, because its rows are not whole, and after an error of `feed`.
        """
        if self._open:
            raise ValueError("a block is still open; feed the rest of it before its rows are taken")
        arrays = self._targets.take()
        functions().arrow_wire_clickhouse_decoder_taken(self._address)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def batches(
    result: Result, readinto: Callable[[memoryview], int], enough: int = sys.maxsize
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream, in batches of at least `enough` rows; an empty stream is one batch without rows.

    `readinto` fills memory from its beginning and returns how many bytes it filled, 0 at the end of the stream.
    Raises ValueError for a stream that is damaged or ends within a block.
    """
    data, start, end, yielded, fed = np.empty(PIECE_BYTES, np.uint8), 0, 0, False, Fed()
    while True:
        rest = data[start:end]
        if len(rest) > len(data) // 2:  # in the middle of a long string
            data = np.empty(3 * len(data), np.uint8)
        data[: len(rest)] = rest.copy() if rest.base is data else rest
        size = readinto(data.data[len(rest) :])
        if not size:
            break
        start, end = 0, len(rest) + size
        while True:
            fed = result.feed(data[start:end], enough)
            start += fed.consumed
            if fed.rows < enough:
                break
            yield result.take()
            yielded = True
    if start < end or fed.open:
        raise DamagedStream("the server's result ends within a block")
    if fed.rows or not yielded:
        yield result.take()


class _Plan(NamedTuple):
    """The names of the types of a result, its schema, and how its columns are decoded, which results share.

    `keeps` must stay alive.
    """

    types: list[str]
    schema: pa.Schema
    columns: Any
    keeps: list[Any]


@lru_cache(256)
def _planned(names_and_types: tuple[tuple[str, str], ...], text: pa.DataType) -> _Plan:
    forms = [_form(name, sql_type, text) for name, sql_type in names_and_types]
    heads = [(head(name, sql_type), head(name, _older(sql_type))) for name, sql_type in names_and_types]
    kept = [tuple(map(pa.py_buffer, pair)) for pair in heads]
    lines = (
        ResultColumn(*(Buffer(one.address, one.size) for one in pair), pointer(made.node))
        for pair, made in zip(kept, forms, strict=True)
    )
    schema = pa.schema([(name, made.arrow_type) for (name, _), made in zip(names_and_types, forms, strict=True)])
    types = [sql_type for _, sql_type in names_and_types]
    return _Plan(types, schema, (ResultColumn * len(forms))(*lines), [kept, forms])


def _form(name: str, sql_type: str, text: pa.DataType) -> Form:
    try:
        return form(parsed(sql_type), text)
    except TypeError as error:
        raise TypeError(f'column "{name}": {error}; cast it in a view, or read in another way') from None


def _older(sql_type: str) -> str:
    """Return the name of a type as it is on the wire for clients that name no revision: NativeWriter.cpp."""
    return "DateTime" if sql_type.startswith("DateTime(") else sql_type
