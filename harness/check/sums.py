"""Sums that identify a table of any size; client and server each compute them from their own rows.

Per column: the sum of the CRC32 of every non-null value. It does not change if two values swap rows. Over whole rows:
the sum of the first 64 bits of their MD5, which does change. Sums of parts add up, so a producer can sum rows while it
makes them, in any order. Both use canonical bytes:

- integers, dates (days since 1970) and timestamps (microseconds since 1970) big-endian, in two's complement;
- floats as IEEE 754, big-endian; every NaN is 0x7ff8000000000000;
- booleans one byte, UUIDs sixteen, strings UTF-8;
- in a row a null is the byte 0. Any other value is the byte 1 and its bytes, with four bytes of length before a string.

CRC32 is that of zlib (ISO 3309), of Postgres 18's `crc32` and of ClickHouse's `CRC32`. The sums detect a changed row
with probability 1 - 2**-64, and its column with 1 - 2**-32.
"""

from __future__ import annotations

import hashlib
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial, reduce
from multiprocessing import get_context
from operator import add
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from harness.model import LabError

LOGICAL_TYPES = frozenset(
    {"boolean", "int16", "int32", "int64", "float64", "date", "timestamp", "timestamp_tz", "uuid", "text"}
)
_MODULUS = 2**64
_ALONE_ROWS = 2_000_000  # fewer rows are summed in this process: starting another one takes longer
_BATCH_ROWS = 1 << 17  # rows whose whole bytes are in memory at once


@dataclass(frozen=True)
class Sums:
    """The number of rows, and per column its nulls and CRC32 sum; `columns` is empty if a server has none. Adds up."""

    rows: int
    nulls: Mapping[str, int]
    columns: Mapping[str, int]
    whole: int

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.rows + other.rows,
            {name: count + other.nulls[name] for name, count in self.nulls.items()},
            {name: total + other.columns[name] for name, total in self.columns.items()},
            (self.whole + other.whole) % _MODULUS,
        )


Canonical = Callable[["pa.RecordBatch", Mapping[str, str]], "pa.RecordBatch"]


def require(logical_types: Mapping[str, str]) -> None:
    """Raise LabError for a column whose logical type has no canonical bytes."""
    for name, logical in logical_types.items():
        if logical not in LOGICAL_TYPES:
            raise LabError(f'column "{name}": no sums of {logical}; choose from: {", ".join(sorted(LOGICAL_TYPES))}')


def differences(expected: Sums, found: Sums) -> list[str]:
    """Return the differences, one line a column; an empty list means that the rows are the same."""
    if expected.rows != found.rows:
        return [f"expected {expected.rows} rows, found {found.rows}"]
    wrong = [
        f"{name}: expected {count} nulls, found {found.nulls[name]}"
        for name, count in expected.nulls.items()
        if found.nulls[name] != count
    ]
    both = expected.columns.keys() & found.columns.keys()
    wrong += [
        f"{name}: other values than expected"
        for name in expected.columns
        if name in both and expected.columns[name] != found.columns[name] and expected.nulls[name] == found.nulls[name]
    ]
    if not wrong and expected.whole != found.whole:
        wrong = ["values are in other rows than expected" if both else "other values than expected"]
    return wrong


def of_table(table: pa.Table, logical_types: Mapping[str, str]) -> Sums:
    """Sum an Arrow table that is a canonical frame; see `harness.check.canonical`. Raises LabError, see `require`."""
    return of_batches(table.to_batches(max_chunksize=_BATCH_ROWS), logical_types)


def of_parquet(path: str | Path, logical_types: Mapping[str, str]) -> Sums:
    """Sum a dataset's Parquet file, in pieces. Raises LabError, see `require`."""
    return of_files([path], logical_types, _as_it_is)


def of_files(files: Iterable[str | Path], logical_types: Mapping[str, str], made: Canonical) -> Sums:
    """Sum Parquet files whose batches `made(batch, logical_types)` makes canonical; large ones on two cores."""
    require(logical_types)
    about = {file: parquet.read_metadata(file) for file in files}
    groups = [(file, group) for file, metadata in about.items() for group in range(metadata.num_row_groups)]
    one = partial(_of_group, logical_types=dict(logical_types), made=made)
    if sum(metadata.num_rows for metadata in about.values()) < _ALONE_ROWS:
        return reduce(add, map(one, groups), _nothing(logical_types))
    # Forked children could wait forever for a lock that a thread of this process (polars, Arrow) held.
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        return reduce(add, processes.map(one, groups, chunksize=4), _nothing(logical_types))


def _nothing(logical_types: Mapping[str, str]) -> Sums:
    return Sums(0, dict.fromkeys(logical_types, 0), dict.fromkeys(logical_types, 0), 0)


def _of_group(where: tuple[str | Path, int], logical_types: dict[str, str], made: Canonical) -> Sums:
    path, group = where
    with parquet.ParquetFile(path) as file:
        batches = file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(logical_types))
        return of_batches((made(batch, logical_types) for batch in batches), logical_types)


def _as_it_is(batch: pa.RecordBatch, logical_types: Mapping[str, str]) -> pa.RecordBatch:
    return batch


def of_ipc(path: str | Path, logical_types: Mapping[str, str]) -> Sums:
    """Sum an Arrow file of a canonical frame, in pieces. Raises LabError, see `require`."""
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
        wholes = (file.get_batch(place) for place in range(file.num_record_batches))
        return of_batches(
            (whole.slice(start, _BATCH_ROWS) for whole in wholes for start in range(0, whole.num_rows, _BATCH_ROWS)),
            logical_types,
        )


def of_batches(batches: Iterable[pa.RecordBatch], logical_types: Mapping[str, str]) -> Sums:
    """Sum a table that arrives in batches; see `of_table`."""
    require(logical_types)
    return reduce(add, (of_batch(batch, logical_types) for batch in batches), _nothing(logical_types))


def of_batch(batch: pa.RecordBatch, logical_types: Mapping[str, str]) -> Sums:
    """Sum one batch; see `of_table`."""
    nulls, columns, pieces = {}, {}, []
    for name, logical in logical_types.items():
        column = batch.column(name)
        nulls[name] = column.null_count
        if logical == "text":
            columns[name] = _crc_of_strings(column)
            pieces.append(_piece_of_strings(column))
        else:
            octets = _octets(column, logical)
            columns[name] = _crc(octets[~_missing(column)])
            pieces.append(_piece(octets, column))
    rows = pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.large_binary()))
    return Sums(batch.num_rows, nulls, columns, _whole(rows.to_pylist()))


def _whole(rows: list[bytes]) -> int:
    digests = b"".join([hashlib.md5(row, usedforsecurity=False).digest() for row in rows])
    return int(np.frombuffer(digests, ">u8")[::2].sum(dtype=np.uint64))


def _missing(column: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return found


def _octets(column: pa.Array, logical: str) -> npt.NDArray[np.uint8]:
    """Return the canonical bytes of each value, as a matrix of a row a value; of a null any."""
    rows = len(column)
    if logical == "uuid" and pa.types.is_fixed_size_binary(column.type):
        octets = (bytes(16) if value is None else value for value in column.to_pylist())
        return np.frombuffer(b"".join(octets), np.uint8).reshape(rows, 16)
    if logical == "uuid":
        strings = ("0" * 32 if text is None else text for text in column.to_pylist())
        return np.frombuffer(b"".join(uuid.UUID(text).bytes for text in strings), np.uint8).reshape(rows, 16)
    types = {"date": pa.date32(), "timestamp": pa.timestamp("us"), "timestamp_tz": pa.timestamp("us", "UTC")}
    if logical in types:
        column = column.cast(types[logical]).view(pa.int32() if logical == "date" else pa.int64())
    if logical == "boolean":
        column = column.cast(pa.uint8())
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    if logical == "float64":
        values = np.where(np.isnan(values), np.nan, values)
    found: npt.NDArray[np.uint8] = values.astype(values.dtype.newbyteorder(">")).view(np.uint8)
    return found.reshape(rows, values.dtype.itemsize)


@cache
def _crc_table() -> npt.NDArray[np.uint32]:
    """Return the CRC32 step of each byte: https://www.rfc-editor.org/rfc/rfc1952#section-8"""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, np.uint32(0xEDB88320) ^ (table >> 1), table >> 1).astype(np.uint32)
    return table


def _crc(octets: npt.NDArray[np.uint8]) -> int:
    """Return the sum of the CRC32 of each row of a matrix."""
    table, state = _crc_table(), np.full(len(octets), 0xFFFFFFFF, np.uint32)
    for place in range(octets.shape[1]):
        state = table[(state ^ octets[:, place]) & 0xFF] ^ (state >> np.uint32(8))
    return int((state ^ np.uint32(0xFFFFFFFF)).sum(dtype=np.uint64))


def _crc_of_strings(column: pa.Array) -> int:
    found = column.drop_null().dictionary_encode()
    often = np.bincount(found.indices.to_numpy(), minlength=len(found.dictionary))
    return sum(zlib.crc32(text.encode()) * int(n) for text, n in zip(found.dictionary.to_pylist(), often, strict=True))


def _piece(octets: npt.NDArray[np.uint8], column: pa.Array) -> pa.Array:
    """Return the row bytes of each fixed-width value, as Arrow binary."""
    marked = np.empty((len(octets), 1 + octets.shape[1]), np.uint8)
    marked[:, 0], marked[:, 1:] = 1, octets
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(marked.shape[1]), len(marked), [None, pa.py_buffer(marked)])
    return pc.if_else(column.is_valid(), fixed.cast(pa.large_binary()), pa.scalar(b"\0", pa.large_binary()))


def _piece_of_strings(column: pa.Array) -> pa.Array:
    values = column.cast(pa.large_string()).cast(pa.large_binary())
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(">u4")
    marked = np.empty((len(lengths), 5), np.uint8)
    marked[:, 0], marked[:, 1:] = 1, lengths.view(np.uint8).reshape(-1, 4)
    heads = pa.FixedSizeBinaryArray.from_buffers(pa.binary(5), len(marked), [None, pa.py_buffer(marked)])
    joined = pc.binary_join_element_wise(heads.cast(pa.large_binary()), values, pa.scalar(b"", pa.large_binary()))
    return pc.if_else(column.is_valid(), joined, pa.scalar(b"\0", pa.large_binary()))
