"""`analytics_metrics`: the table of "Postgres vs ClickHouse for bulk dataframe IO" (K. Arkhipenko, 2026-04-07).

The article gives the columns but neither generator nor values. Ours are random version-4 UUIDs, dates within 2025,
integers below one million and floats in [0, 1000). Strings have 5 to 21 characters and 12 to 20,000 distinct values.
There are no nulls, no empty strings and nothing that needs quoting, because hostile data cover these.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from harness.datasets.specification import Specification

CHUNK_ROWS = 100_000  # rows generated at a time: keeps memory flat whatever the number of rows

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


def _texts(raw: np.ndarray, word: str, distinct: int) -> pa.Array:
    width = len(str(distinct - 1))
    values = pa.array([f"{word}_{number:0{width}}" for number in range(distinct)])
    return values.take(pa.array((raw % distinct).astype(np.int32)))


def _chunk(rows: int, seed: int, number: int) -> pa.RecordBatch:
    # Use only the bit generator's raw words: numpy guarantees their stream forever, but not its distributions'.
    source = np.random.PCG64(np.random.SeedSequence([seed, number]))

    def words(columns: int = 1) -> np.ndarray:
        return source.random_raw(rows * columns)

    columns: dict[str, pa.Array] = {
        "entity_key": _uuids(words(2).reshape(rows, 2)),
        "event_date": pa.array(_FIRST_DAY + (words() % 365).astype("timedelta64[D]"), pa.date32()),
        "source_id": pa.array((words() % 500).astype(np.int32)),
    }
    columns |= {name: _texts(words(), *shape) for name, shape in _DIMENSIONS.items()}
    columns |= {f"metric_{i}": pa.array((words() % 1_000_000).astype(np.int32)) for i in (1, 2, 3)}
    columns["metric_value"] = pa.array((words() >> np.uint64(11)).astype(np.float64) * 2.0**-53 * 1000.0)
    return pa.RecordBatch.from_pydict(columns)


def build(rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield the table in batches of at most 100,000 rows."""
    for number, start in enumerate(range(0, rows, CHUNK_ROWS)):
        yield _chunk(min(CHUNK_ROWS, rows - start), seed, number)


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
    build=build,
    in_databases=True,
    order=_KEY,
    few_texts=("dimension_a",),
    month="event_date",
)
