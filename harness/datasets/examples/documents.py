"""Sparse documents: JSON strings, mostly missing, next to lists of labels and a few other columns."""

from __future__ import annotations

import json
import uuid

import numpy as np
import polars as pl

_LABELS = ["new", "beta", "a,b", "größe", 'with "quotes"']


def build(rows: int, seed: int) -> pl.DataFrame:
    """Return this many documents; four of five have no body, and the others differ in their keys."""
    rng = np.random.default_rng(seed)
    kept, sizes = rng.random(rows), rng.integers(0, 4, rows)
    numbers = rng.integers(0, 2**62, (rows, 2))
    chosen = rng.integers(0, len(_LABELS), (rows, 3))
    return pl.DataFrame(
        {
            "id": [str(uuid.UUID(int=int(high) << 64 | int(low))) for high, low in numbers],
            "body": [_body(place, float(share)) if share < 0.2 else None for place, share in enumerate(kept)],
            "labels": [_labels(row[:size]) for row, size in zip(chosen, sizes, strict=True)],
            "score": [None if share > 0.3 else share * 10 for share in kept],
            "revision": pl.Series([None if share > 0.6 else int(share * 100) for share in kept], dtype=pl.Int64),
        }
    )


def _labels(chosen: np.ndarray) -> str:
    return ", ".join(_LABELS[value] for value in chosen)


def _body(place: int, share: float) -> str:
    document: dict[str, object] = {"n": place, "path": f"C:\\dir\\{place % 7}", "text": 'it\'s "so"'}
    if share < 0.1:
        document["tags"] = ["x", None, {"deep": [1, 2.5]}]
    if share < 0.05:
        document["more"] = {"line": "a\nb", "unicode": "\U0001f98a"}
    return json.dumps(document, ensure_ascii=False)
