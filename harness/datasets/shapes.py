"""Shapes of data: one dataset per shape, each with a property that slows only some clients.

Values are seeded and ordinary. Their tables have no key, and types according to
`harness.datasets.specification.Column`. Each shape states its bytes per row in Arrow, so that an experiment can use
frames of equal size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.datasets import seeded
from harness.datasets.seeded import Words, chosen, fractions
from harness.datasets.specification import Column, Specification

CHUNK_ROWS = 20_000  # rows generated at a time: 40 MB for the widest shape


def _shape(
    name: str,
    logical_types: dict[str, str],
    made: seeded.Made,
    bytes_a_row: int,
    nullable: bool = False,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> Specification:
    """Return a dataset with a running `id`, which matches rows, and the columns that `made` builds for its chunks.

    `nullable` applies to these columns. `labels` are the strings of category columns.
    """
    all_logical_types, of_categories = {"id": "int64", **logical_types}, labels or {}
    return Specification(
        name=name,
        version=1,
        logical_types=all_logical_types,
        row_key=("id",),
        bytes_a_row=bytes_a_row,
        build=lambda rows, seed: seeded.batches(
            rows, seed, lambda ids, words: {"id": pa.array(ids), **made(ids, words)}, CHUNK_ROWS
        ),
        in_databases=True,
        columns=tuple(
            Column(column, logical, nullable and column != "id", labels=tuple(of_categories.get(column, ())))
            for column, logical in all_logical_types.items()
        ),
    )


def _moments(words: np.ndarray, zone: str | None) -> pa.Array:
    """Return timestamps of the year 2025, to the microsecond."""
    first = np.datetime64("2025-01-01", "us").astype(np.int64)
    micros = first + (words % np.uint64(365 * 86_400 * 1_000_000)).astype(np.int64)
    return pa.array(micros).cast(pa.timestamp("us", zone))


def _decimals_and_moments(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    """Return two decimals and two timestamps with a zone, 56 bytes a row in Arrow.

    The decimals have at most 12 and 15 digits, which a float preserves, so a client can lose the type but not a value.
    """
    return {
        "price": _decimals(words(), 12, 2),
        "rate": _decimals(words(), 15, 6),
        "placed": _moments(words(), "UTC"),
        "changed": _moments(words(), "UTC"),
    }


def _decimals(words: np.ndarray, precision: int, scale: int) -> pa.Array:
    """Return decimals with this many digits: 128-bit integers whose upper half is zero."""
    halves = np.zeros((len(words), 2), np.uint64)
    halves[:, 0] = words % np.uint64(10 ** min(precision, 14))
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(words), [None, pa.py_buffer(halves)])


def _half_nulls(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    """Return five columns of five logical types with half of their values missing, about 42 bytes a row in Arrow."""
    whole = {
        "count": pa.array((words() % 1_000_000).astype(np.int64)),
        "measure": pa.array(fractions(words()) * 1_000.0),
        "label": chosen(pa.array([f"label_{number:04d}" for number in range(5_000)]), words()),
        "flag": pa.array(words() % 2 == 1),
        "moment": _moments(words(), None),
    }
    return {name: pc.if_else(pa.array(words() % 2 == 1), values, None) for name, values in whole.items()}


def _lists(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    """Return a list of up to eight integers and one of up to three short strings, about 51 bytes a row in Arrow."""
    numbers = np.concatenate([words() for _ in range(8)]) % 1_000_000
    labels = np.concatenate([words() for _ in range(3)])
    known = pa.array([f"label_{number:02d}" for number in range(50)])
    return {
        "readings": _listed((words() % 9).astype(np.int64), pa.array(numbers.astype(np.int32))),
        "labels": _listed((words() % 4).astype(np.int64), chosen(known, labels)),
    }


def _listed(sizes: np.ndarray, items: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items.slice(0, int(offsets[-1])))


_WORDS, _LETTERS, _VOCABULARY = 250, 7, 1_024


def _long_strings(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    """Return strings of 2,000 bytes, 2,012 bytes a row in Arrow.

    A string has 250 words of seven letters out of 1,024, roughly as compressible as prose. Postgres compresses and
    moves values of rows larger than about 2,000 bytes (TOAST), and does so with these.
    """
    drawn = np.stack([words() % _VOCABULARY for _ in range(_WORDS)], axis=1)
    text = _vocabulary()[drawn].reshape(len(ids), _WORDS * (_LETTERS + 1))
    text[:, -1] = ord(".")
    offsets = np.arange(0, text.size + 1, text.shape[1], dtype=np.int32)
    return {"text": pa.Array.from_buffers(pa.string(), len(ids), [None, pa.py_buffer(offsets), pa.py_buffer(text)])}


def _vocabulary() -> np.ndarray:
    """Return words of seven letters and a space, shape (1024, 8)."""
    drawn = seeded.source(_VOCABULARY).random_raw(_VOCABULARY * _LETTERS)
    letters = drawn.reshape(_VOCABULARY, _LETTERS) % 26 + ord("a")
    return np.hstack([letters.astype(np.uint8), np.full((_VOCABULARY, 1), ord(" "), np.uint8)])


def _narrow_numbers(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    """Return five numbers, with the id 40 bytes a row in Arrow; only fixed widths."""
    return {
        "place": pa.array((words() % 1_000).astype(np.int32)),
        "count": pa.array((words() % 1_000_000).astype(np.int32)),
        "total": pa.array((words() % 10**12).astype(np.int64)),
        "share": pa.array(fractions(words())),
        "measure": pa.array(fractions(words()) * 2_000.0 - 1_000.0),
    }


_DISTINCT = {"country": 12, "device": 40, "campaign": 1_000}  # column -> number of distinct strings
_LABELS = {name: [f"{name}_{number:03d}" for number in range(count)] for name, count in _DISTINCT.items()}


def _repeated_strings(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    """Return short repeated strings, three as categories and three as text, about 65 bytes a row in Arrow.

    Categories are LowCardinality(String) in ClickHouse (Enum8 and Enum16 with the profile `enum`), text in Postgres.
    """
    strings = {f"{name}_text": chosen(pa.array(of), words()) for name, of in _LABELS.items()}
    return {name: _category(of, words()) for name, of in _LABELS.items()} | strings


def _category(strings: list[str], words: np.ndarray) -> pa.Array:
    codes = pa.array((words % len(strings)).astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array(strings))


_WIDE = {f"c{place:03d}": ("int32", "int64", "float64")[place % 3] for place in range(199)}


def _wide_numbers(ids: np.ndarray, words: Words) -> dict[str, pa.Array]:
    """Return 199 numeric columns, 1,336 bytes a row in Arrow: shows a client's work per column, 200 times."""
    return {name: _column(logical, words()) for name, logical in _WIDE.items()}


def _column(logical: str, words: np.ndarray) -> pa.Array:
    if logical == "float64":
        return pa.array(fractions(words) * 1_000.0)
    return pa.array((words % 1_000_000).astype(logical))


SPECIFICATIONS = (
    _shape(
        "decimals_and_moments",
        {"price": "decimal(12, 2)", "rate": "decimal(15, 6)", "placed": "timestamp_tz", "changed": "timestamp_tz"},
        _decimals_and_moments,
        bytes_a_row=140,
    ),
    _shape(
        "half_nulls",
        {"count": "int64", "measure": "float64", "label": "text", "flag": "boolean", "moment": "timestamp"},
        _half_nulls,
        bytes_a_row=110,
        nullable=True,
    ),
    _shape("lists", {"readings": "array(int32)", "labels": "array(text)"}, _lists, bytes_a_row=140),
    _shape("long_strings", {"text": "text"}, _long_strings, bytes_a_row=2_200),
    _shape(
        "narrow_numbers",
        {"place": "int32", "count": "int32", "total": "int64", "share": "float64", "measure": "float64"},
        _narrow_numbers,
        bytes_a_row=80,
    ),
    _shape(
        "repeated_strings",
        dict.fromkeys(_DISTINCT, "category") | {f"{name}_text": "text" for name in _DISTINCT},
        _repeated_strings,
        bytes_a_row=120,
        labels=_LABELS,
    ),
    _shape("wide_numbers", _WIDE, _wide_numbers, bytes_a_row=2_700),
)
