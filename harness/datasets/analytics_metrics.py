"""`analytics_metrics`: the table of "Postgres vs ClickHouse for bulk dataframe IO" (K. Arkhipenko, 2026-04-07).

The article gives the columns but neither generator nor values. Ours are random version-4 UUIDs, dates within 2025,
integers below one million and floats in [0, 1000). Strings have 5 to 21 characters and 12 to 20,000 distinct values.
There are no nulls, no empty strings and nothing that needs quoting, because hostile data cover these.
"""

import numpy as np
import pyarrow as pa

from harness.datasets import seeded
from harness.datasets.specification import Specification

# Column -> (word, distinct values). A string is the word and a zero-padded number.
_DIMENSIONS = {
    "dimension_a": ("country", 12),
    "dimension_b": ("campaign", 1_000),
    "dimension_c": ("device", 40),
    "dimension_d": ("landing_page", 20_000),
    "dimension_e": ("ad", 5_000),
    "dimension_f": ("placement_group", 300),
}
_FIRST_DAY = np.datetime64("2025-01-01", "D")
_KEY = ("entity_key", "event_date", "source_id", *_DIMENSIONS)
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)


def _uuids(raw: np.ndarray) -> pa.Array:
    """Turn random words, shape (rows, 2) of uint64, into version-4 UUID strings."""
    octets = raw.astype(">u8").view(np.uint8).reshape(len(raw), 16)
    octets[:, 6] = octets[:, 6] & 0x0F | 0x40
    octets[:, 8] = octets[:, 8] & 0x3F | 0x80
    digits = _HEX[octets].reshape(len(raw), 32)
    text = np.full((len(raw), 36), ord("-"), np.uint8)
    for start, stop, at in ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24)):
        text[:, at : at + stop - start] = digits[:, start:stop]
    offsets = np.arange(0, 36 * (len(raw) + 1), 36, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(raw), [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def _strings(words: np.ndarray, word: str, distinct: int) -> pa.Array:
    width = len(str(distinct - 1))
    return seeded.chosen(pa.array([f"{word}_{number:0{width}}" for number in range(distinct)]), words)


def _made(ids: np.ndarray, words: seeded.Words) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {
        "entity_key": _uuids(words(2).reshape(-1, 2)),
        "event_date": pa.array(_FIRST_DAY + (words() % 365).astype("timedelta64[D]"), pa.date32()),
        "source_id": pa.array((words() % 500).astype(np.int32)),
    }
    columns |= {name: _strings(words(), *shape) for name, shape in _DIMENSIONS.items()}
    columns |= {f"metric_{i}": pa.array((words() % 1_000_000).astype(np.int32)) for i in (1, 2, 3)}
    return columns | {"metric_value": pa.array(seeded.fractions(words()) * 1000.0)}


LOGICAL_TYPES = {
    "entity_key": "uuid",
    "event_date": "date",
    "source_id": "int32",
    **dict.fromkeys(_DIMENSIONS, "text"),
    **{f"metric_{i}": "int32" for i in (1, 2, 3)},
    "metric_value": "float64",
}
SPECIFICATION = Specification(
    name="analytics_metrics",
    version=1,
    logical_types=LOGICAL_TYPES,
    row_key=("entity_key",),
    bytes_a_row=140,
    build=lambda rows, seed: seeded.batches(rows, seed, _made),
    in_databases=True,
    order=_KEY,
    few_strings=("dimension_a",),
    month="event_date",
)
