"""Rows of Arrow arrays as Postgres' binary COPY, and back."""

from ctypes import POINTER, byref, cast, pointer
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from arrow_wire import arrays
from arrow_wire.library import Array, Column, Progress, library

BLOCK_BYTES = 1 << 17


class Encoder:
    """Encodes the rows of some arrays, one a column of the table, in the order in which they stand or in another."""

    def __init__(self, columns: Sequence[tuple[pa.Array, int]]) -> None:
        self._described = [arrays.described(array) for array, _ in columns]
        self._columns = (Column * len(columns))(
            *(Column(pointer(made.structure), number) for made, (_, number) in zip(self._described, columns))
        )

    def blocks(self, order: np.ndarray | None, first: int, end: int) -> Iterator[memoryview]:
        """Yield the rows from `first` to `end` of that order as bytes, which are overwritten by the next ones."""
        out, progress = np.empty(BLOCK_BYTES, np.uint8), Progress(row=first)
        while progress.row < end:
            library().arrow_wire_postgres_encode(
                self._columns, len(self._columns), None if order is None else order.ctypes.data,
                0 if order is None else len(order), end, out.ctypes.data, len(out), byref(progress),
            )
            if progress.wrong >= 0:
                raise ValueError(f"column {progress.wrong}")
            if progress.needs:
                out = np.empty(progress.needs, np.uint8)
            yield out.data[: progress.written]
