"""psycopg 3 by rows: INSERTs one by one, and cursors: https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html

The writes are the slow end of the comparison: psycopg's documentation advises COPY instead. The reads fetch values in
binary, or in portions through a server-side cursor.
"""

from harness.registry import phase, transport
from harness.transports.postgres.sql import identifier, identifiers
from harness.transports.postgres.tables import rows_of_pandas

BATCH_ROWS = 10_000


def _insert(table, columns):
    """Return an INSERT with one parameter for each column and every name quoted."""
    query = f"INSERT INTO {identifier(table)} ({identifiers(columns)}) VALUES "
    # % begins a parameter, even within a name.
    return query.replace("%", "%%") + f"({', '.join(['%s'] * len(columns))})"


def _send_many(connection, table, columns, rows):
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(_insert(table, columns), rows)


def _send_in_pipeline(connection, table, columns, rows):
    insert = _insert(table, columns)
    with connection.transaction(), connection.pipeline(), connection.cursor() as cursor:
        for row in rows:
            cursor.execute(insert, row)


@transport("executemany", "rows")
def write_polars_executemany(connection, frame, table):
    """Insert the rows one by one with executemany, in one transaction.

    psycopg prepares the statement and sends the rows as a pipeline, without waiting for an answer in between. It sends
    strings and uuids as text, and numbers and dates in the form that it chooses for each value.
    """
    _send_many(connection, table, frame.columns, frame.iter_rows())


@transport("executemany", "rows")
def write_pandas_executemany(connection, frame, table):
    """Insert the rows one by one with executemany, in one transaction.

    psycopg prepares the statement and sends the rows as a pipeline, without waiting for an answer in between. Missing
    values are sent as NULL, except NaN in a float column. A datetime64 is sent as a timestamp, which the server casts.
    """
    _send_many(connection, table, list(frame.columns), rows_of_pandas(frame))


@transport("pipelined INSERT", "rows")
def write_polars_pipeline(connection, frame, table):
    """Insert the rows one by one with execute, in one transaction and in pipeline mode.

    In pipeline mode execute does not wait for the answer: this does explicitly, row by row, what executemany does
    internally.
    """
    _send_in_pipeline(connection, table, frame.columns, frame.iter_rows())


@transport("pipelined INSERT", "rows")
def write_pandas_pipeline(connection, frame, table):
    """Insert the rows one by one with execute, in one transaction and in pipeline mode.

    In pipeline mode execute does not wait for the answer: this does explicitly, row by row, what executemany does
    internally. Missing values are sent as NULL, except NaN in a float column. A datetime64 is sent as a timestamp,
    which the server casts.
    """
    _send_in_pipeline(connection, table, list(frame.columns), rows_of_pandas(frame))


@transport("row fetch", "binary rows")
def read_polars_binary_rows(connection, table):
    """Fetch all rows of one query in binary form as tuples and build the frame from them.

    With `binary=True` the server sends binary values instead of text. A uuid arrives as a Python object (polars dtype
    Object), an integer as Int64.
    """
    import polars as pl

    with phase("receive"):
        cursor = connection.execute(f"SELECT * FROM {identifier(table)}", binary=True)
    with phase("decode"):
        columns = [column.name for column in cursor.description]
        return pl.DataFrame(cursor.fetchall(), schema=columns, orient="row", infer_schema_length=None)


@transport("row fetch", "binary rows")
def read_pandas_binary_rows(connection, table):
    """Fetch all rows of one query in binary form as tuples and build the frame from them.

    With `binary=True` the server sends binary values instead of text. A uuid and a date arrive as Python objects (dtype
    object), an integer as int64, or as float64 with nulls.
    """
    import pandas as pd

    with phase("receive"):
        cursor = connection.execute(f"SELECT * FROM {identifier(table)}", binary=True)
    with phase("decode"):
        return pd.DataFrame(cursor.fetchall(), columns=[column.name for column in cursor.description])


@transport("server-side cursor", "rows")
def read_polars_server_cursor(connection, table):
    """Fetch 10,000 rows at a time through a server-side cursor, build a frame of each portion and join the frames.

    Memory holds only one portion as Python values, while the other row fetches hold the whole result twice. The server
    sends text. A uuid arrives as a Python object (polars dtype Object), an integer as Int64.
    """
    import polars as pl

    with connection.transaction(), connection.cursor(name="rows") as cursor:
        cursor.execute(f"SELECT * FROM {identifier(table)}")
        columns = [column.name for column in cursor.description]
        frames = [pl.DataFrame(schema=columns)]
        while rows := cursor.fetchmany(BATCH_ROWS):
            frames.append(pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None))
    return pl.concat(frames[1:] or frames, how="vertical_relaxed")


@transport("server-side cursor", "rows")
def read_pandas_server_cursor(connection, table):
    """Fetch 10,000 rows at a time through a server-side cursor, build a frame of each portion and join the frames.

    Memory holds only one portion as Python values. The server sends text. A uuid and a date arrive as Python objects
    (dtype object), an integer as int64, or as float64 with nulls.
    """
    import pandas as pd

    with connection.transaction(), connection.cursor(name="rows") as cursor:
        cursor.execute(f"SELECT * FROM {identifier(table)}")
        columns = [column.name for column in cursor.description]
        frames = [pd.DataFrame(columns=columns)]
        while rows := cursor.fetchmany(BATCH_ROWS):
            frames.append(pd.DataFrame(rows, columns=columns))
    return pd.concat(frames[1:] or frames, ignore_index=True)
