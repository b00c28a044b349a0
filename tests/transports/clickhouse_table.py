"""A hostile ClickHouse table: strings of all layouts, floats, nulls, the ends of ranges; and the operations on it."""

import datetime
import math

import clickhouse_driver
import polars as pl

from harness.check.equality import differences
from harness.check.logical_types import polars_dtype

SIZES = (0, 4, 5, 8, 12, 13, 31, 32, 33, 127, 128, 16_383, 16_384, 1_000_000)  # of strings: where a layout changes
TEXTS = [
    None, "", r"\N", "NULL", "NA", "nan", "null", "\t", "a\tb", "\n", "a\nb", "\r", "a\rb", "x\r\ny", '"', 'a"b', '""',
    "'", "'q'", "\\", "a\\b", "\\t", r"\\N", "a\tb\n'\"\\", "a,b", "a;b", "%s", " ", " lead", "trail ", "1", "1.5",
    "\0", "2025-01-01", "nul\0nul", "\b", "\f", "😀ä", "äöü" * 5, "€" * 4, "ß" * 3_000, *("x" * size for size in SIZES),
]  # fmt: skip
FLOATS = [None, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e-310, 0.1, 1e22, 2.0**53, 1.7976931348623157e308]
UUIDS = [None, "00000000-0000-0000-0000-000000000000", "01234567-89ab-cdef-fedc-ba9876543210"]
COLUMNS = {
    "place": ("Int32", "int32", list(range(len(TEXTS)))),
    "month": ("Date", "date", [datetime.date(2025, 1, 31), datetime.date(2025, 3, 1), datetime.date(2025, 12, 31)]),
    "key": ("Nullable(UUID)", "uuid", UUIDS),
    "id": ("UUID", "uuid", UUIDS[1:]),
    "day": ("Nullable(Date)", "date", [None, datetime.date(1970, 1, 1), datetime.date(2149, 6, 6)]),
    "early": ("Nullable(Date32)", "date", [datetime.date(1900, 1, 1), None, datetime.date(2299, 12, 31)]),
    "number": ("Nullable(Int32)", "int32", [None, -(2**31), 2**31 - 1, 0]),
    "big": ("Nullable(Int64)", "int64", [2**63 - 1, None, -(2**63), 2**53 + 1]),
    "value": ("Nullable(Float64)", "float64", FLOATS),
    "float": ("Float64", "float64", FLOATS[1:]),
    "te xt": ("Nullable(String)", "text", TEXTS),
    "some": ("LowCardinality(String)", "text", ["a", "", "more than twelve bytes"]),
    "word": ("LowCardinality(Nullable(String))", "text", ["a", "", None, "more than twelve bytes"]),
}
LOGICAL_TYPES = {name: logical for name, (_, logical, _) in COLUMNS.items()}
DEFINITION = ", ".join(f"`{name}` {sql_type}" for name, (sql_type, *_) in COLUMNS.items())


def hostile_frame() -> pl.DataFrame:
    return pl.DataFrame(
        {
            name: pl.Series([values[row % len(values)] for row in range(len(TEXTS))], dtype=polars_dtype(logical))
            for name, (_, logical, values) in COLUMNS.items()
        }
    )


def stored(server: clickhouse_driver.Client, table: str) -> pl.DataFrame:
    """The rows of the table, read by a client that few of the transports use."""
    rows = server.execute(f"SELECT * REPLACE (toString(key) AS key, toString(id) AS id) FROM `{table}`")
    return pl.DataFrame(rows, schema=hostile_frame().schema, orient="row")


def wrong(expected: pl.DataFrame, found: pl.DataFrame) -> list[str]:
    return differences(expected.sort("place"), found.sort("place"), ("place",))
