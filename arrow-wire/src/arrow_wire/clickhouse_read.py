"""Rows out of ClickHouse as Native blocks: https://clickhouse.com/docs/interfaces/formats/Native"""

import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from arrow_wire.clickhouse_http import AnswerBytes, Server, identifiers, parts_of
from arrow_wire.clickhouse_native import Result, batches
from arrow_wire.clickhouse_plan import width_of
from arrow_wire.clickhouse_types import Type, parsed
from arrow_wire.errors import UnsupportedType

# Nothing is compressed; JSON comes as strings.
PINNED = {"enable_http_compression": "0", "output_format_native_write_json_as_string": "1"}
_FEW_BYTES = 1 << 18  # of an answer that names its own columns
_SHARED_LABELS = 1 << 8  # SerializationLowCardinality.cpp
BATCH_ROWS = 1 << 17  # of a stream; the server's blocks mostly have half as many


def query_of(query: Any) -> str:
    """Return the SELECT of a whole table, given its name, or the same query without its semicolon."""
    parts = parts_of(query)
    if parts:
        return f"SELECT * FROM {'.'.join(identifiers([part]) for part in parts)}"
    return str(query).strip().rstrip(";")


def blocks(server: Server, query: str, text: pa.DataType, enough: int) -> Iterator[Any]:
    """Yield the rows as record batches; a failure, or a caller that stops early, closes their connection.

    It yields their schema first. Raises UnsupportedType for a column that cannot be read, before any row.
    """
    server = server.with_settings(PINNED)
    done = False
    try:
        # Each block names its columns, one after the other. They are read from an answer of one or a few small blocks.
        # For a longer answer they are queried while it arrives. If the table changes meanwhile, its blocks say so.
        answer = AnswerBytes(server.send(f"{query}\nFORMAT Native"))
        first = np.empty(_FEW_BYTES, np.uint8).data
        begun = first[: answer.readinto(first)]
        whole = len(begun) < len(first)
        columns = _columns_in(bytes(begun)) if whole else None
        if columns is None:
            columns = _described(server, query)
        try:
            result = Result(columns, text)
        except TypeError as error:
            raise UnsupportedType(str(error)) from None
        yield result.schema
        yield from batches(result, _continued(begun, None if whole else answer.readinto), enough)
        done = True
    finally:
        if not done:
            server.client(0).close()


def _described(server: Server, query: str) -> list[tuple[str, str]]:
    return [(name, sql_type) for name, sql_type, _ in server.described(f"({query}\n)", 1)]


def _continued(begun: memoryview, readinto: Callable[[memoryview], int] | None) -> Callable[[memoryview], int]:
    """Return a function that fills memory from the bytes read so far, then from `readinto`, if there is one."""

    def fill(room: memoryview) -> int:
        nonlocal begun
        size = min(len(begun), len(room))
        room[:size], begun = begun[:size], begun[size:]
        return size + (readinto(room[size:]) if readinto and size < len(room) else 0)

    return fill


def _columns_in(data: bytes) -> list[tuple[str, str]] | None:
    """Return the names and types of a block's columns; None if they are incomplete or in an unknown form."""
    try:
        (count, place), columns = _varint(data, 0), []
        rows, place = _varint(data, place)
        for _ in range(count):
            name, place = _text(data, place)
            sql_type, place = _text(data, place)
            columns.append((name, sql_type))
            place = _behind(data, place, parsed(sql_type), rows)
        return columns if columns and place <= len(data) else None
    except (IndexError, TypeError, ValueError, struct.error):
        return None


def _behind(data: bytes, place: int, of: Type, rows: int) -> int:
    """Return where the values of a column end. Raises TypeError for a type whose name or size blocks do not state."""
    if of.family == "Nullable":
        return _behind(data, place + rows, of.inner[0], rows)
    if of.family == "DateTime":
        raise TypeError("DateTime is named without its time zone")
    if of.family == "LowCardinality":
        return _behind_labels(data, place, of.inner[0], rows) if rows else place
    if of.family != "String":
        return place + rows * width_of(of)
    for _ in range(rows):
        size = data[place]
        if size >= 128:
            size, place = _varint(data, place)
            place += size
        else:
            place += 1 + size
    return place


def _behind_labels(data: bytes, place: int, of: Type, rows: int) -> int:
    """Return where a column of LowCardinality ends: a version, flags, the labels, and each row's label number."""
    version, flags, labels = struct.unpack_from("<QQQ", data, place)
    if version != 1 or flags & _SHARED_LABELS:
        raise ValueError("the labels are in another block")
    end = _behind(data, place + 24, of.inner[0] if of.family == "Nullable" else of, labels)
    return end + 8 + (rows << (flags & 0xFF))


def _text(data: bytes, place: int) -> tuple[str, int]:
    size, place = _varint(data, place)
    return data[place : place + size].decode(), place + size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    size = data[place]
    place += 1
    if size < 128:
        return size, place
    more, place = _varint(data, place)
    return size - 128 + (more << 7), place
