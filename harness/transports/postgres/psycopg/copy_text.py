r"""psycopg 3 with COPY in Postgres' own text format, its default: https://www.postgresql.org/docs/current/sql-copy.html

Columns stand between tabs, \N is NULL, and within a text a backslash, tab or line end is written with a backslash. That
is no dialect of CSV: nothing is quoted. CSV writers and readers do it when told not to quote, and the escapes are put
in or taken out in one pass over the text columns. A text \N is then written \\N, and so nothing is lost.
"""

import csv
import io
import re

from harness.registry import phase, transport
from harness.transports.postgres.psycopg.client import received, types_of

ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}  # all that a server must be sent in this way
ESCAPED = {r"\\": "\\", r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\b": "\b", r"\f": "\f", r"\v": "\v"}  # all it sends


def _copy_from_stdin(table, columns):
    """Return COPY ... FROM STDIN in the text format, with every name quoted."""
    from psycopg import sql

    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)


def _copy_to_stdout(connection, table):
    """Return what COPY ... TO STDOUT sends in the text format, as a buffer at its start."""
    from psycopg import sql

    statement = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT").format(sql.Identifier(table))
    return received(connection, statement)


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN",
    payload="delimited text",
    requires=["polars", "psycopg"],
    lossy={"changed": "float32_into_float64", "refused": "far_dates arrays float64_into_int32"},
)
def write_polars_copy_text_format(connection, frame, table):
    """Send the frame in Postgres' text format, its texts escaped, into COPY ... FROM STDIN.

    Text crosses the wire: the server parses every value again.
    """
    import polars as pl

    buffer = io.BytesIO()
    with phase("encode"):
        frame = frame.with_columns(pl.col(pl.String).str.replace_many(ESCAPES))
        frame.write_csv(buffer, include_header=False, separator="\t", quote_style="never", null_value=r"\N")
    with phase("send"), connection.cursor().copy(_copy_from_stdin(table, frame.columns)) as copy:
        copy.write(buffer.getbuffer())


def _writable(values):
    """Return a column as `to_csv` is to write it: texts escaped, NaN among floats as the text NaN."""
    if values.dtype in ("float64", "float32") and values.hasnans:
        return values.astype(object).where(values.notna(), "NaN")
    if values.dtype == object:
        escapes = str.maketrans(ESCAPES)
        return values.map(lambda value: value.translate(escapes) if isinstance(value, str) else value)
    if str(values.dtype).startswith(("str", "large_string")):
        for character, escape in ESCAPES.items():
            values = values.str.replace(character, escape, regex=False)
    return values


@transport(
    "write",
    frame="pandas",
    path="COPY FROM STDIN",
    payload="delimited text",
    requires=["pandas", "psycopg"],
    lossy={"changed": "float32_into_float64", "refused": "arrays float64_into_int32"},
)
def write_pandas_copy_text_format(connection, frame, table):
    """Send the frame in Postgres' text format, its texts escaped, into COPY ... FROM STDIN.

    Text crosses the wire: the server parses every value again. `to_csv` writes NaN as it writes what is missing, so a
    NaN in a float column becomes the text NaN first and arrives as NaN.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame = frame.assign(**{name: _writable(frame[name]) for name in frame.columns})
        frame.to_csv(buffer, index=False, header=False, sep="\t", quoting=csv.QUOTE_NONE, na_rep=r"\N")
    with phase("send"), connection.cursor().copy(_copy_from_stdin(table, frame.columns)) as copy:
        copy.write(buffer.getbuffer())


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT",
    payload="delimited text",
    requires=["polars", "psycopg"],
    lossy={"changed": "arrays", "refused": "far_dates"},
)
def read_polars_copy_text_format(connection, table):
    """Collect COPY ... TO STDOUT in Postgres' text format, parse it with polars.read_csv and take out the escapes.

    Text crosses the wire. The server is asked for the types, so nothing is guessed: a uuid stays String, as does any
    type not listed here.
    """
    import polars as pl

    dtypes = {
        "int2": pl.Int16,
        "int4": pl.Int32,
        "int8": pl.Int64,
        "float4": pl.Float32,
        "float8": pl.Float64,
        "date": pl.Date,
    }
    with phase("receive"):
        schema = {name: dtypes.get(sql_type, pl.String) for name, sql_type in types_of(connection, table).items()}
        buffer = _copy_to_stdout(connection, table)
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


def _unescaped(texts):
    """Return a column with its escapes taken out, touching only the texts that have any."""
    escaped = texts.str.contains("\\", regex=False, na=False)
    if not escaped.any():
        return texts
    return texts.mask(escaped, texts[escaped].map(lambda text: re.sub(r"\\.", lambda found: ESCAPED[found[0]], text)))


@transport(
    "read",
    frame="pandas",
    path="COPY TO STDOUT",
    payload="delimited text",
    requires=["pandas", "psycopg"],
    lossy={"changed": "arrays", "refused": "far_dates"},
)
def read_pandas_copy_text_format(connection, table):
    """Collect COPY ... TO STDOUT in Postgres' text format, parse it with pandas.read_csv and take out the escapes.

    Text crosses the wire. The server is asked for the types, so nothing is guessed: a date becomes datetime64, an
    integer with nulls Int32 or Int64; a uuid stays str, as does any type not listed here. A null float is NaN.
    """
    import pandas as pd

    integers = {"int2": "Int16", "int4": "Int32", "int8": "Int64"}
    dtypes = {**integers, "float4": "float32", "float8": "float64"}
    with phase("receive"):
        types = types_of(connection, table)
        buffer = _copy_to_stdout(connection, table)
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
