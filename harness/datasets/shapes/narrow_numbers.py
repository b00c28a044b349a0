"""`narrow_numbers`: an id and five numbers, 40 bytes a row in Arrow; only fixed widths."""

import numpy as np
import pyarrow as pa

from harness.datasets.seeded import Words, fractions
from harness.datasets.shapes.chunks import specification


def _made(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    return {
        "place": pa.array((words() % 1_000).astype(np.int32)),
        "count": pa.array((words() % 1_000_000).astype(np.int32)),
        "total": pa.array((words() % 10**12).astype(np.int64)),
        "share": pa.array(fractions(words())),
        "measure": pa.array(fractions(words()) * 2_000.0 - 1_000.0),
    }


_LOGICAL_TYPES = {"place": "int32", "count": "int32", "total": "int64", "share": "float64", "measure": "float64"}
SPECIFICATION = specification("narrow_numbers", _LOGICAL_TYPES, _made, bytes_a_row=80)
