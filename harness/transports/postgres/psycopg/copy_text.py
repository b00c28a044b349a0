r"""psycopg 3 with COPY in Postgres' own text format, its default: https://www.postgresql.org/docs/current/sql-copy.html

Tabs separate columns, \N is NULL, and a string's backslash, tab or line end is escaped with a backslash. This is not a
CSV dialect: nothing is quoted. CSV writers and readers handle it with quoting off. One pass over the string columns
adds or removes the escapes. A string \N is then written \\N, distinct from NULL.
"""

import csv
import io
import re

from harness.registry import phase, transport
from harness.transports.postgres.columns import polars_schema
from harness.transports.postgres.psycopg.client import received
from harness.transports.postgres.sql import copy_from_stdin, copy_to_stdout
from harness.transports.postgres.tables import types_of

ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}  # all that must be escaped for the server
ESCAPED = {r"\\": "\\", r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\b": "\b", r"\f": "\f", r"\v": "\v"}  # all it sends


@transport("COPY FROM STDIN", "delimited text")
def write_polars_copy_text_format(connection, frame, table):
    """Send the frame in Postgres' text format, with strings escaped, into COPY ... FROM STDIN.

    The client sends text, and the server parses every value again.
    """
    import polars as pl

    buffer = io.BytesIO()
    with phase("encode"):
        frame = frame.with_columns(pl.col(pl.String).str.replace_many(ESCAPES))
        frame.write_csv(buffer, include_header=False, separator="\t", quote_style="never", null_value=r"\N")
    with phase("send"), connection.cursor().copy(copy_from_stdin(table, frame.columns)) as copy:
        copy.write(buffer.getbuffer())


def _writable(values):
    """Return a column as `to_csv` is to write it: strings escaped, NaN in a float column as the string NaN."""
    if values.dtype in ("float64", "float32") and values.hasnans:
        return values.astype(object).where(values.notna(), "NaN")
    if values.dtype == object:
        escapes = str.maketrans(ESCAPES)
        return values.map(lambda value: value.translate(escapes) if isinstance(value, str) else value)
    if str(values.dtype).startswith(("str", "large_string")):
        for character, escape in ESCAPES.items():
            values = values.str.replace(character, escape, regex=False)
    return values


@transport("COPY FROM STDIN", "delimited text")
def write_pandas_copy_text_format(connection, frame, table):
    """Send the frame in Postgres' text format, with strings escaped, into COPY ... FROM STDIN.

    The client sends text, and the server parses every value again. `to_csv` writes NaN like a missing value, so NaN in
    a float column first becomes the string NaN and arrives as NaN.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame = frame.assign(**{name: _writable(frame[name]) for name in frame.columns})
        frame.to_csv(buffer, index=False, header=False, sep="\t", quoting=csv.QUOTE_NONE, na_rep=r"\N")
    with phase("send"), connection.cursor().copy(copy_from_stdin(table, frame.columns)) as copy:
        copy.write(buffer.getbuffer())


@transport("COPY TO STDOUT", "delimited text")
def read_polars_copy_text_format(connection, table):
    """Collect COPY ... TO STDOUT in Postgres' text format, parse it with polars.read_csv and remove the escapes.

    The server sends text. The transport asks it for the types, so polars guesses nothing. A uuid stays String, as does
    any type not listed here.
    """
    import polars as pl

    with phase("receive"):
        schema = polars_schema(types_of(connection, table))
        buffer = received(connection, copy_to_stdout(table))
    with phase("decode"):
        frame = pl.read_csv(
            buffer,
            has_header=False,
            separator="\t",
            quote_char=None,
            schema=schema,
            null_values=r"\N",
            empty_string_is_null=False,
        )
        return frame.with_columns(pl.col(pl.String).str.replace_many(ESCAPED))


def _unescaped(strings):
    """Return a column with its escapes removed, changing only the strings that have any."""
    escaped = strings.str.contains("\\", regex=False, na=False)
    if not escaped.any():
        return strings
    return strings.mask(
        escaped, strings[escaped].map(lambda text: re.sub(r"\\.", lambda found: ESCAPED[found[0]], text))
    )


@transport("COPY TO STDOUT", "delimited text")
def read_pandas_copy_text_format(connection, table):
    """Collect COPY ... TO STDOUT in Postgres' text format, parse it with pandas.read_csv and remove the escapes.

    The server sends text. The transport asks it for the types, so pandas guesses nothing. A date becomes datetime64, an
    integer with nulls Int32 or Int64. A uuid stays str, as does any type not listed here. A null float is NaN.
    """
    import pandas as pd

    integers = {"int2": "Int16", "int4": "Int32", "int8": "Int64"}
    dtypes = {**integers, "float4": "float32", "float8": "float64"}
    with phase("receive"):
        types = types_of(connection, table)
        buffer = received(connection, copy_to_stdout(table))
    with phase("decode"):
        frame = pd.read_csv(
            buffer,
            sep="\t",
            header=None,
            names=list(types),
            quoting=csv.QUOTE_NONE,
            dtype={name: dtypes.get(sql_type, "str") for name, sql_type in types.items()},
            keep_default_na=False,
            na_values={name: [r"\N", "NaN"] if "float" in sql_type else [r"\N"] for name, sql_type in types.items()},
        )
        for name, sql_type in types.items():
            if sql_type == "date":
                frame[name] = pd.to_datetime(frame[name], format="ISO8601")
            elif sql_type in integers and not frame[name].hasnans:
                frame[name] = frame[name].astype(integers[sql_type].lower())
            elif frame[name].dtype == "str":
                frame[name] = _unescaped(frame[name])
        return frame
