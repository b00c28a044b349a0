"""psycopg 3, the reference Postgres driver for Python: https://www.psycopg.org/psycopg3/docs/"""

import csv
import io

from harness.registry import phase, transport
from harness.transports.postgres.psycopg.client import received
from harness.transports.postgres.sql import copy_from_stdin, copy_to_stdout, identifier

TABS = r"WITH (FORMAT csv, DELIMITER E'\t', NULL '\N')"
TABS_AND_HEADER = r"WITH (FORMAT csv, HEADER, DELIMITER E'\t', NULL '\N')"


@transport("COPY FROM STDIN", "delimited text", published="psycopg COPY FROM STDIN from Polars delimited text")
def write_polars_copy_text(connection, frame, table):
    r"""Send the frame as tab-delimited text into COPY ... FROM STDIN.

    The client sends only text, and the server parses every value again. The recipe marks nulls with \N, and polars does
    not quote a string that is itself \N, so such a string arrives as NULL.
    """
    with phase("encode"):
        buffer = io.BytesIO()
        frame.write_csv(buffer, include_header=False, separator="\t", null_value=r"\N")
    with phase("send"), connection.cursor().copy(copy_from_stdin(table, frame.columns, TABS)) as copy:
        copy.write(buffer.getbuffer())


@transport("COPY FROM STDIN", "delimited text", published="psycopg COPY FROM STDIN from Pandas delimited text")
def write_pandas_copy_text(connection, frame, table):
    r"""Send the frame as tab-delimited text into COPY ... FROM STDIN.

    The client sends only text, and the server parses every value again. The recipe marks missing values with \N. NaN in
    a float column, and a string that is itself \N, arrive as NULL.
    """
    with phase("encode"):
        buffer = io.BytesIO()
        frame.to_csv(buffer, index=False, header=False, sep="\t", na_rep=r"\N")
    with phase("send"), connection.cursor().copy(copy_from_stdin(table, frame.columns, TABS)) as copy:
        copy.write(buffer.getbuffer())


@transport(
    "COPY TO STDOUT",
    "delimited text",
    published="psycopg COPY TO STDOUT delimited text -> Polars dataframe",
    control=True,
)
def read_polars_copy_text(connection, table):
    r"""Collect COPY ... TO STDOUT as tab-delimited text and parse it with polars.read_csv.

    The server sends text, and polars guesses the types from the first 100 rows. A uuid and a date stay String, an
    integer becomes Int64, and a column of digits becomes a number. An empty string and a string \N become null. A float
    column that starts with 100 integers is refused, and one with an infinity stays String. The article lists the column
    names by hand; here COPY sends them as a header line.
    """
    import polars as pl

    with phase("receive"):
        buffer = received(connection, copy_to_stdout(table, TABS_AND_HEADER))
    with phase("decode"):
        names = next(csv.reader(map(bytes.decode, buffer), delimiter="\t"))  # polars keeps doubled quotes in names
        buffer.seek(0)
        return pl.read_csv(buffer, separator="\t", null_values=r"\N", new_columns=names)


@transport("COPY TO STDOUT", "delimited text", published="psycopg COPY TO STDOUT delimited text -> Pandas dataframe")
def read_pandas_copy_text(connection, table):
    r"""Collect COPY ... TO STDOUT as tab-delimited text and parse it with pandas.read_csv.

    The server sends text, and pandas guesses the types. A uuid and a date stay str, an integer becomes int64, and a
    column of digits becomes a number. An empty string, \N or a word such as "NA" or "null" becomes a missing value. The
    article lists the column names by hand; here COPY sends them as a header line.
    """
    import pandas as pd

    with phase("receive"):
        buffer = received(connection, copy_to_stdout(table, TABS_AND_HEADER))
    with phase("decode"):
        return pd.read_csv(buffer, sep="\t", na_values=r"\N")


@transport("row fetch", "rows", published="psycopg row fetch -> Polars dataframe")
def read_polars_rows(connection, table):
    """Fetch all rows of one query as tuples and build the frame from them.

    psycopg requests text by default, and parses it into Python values. A uuid arrives as a Python object (polars dtype
    Object), an integer as Int64.
    """
    import polars as pl

    with phase("receive"):
        cursor = connection.execute(f"SELECT * FROM {identifier(table)}")
    columns = [column.name for column in cursor.description]
    with phase("decode"):
        return pl.DataFrame(cursor.fetchall(), schema=columns, orient="row")


@transport("row fetch", "rows", published="psycopg row fetch -> Pandas dataframe")
def read_pandas_rows(connection, table):
    """Fetch all rows of one query as tuples and build the frame from them.

    psycopg requests text by default, and parses it into Python values. A uuid and a date arrive as Python objects
    (dtype object), an integer as int64.
    """
    import pandas as pd

    with phase("receive"):
        cursor = connection.execute(f"SELECT * FROM {identifier(table)}")
    columns = [column.name for column in cursor.description]
    with phase("decode"):
        return pd.DataFrame(cursor.fetchall(), columns=columns)


@transport("SELECT 1", "one value", origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    return connection.execute("SELECT 1").fetchone()[0]
