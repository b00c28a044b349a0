"""psycopg2, the Postgres driver before psycopg 3: https://www.psycopg.org/docs/

It sends every value as text within the statement. Its COPY takes and gives a file object: `copy_expert`.
"""

import csv
import io
from contextlib import closing, contextmanager

from harness.registry import phase, transport
from harness.transports.postgres.sql import identifier, identifiers, literal
from harness.transports.postgres.tables import rows_of_pandas

PAGE_ROWS = 1_000  # of one INSERT; the default is 100


@contextmanager
def connect(uri):
    """Yield one connection; each write commits its own transaction."""
    import psycopg2

    with closing(psycopg2.connect(uri)) as connection:
        yield connection


def _insert(connection, table, columns, rows):
    """Insert rows of Python values, many in one statement."""
    from psycopg2.extras import execute_values

    # A parameter begins with %, also within a name.
    query = f"INSERT INTO {identifier(table)} ({identifiers(columns)})".replace("%", "%%") + " VALUES %s"
    with connection, connection.cursor() as cursor:
        execute_values(cursor, query, rows, page_size=PAGE_ROWS)


def _copy_in(connection, table, columns, buffer, null=""):
    """Send CSV into the table; `null` means NULL, in quotes as well."""
    options = f"NULL {literal(null)}, FORCE_NULL ({identifiers(columns)})" if null else "NULL ''"
    statement = f"COPY {identifier(table)} ({identifiers(columns)}) FROM STDIN WITH (FORMAT csv, {options})"
    buffer.seek(0)
    with connection, connection.cursor() as cursor:
        cursor.copy_expert(statement, buffer)


def _copy_out(connection, table):
    """Return the names of the table's columns, and the table as CSV under a line of names, in a buffer at its start."""
    buffer = io.BytesIO()
    with connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {identifier(table)} LIMIT 0")
        names = [column.name for column in cursor.description]
        cursor.copy_expert(f"COPY (SELECT * FROM {identifier(table)}) TO STDOUT WITH (FORMAT csv, HEADER)", buffer)
    buffer.seek(0)
    return names, buffer


@transport("execute_values", "rows")
def write_polars_execute_values(connection, frame, table):
    """Insert the rows with psycopg2.extras.execute_values, 1,000 rows an INSERT, in one transaction.

    psycopg2 writes every value as text into the statement, and the server parses it again: -0.0 there is the number 0.
    """
    _insert(connection, table, frame.columns, frame.iter_rows())


@transport("execute_values", "rows")
def write_pandas_execute_values(connection, frame, table):
    """Insert the rows with psycopg2.extras.execute_values, 1,000 rows an INSERT, in one transaction.

    psycopg2 writes every value as text into the statement, and the server parses it again: -0.0 there is the number 0.
    A missing value goes as NULL, except NaN in a float column.
    """
    _insert(connection, table, list(frame.columns), rows_of_pandas(frame))


@transport("COPY FROM STDIN", "delimited text")
def write_polars_copy_expert(connection, frame, table):
    """Send the frame as one CSV into COPY ... FROM STDIN with copy_expert.

    Strings are quoted and nulls are empty, so that the server tells an empty string from NULL. It parses every value
    again.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame.write_csv(buffer, include_header=False, quote_style="non_numeric")
    with phase("send"):
        _copy_in(connection, table, frame.columns, buffer)


@transport("COPY FROM STDIN", "delimited text")
def write_pandas_copy_expert(connection, frame, table):
    r"""Send the frame as one CSV into COPY ... FROM STDIN with copy_expert.

    `to_csv` marks a missing value with \N, quoted like any string, and FORCE_NULL lets the server take it so. A
    floating NaN, and a string that is itself \N, arrive as NULL. The server parses every value again.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame.to_csv(buffer, index=False, header=False, quoting=csv.QUOTE_NONNUMERIC, na_rep=r"\N")
    with phase("send"):
        _copy_in(connection, table, list(frame.columns), buffer, null=r"\N")


@transport("COPY TO STDOUT", "delimited text")
def read_polars_copy_expert(connection, table):
    """Collect COPY ... TO STDOUT as CSV with copy_expert and parse it with polars.read_csv.

    Text crosses the wire, and polars guesses the types from the first 100 rows, dates included. A column of digits
    becomes a number. A uuid or an array stays a string. A column of 100 whole numbers and a later fraction is refused.
    """
    import polars as pl

    with phase("receive"):
        names, buffer = _copy_out(connection, table)
    with phase("decode"):
        return pl.read_csv(buffer, new_columns=names, try_parse_dates=True)


@transport("COPY TO STDOUT", "delimited text")
def read_pandas_copy_expert(connection, table):
    """Collect COPY ... TO STDOUT as CSV with copy_expert and parse it with pandas.read_csv.

    Text crosses the wire, and pandas guesses the types from it. A column of digits becomes a number. An empty string
    and words such as "NA" or "null" become missing values. A date stays a string.
    """
    import pandas as pd

    with phase("receive"):
        names, buffer = _copy_out(connection, table)
    with phase("decode"):
        return pd.read_csv(buffer, header=0, names=names)
