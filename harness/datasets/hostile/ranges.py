"""Values that their column cannot hold: a write must be refused, whatever the server does."""

from __future__ import annotations

from collections.abc import Iterable

from harness.datasets.hostile.kind import Kind, column, one_column


def _beyond(name: str, meaning: str, logical: str, narrow: str, values: Iterable[object] | None) -> Kind:
    """Return a kind whose table column, of the type `narrow`, cannot hold all of the values."""
    return one_column(name, meaning, logical, values, beyond={f"{logical}_value": narrow})


KINDS = (
    _beyond(
        "int64_beyond_int32",
        "64-bit integers beyond 32 bits (2^31, 2^40) into a column of 32 bits",
        "int64",
        "int32",
        (7, 2**31, 2**40),
    ),
    _beyond(
        "uint32_beyond_int32",
        "unsigned 32-bit integers from 2^31 into a signed column of 32 bits",
        "uint32",
        "int32",
        (7, 2**31, 2**32 - 1),
    ),
    _beyond(
        "uint64_beyond_int64",
        "unsigned 64-bit integers from 2^63 into a signed column of 64 bits",
        "uint64",
        "int64",
        (7, 2**63, 2**64 - 1),
    ),
    _beyond(
        "negative_into_unsigned",
        "negative integers into an unsigned column",
        "int32",
        "uint32",
        (7, -1, -(2**31)),
    ),
    _beyond(
        "fraction_into_int32",
        "floats with a fraction into a column of integers",
        "float64",
        "int32",
        (1.0, 0.5, -2.5),
    ),
    _beyond(
        "float64_beyond_float32",
        "floats too large for 32 bits into a column of 32-bit floats",
        "float64",
        "float32",
        (0.5, 1e300),
    ),
    _beyond("dates_beyond", "dates before the first and after the last that their column holds", "date", "date", None),
    _beyond("text_too_long", "a text that is longer than its column", "text", "short_text", ("abcd", "abcdef")),
    Kind(
        "unknown_label",
        "a string that is not a label of its enum",
        column("text_value", "red", "purple"),
        {"text_value": "text"},
        beyond={"text_value": "label"},
        reason="an enum has its labels only",
    ),
)
