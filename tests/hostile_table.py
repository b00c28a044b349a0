"""A hostile Postgres table, and the operations of tests on it.

Its names need quotes; it has nulls next to empty strings, strings that look like markers, extreme numbers and dates.
"""

import uuid
from datetime import date

import pandas as pd
import polars as pl
import psycopg

from harness.check.canonical import as_pandas
from harness.check.equality import differences

TABLE = "Hostile rows"
COLUMNS = {
    "select": ("uuid", "uuid"),
    "Day": ("date", "date"),
    "number of": ("integer", "int32"),
    "text, mostly": ("text", "text"),
    "größe": ("double precision", "float64"),
}
LOGICAL_TYPES = {name: logical for name, (_, logical) in COLUMNS.items()}
TEXTS = [None, "", r"\N", "NULL", "NaN", 'say "x"', "a,b", "l\nm", "l\r\nm", "\r", r"\.", "\t", " x ", "'", "é😀", "\\"]
TEXTS += [r"\NN", r"\\N", r"\t", "a\\b", '"', "007", "%s", "{}", "\x01", "\x0b\x0c\x08", "\u2028"]
FLOATS = [None, float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 5e-324, 1e-310, 1.7976931348623157e308, 0.1]
DATES = [None, date(1, 1, 1), date(1969, 12, 31), date(2000, 1, 1), date(9999, 12, 31)]
NUMBERS = [None, 0, -1, 2**31 - 1, -(2**31)]
ROWS = 400


def hostile(rows: int = ROWS) -> pl.DataFrame:
    """The hostile rows, each with its own uuid, not in its order."""
    keys = [str(uuid.UUID(int=(number * 7_919) % 100_003 << 96)) for number in range(rows)]
    values = (keys, DATES, NUMBERS, TEXTS, FLOATS)
    dtypes = (pl.String, pl.Date, pl.Int32, pl.String, pl.Float64)
    return pl.DataFrame(
        {
            name: pl.Series([some[row % len(some)] for row in range(rows)], dtype=dtype)
            for name, some, dtype in zip(COLUMNS, values, dtypes, strict=True)
        }
    )


def for_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """The same rows as pandas has them: integers with NA, and NaN where a float is null."""
    return as_pandas(frame, LOGICAL_TYPES)


def stored(server: psycopg.Connection) -> pl.DataFrame:
    """The rows of the table, read by a client that none of these transports uses."""
    names = ", ".join(f'"{name}"' + ("::text" if logical == "uuid" else "") for name, logical in LOGICAL_TYPES.items())
    rows = server.execute(f'SELECT {names} FROM "{TABLE}"', binary=True).fetchall()
    return pl.DataFrame(rows, schema=hostile(0).schema, orient="row")


def fill(server: psycopg.Connection, frame: pl.DataFrame) -> None:
    with server.cursor().copy(f'COPY "{TABLE}" FROM STDIN') as copy:
        for row in frame.iter_rows():
            copy.write_row(row)


def wrong(expected: pl.DataFrame, found: pl.DataFrame) -> list[str]:
    return differences(expected.sort("select"), found, ("select",))


def write_more(server: psycopg.Connection) -> None:
    """Change every row of the table, and add as many."""
    server.execute(f'UPDATE "{TABLE}" SET "number of" = 1')
    server.execute(f'INSERT INTO "{TABLE}" SELECT * FROM "{TABLE}"')


def without_extreme_dates(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(~pl.col("Day").is_in([date.min, date.max]).fill_null(False))


def missing_floats_as(frame: pl.DataFrame, value: float | None) -> pl.DataFrame:
    """The frame with nulls and NaN of its float column both as one of them."""
    column = pl.col("größe")
    return frame.with_columns(column.fill_nan(None) if value is None else column.fill_null(value))
