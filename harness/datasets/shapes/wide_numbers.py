"""`wide_numbers`: 200 numeric columns, 1,336 bytes a row in Arrow: shows a client's work per column, 200 times."""

import numpy as np
import pyarrow as pa

from harness.datasets.seeded import Words, fractions
from harness.datasets.shapes.chunks import specification

_OF = ("int32", "int64", "float64")
_LOGICAL_TYPES = {f"c{place:03d}": _OF[place % 3] for place in range(199)}


def _made(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    return {name: _column(logical, words()) for name, logical in _LOGICAL_TYPES.items()}


def _column(logical: str, words: np.ndarray) -> pa.Array:
    if logical == "float64":
        return pa.array(fractions(words) * 1_000.0)
    return pa.array((words % 1_000_000).astype(logical))


SPECIFICATION = specification("wide_numbers", _LOGICAL_TYPES, _made, bytes_a_row=2_700)
