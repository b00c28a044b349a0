"""`repeated_texts`: short repeated strings, three as categories and three as text, about 65 bytes a row in Arrow.

Categories are LowCardinality(String) in ClickHouse (Enum8 and Enum16 with the profile `enum`), and text in Postgres.
"""

import numpy as np
import pyarrow as pa

from harness.datasets.seeded import Words, chosen
from harness.datasets.shapes.chunks import specification

_OF = {"country": 12, "device": 40, "campaign": 1_000}  # column -> number of distinct strings
_TEXTS = {name: [f"{name}_{number:03d}" for number in range(count)] for name, count in _OF.items()}


def _made(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    texts = {f"{name}_text": chosen(pa.array(of), words()) for name, of in _TEXTS.items()}
    return {name: _category(of, words()) for name, of in _TEXTS.items()} | texts


def _category(texts: list[str], words: np.ndarray) -> pa.Array:
    codes = pa.array((words % len(texts)).astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array(texts))


_LOGICAL_TYPES = dict.fromkeys(_OF, "category") | {f"{name}_text": "text" for name in _OF}
SPECIFICATION = specification("repeated_texts", _LOGICAL_TYPES, _made, bytes_a_row=120, labels=_TEXTS)
