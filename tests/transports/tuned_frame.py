"""A frame of values that are hard for an encoder: strings of all layouts, floats, nulls, the ends of ranges."""

import datetime
import math
import struct

import polars as pl

SIZES = (0, 4, 5, 8, 12, 13, 31, 32, 33, 127, 128, 16_383, 16_384, 1_000_000)  # of strings: where a layout changes
TEXTS = [None, r"\N", "a\tb\n'\"\\", "nul\0nul", "😀", "äöü" * 5, "€" * 4, "ß" * 3_000, *("x" * size for size in SIZES)]
FLOATS = [None, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308]
UUIDS = [None, "00000000-0000-0000-0000-000000000000", "01234567-89ab-cdef-fedc-ba9876543210"]
COLUMNS = {
    "place": ("Int32", pl.Int32, list(range(len(TEXTS)))),
    "month": ("Date", pl.Date, [datetime.date(2025, 1, 31), datetime.date(2025, 3, 1), datetime.date(2025, 12, 31)]),
    "key": ("Nullable(UUID)", pl.String, UUIDS),
    "day": ("Nullable(Date)", pl.Date, [None, datetime.date(1970, 1, 1), datetime.date(2149, 6, 6)]),
    "early": ("Nullable(Date32)", pl.Date, [datetime.date(1900, 1, 1), None, datetime.date(2299, 12, 31)]),
    "number": ("Nullable(Int32)", pl.Int32, [None, -(2**31), 2**31 - 1, 0]),
    "big": ("Nullable(Int64)", pl.Int64, [2**63 - 1, None, -(2**63)]),
    "value": ("Nullable(Float64)", pl.Float64, FLOATS),
    "te xt": ("Nullable(String)", pl.String, TEXTS),
    "word": ("LowCardinality(Nullable(String))", pl.String, ["a", "", None, "more than twelve bytes"]),
}


def hostile_frame() -> pl.DataFrame:
    rows = range(len(TEXTS))
    return pl.DataFrame(
        {name: pl.Series([v[row % len(v)] for row in rows], dtype=dtype) for name, (_, dtype, v) in COLUMNS.items()}
    )


def bits(value: object) -> object:
    """Return a value so that equal means identical: a float by its bytes."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return value


def rows(frame: pl.DataFrame) -> list[tuple]:
    return [tuple(map(bits, row)) for row in frame.sort("place").rows()]
