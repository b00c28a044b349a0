"""`decimals_and_moments`: two decimals and two timestamps with a zone, 56 bytes a row in Arrow.

The decimals have at most 12 and 15 digits, which a float preserves, so a client can lose the type but not a value.
"""

import numpy as np
import pyarrow as pa

from harness.datasets.seeded import Words
from harness.datasets.shapes.chunks import moments, specification


def _decimals(words: np.ndarray, precision: int, scale: int) -> pa.Array:
    """Return decimals with this many digits: 128-bit integers whose upper half is zero."""
    halves = np.zeros((len(words), 2), np.uint64)
    halves[:, 0] = words % np.uint64(10 ** min(precision, 14))
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(words), [None, pa.py_buffer(halves)])


def _made(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    return {
        "price": _decimals(words(), 12, 2),
        "rate": _decimals(words(), 15, 6),
        "placed": moments(words(), "UTC"),
        "changed": moments(words(), "UTC"),
    }


_LOGICAL_TYPES = {
    "price": "decimal(12, 2)",
    "rate": "decimal(15, 6)",
    "placed": "timestamp_tz",
    "changed": "timestamp_tz",
}
SPECIFICATION = specification("decimals_and_moments", _LOGICAL_TYPES, _made, bytes_a_row=140)
