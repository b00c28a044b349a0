"""`long_texts`: an id and a string of 2,000 bytes, 2,012 bytes a row in Arrow.

A string has 250 words of seven letters out of 1,024, roughly as compressible as prose. Postgres compresses and moves
values of rows larger than about 2,000 bytes (TOAST), and does so with these.
"""

import numpy as np
import pyarrow as pa

from harness.datasets.seeded import Words, source
from harness.datasets.shapes.chunks import specification

_WORDS, _LETTERS = 250, 7
_VOCABULARY = 1_024


def _vocabulary() -> np.ndarray:
    """Return words of seven letters and a space, shape (1024, 8)."""
    letters = source(_VOCABULARY).random_raw(_VOCABULARY * _LETTERS).reshape(_VOCABULARY, _LETTERS) % 26 + ord("a")
    spaces = np.full((_VOCABULARY, 1), ord(" "))
    return np.hstack([letters.astype(np.uint8), spaces.astype(np.uint8)])


def _made(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    vocabulary = _vocabulary()
    drawn = np.stack([words() % _VOCABULARY for _ in range(_WORDS)], axis=1)
    text = vocabulary[drawn].reshape(len(ids), _WORDS * (_LETTERS + 1))
    text[:, -1] = ord(".")
    offsets = np.arange(0, text.size + 1, text.shape[1], dtype=np.int32)
    return {"text": pa.Array.from_buffers(pa.string(), len(ids), [None, pa.py_buffer(offsets), pa.py_buffer(text)])}


SPECIFICATION = specification("long_texts", {"text": "text"}, _made, bytes_a_row=2_200)
