"""`lists`: a list of up to eight integers and one of up to three short strings, about 51 bytes a row in Arrow."""

import numpy as np
import pyarrow as pa

from harness.datasets.seeded import Words, chosen
from harness.datasets.shapes.chunks import specification

_LABELS = [f"label_{number:02d}" for number in range(50)]


def _listed(sizes: np.ndarray, items: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items.slice(0, int(offsets[-1])))


def _made(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    numbers = np.concatenate([words() for _ in range(8)]) % 1_000_000
    labels = np.concatenate([words() for _ in range(3)])
    return {
        "readings": _listed((words() % 9).astype(np.int64), pa.array(numbers.astype(np.int32))),
        "labels": _listed((words() % 4).astype(np.int64), chosen(pa.array(_LABELS), labels)),
    }


SPECIFICATION = specification("lists", {"readings": "array(int32)", "labels": "array(text)"}, _made, bytes_a_row=140)
