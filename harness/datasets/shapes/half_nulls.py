"""`half_nulls`: five columns of five logical types with half of their values missing, about 42 bytes a row in Arrow."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.datasets.seeded import Words, chosen, fractions
from harness.datasets.shapes.chunks import moments, specification

_TEXTS = [f"label_{number:04d}" for number in range(5_000)]


def _made(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    whole = {
        "count": pa.array((words() % 1_000_000).astype(np.int64)),
        "measure": pa.array(fractions(words()) * 1_000.0),
        "label": chosen(pa.array(_TEXTS), words()),
        "flag": pa.array(words() % 2 == 1),
        "moment": moments(words(), None),
    }
    return {name: pc.if_else(pa.array(words() % 2 == 1), values, None) for name, values in whole.items()}


_LOGICAL_TYPES = {"count": "int64", "measure": "float64", "label": "text", "flag": "boolean", "moment": "timestamp"}
SPECIFICATION = specification("half_nulls", _LOGICAL_TYPES, _made, bytes_a_row=110, nullable=True)
