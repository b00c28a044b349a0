"""Values that their column cannot hold: the only right outcome of a write is a refusal, whatever the server does."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from harness.datasets.hostile.kind import BOTH, Kind, Stored, column, one_column
from harness.datasets.hostile.types import OF_AN_ENUM


def _beyond(name: str, meaning: str, kind: str, types: dict[str, str], values: Iterable[Any]) -> Kind:
    """Return a kind whose column of each system in `types` holds some or none of the values, but not all."""
    return one_column(
        name,
        meaning,
        kind,
        dict.fromkeys(types, values),
        stored={system: Stored({f"{kind}_value": sql}) for system, sql in types.items()},
        forbidden={system: f"{sql} cannot hold all of these values" for system, sql in types.items()},
    )


KINDS = (
    _beyond(
        "int64_beyond_int32",
        "64-bit integers beyond 32 bits (2^31, 2^40) into a column of 32 bits",
        "int64",
        {"postgres": "integer", "clickhouse": "Nullable(Int32)"},
        (7, 2**31, 2**40),
    ),
    _beyond(
        "uint32_beyond_int32",
        "unsigned 32-bit integers from 2^31 into a signed column of 32 bits",
        "uint32",
        {"postgres": "integer", "clickhouse": "Nullable(Int32)"},
        (7, 2**31, 2**32 - 1),
    ),
    _beyond(
        "uint64_beyond_int64",
        "unsigned 64-bit integers from 2^63 into a signed column of 64 bits",
        "uint64",
        {"postgres": "bigint", "clickhouse": "Nullable(Int64)"},
        (7, 2**63, 2**64 - 1),
    ),
    _beyond(
        "negative_into_unsigned",
        "negative integers into an unsigned column",
        "int32",
        {"clickhouse": "Nullable(UInt32)"},
        (7, -1, -(2**31)),
    ),
    _beyond(
        "fraction_into_int32",
        "floats with a fraction into a column of integers",
        "float64",
        {"postgres": "integer", "clickhouse": "Nullable(Int32)"},
        (1.0, 0.5, -2.5),
    ),
    _beyond(
        "float64_beyond_float32",
        "floats too large for 32 bits into a column of 32-bit floats",
        "float64",
        {"postgres": "real", "clickhouse": "Nullable(Float32)"},
        (0.5, 1e300),
    ),
    _beyond(
        "dates_beyond",
        "dates before the first and after the last of a ClickHouse Date",
        "date",
        {"clickhouse": "Nullable(Date)"},
        (dt.date(2025, 3, 4), dt.date(1969, 12, 31), dt.date(2149, 6, 7)),
    ),
    # Not nullable, as such columns usually are; in a nullable one the server itself may store a null instead.
    _beyond(
        "text_too_long",
        "a text that is longer than its column: varchar(4), FixedString(4)",
        "text",
        {"postgres": "varchar(4)", "clickhouse": "FixedString(4)"},
        ("abcd", "abcdef"),
    ),
    Kind(
        "unknown_label",
        "a text that is no label of its enum",
        column("text_value", "red", "purple"),
        {"text_value": "text"},
        stored=OF_AN_ENUM,
        forbidden=dict.fromkeys(BOTH, "an enum has its labels only"),
    ),
)
