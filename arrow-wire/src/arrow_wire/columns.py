"""Arrow columns that the compiled library fills: `zig/builders.zig`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ctypes import addressof, byref, c_uint32, c_void_p
from functools import lru_cache
from typing import Any

import pyarrow as pa

from arrow_wire.arrays import FIELDS, LIST32, LIST64, LIST_FIXED, layout_of
from arrow_wire.library import ArrowArray, Shape, library


class Columns:
    """The columns of one result: a decoder fills them, `take` hands over their contents."""

    def __init__(self, types: Iterable[pa.DataType]) -> None:
        self._types = list(types)
        self._shapes = _shapes(tuple(self._types))
        made = c_void_p()
        library().arrow_wire_columns_new(self._shapes, len(self._types), byref(made))
        self.address = made.value
        if not self.address:
            raise MemoryError(f"no memory for {len(self._types)} columns")
        self._free = library().arrow_wire_columns_free  # kept, as at the interpreter's end globals are gone
        self._failed = ""  # how

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let one call of a decoder change them. After an error no caller gets these columns. Raises ValueError if an
        earlier call failed.
        """
        if self._failed:
            raise ValueError(f"this decoder has failed ({self._failed}); make another")
        self._failed = "a call of it did not end"
        try:
            yield
        except BaseException as error:
            self._failed = str(error) or type(error).__name__
            raise
        self._failed = ""

    def take(self) -> list[pa.Array]:
        """Return one array for each column, without a copy; then the columns are empty and can be filled again. Raises
        ValueError if a call of their decoder has failed.
        """
        with self.in_use():
            return self._taken()

    def _taken(self) -> list[pa.Array]:
        arrays = []
        for number, arrow_type in enumerate(self._types):
            made, taken = ArrowArray(), c_uint32()
            library().arrow_wire_columns_take(self.address, number, byref(made), byref(taken))
            if not taken.value:
                raise MemoryError(f"no memory for an array of {arrow_type}")
            arrays.append(pa.Array._import_from_c(addressof(made), arrow_type))
        return arrays

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._free(self.address)
            self.address = None


@lru_cache(256)
def _shapes(types: tuple[pa.DataType, ...]) -> Any:
    return (Shape * len(types))(*map(_shape, types))


@lru_cache(1024)
def _shape(arrow_type: pa.DataType) -> Shape:
    """Return the shape of a type's columns; an extension type has the shape of its storage."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _shape(arrow_type.storage_type)
    layout, width = layout_of(arrow_type)
    below: list[pa.DataType] = []
    if layout == FIELDS:
        below = [arrow_type.field(i).type for i in range(arrow_type.num_fields)]
    elif layout in (LIST32, LIST64, LIST_FIXED):
        entries = (
            pa.struct([arrow_type.key_field.with_nullable(False), arrow_type.item_field])
            if pa.types.is_map(arrow_type)
            else None
        )
        below = [entries or arrow_type.value_type]
    children = (Shape * len(below))(*map(_shape, below))
    return Shape(layout, width, children, len(below))
