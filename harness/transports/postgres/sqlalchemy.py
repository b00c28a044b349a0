"""SQLAlchemy over psycopg 3: https://docs.sqlalchemy.org/en/20/core/

SQLAlchemy 2.1 takes it for an address that begins with `postgresql://`; 2.0 takes psycopg2.
"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.tables import sqlalchemy_engine
from harness.transports.postgres.to_sql import insert_by_copy, uuid_types
from harness.transports.sqlalchemy import for_text

BATCH_ROWS = 10_000
STATEMENT_ROWS = 100


@contextmanager
def connect(uri):
    """Yield an engine over psycopg 3 whose pool already holds one open connection."""
    with sqlalchemy_engine(uri, "psycopg") as engine:
        yield engine


@transport(
    "read_database",
    "rows",
    requires=["psycopg", "sqlalchemy.orm", "sqlalchemy.ext.asyncio"],
    published="psycopg / SQLAlchemy -> polars.read_database",
)
def read_polars_read_database(engine, table):
    """Read the table with polars.read_database through a SQLAlchemy engine.

    polars fetches rows: the server sends text, psycopg parses it into Python values, and polars builds the frame. A
    uuid arrives as a Python object (polars dtype Object), an integer as Int64.
    """
    import polars as pl

    return pl.read_database(for_text(f"SELECT * FROM {identifier(table)}"), connection=engine)


@transport("read_sql_query", "rows", requires=["psycopg"], published="psycopg / SQLAlchemy -> pandas.read_sql_query")
def read_pandas_read_sql_query(engine, table):
    """Read the table with pandas.read_sql_query through a SQLAlchemy engine.

    pandas fetches rows: the server sends text, psycopg parses it into Python values, and pandas builds the frame. A
    uuid and a date arrive as Python objects (dtype object), an integer as int64.
    """
    import pandas as pd

    query = f"SELECT * FROM {identifier(table)}"
    return pd.read_sql_query(query.replace("%", "%%"), engine)  # pandas passes a string to the driver unchanged


@transport("SELECT 1", "one value", requires=["psycopg"], origin="limit")
def call_select_1(engine):
    """Run `SELECT 1` to time an empty round trip of this client."""
    from sqlalchemy import text

    with engine.connect() as connection:
        return connection.execute(text("SELECT 1")).scalar_one()


@transport("write_database", "rows", requires=["pandas", "pyarrow", "psycopg", "sqlalchemy.orm"])
def write_polars_write_database(engine, frame, table):
    """Append the frame to the table with polars.DataFrame.write_database through a SQLAlchemy engine.

    polars calls pandas.to_sql on a pandas frame of Arrow columns. Every row becomes a dict and an INSERT, which psycopg
    sends as a pipeline (executemany). SQLAlchemy would cast every string to VARCHAR, so the transport declares the uuid
    columns. A NaN arrives as NULL.
    """
    options = {"dtype": uuid_types(engine, table)}
    frame.write_database(
        identifier(table), engine, engine="sqlalchemy", if_table_exists="append", engine_options=options
    )


@transport("to_sql", "rows", requires=["psycopg"])
def write_pandas_to_sql(engine, frame, table):
    """Append the frame to the table with pandas.DataFrame.to_sql and its default method, one INSERT a row.

    Every row becomes a dict and an INSERT, which psycopg sends as a pipeline (executemany). SQLAlchemy would cast every
    string to VARCHAR, so the transport declares the uuid columns. A NaN arrives as NULL.
    """
    frame.to_sql(table, engine, if_exists="append", index=False, dtype=uuid_types(engine, table))


@transport("to_sql", "rows", requires=["psycopg"])
def write_pandas_to_sql_multi(engine, frame, table):
    """Append the frame to the table with pandas.DataFrame.to_sql and method="multi", 100 rows an INSERT.

    SQLAlchemy makes an object of every value and names it, which takes most of the time. The most rows that the
    protocol allows (65,535 values) take about a quarter more time than 100. SQLAlchemy would cast every string to
    VARCHAR, so the transport declares the uuid columns. A NaN arrives as NULL.
    """
    types = uuid_types(engine, table)
    frame.to_sql(table, engine, if_exists="append", index=False, dtype=types, method="multi", chunksize=STATEMENT_ROWS)


@transport("to_sql", "delimited text", requires=["psycopg"])
def write_pandas_to_sql_copy(engine, frame, table):
    """Append the frame to the table with pandas.DataFrame.to_sql and the COPY recipe of its documentation as method.

    csv.writer turns rows of Python values into CSV, and the server parses every value again. csv.writer writes an empty
    string and None alike, so an empty string arrives as NULL, as does a NaN.
    """
    frame.to_sql(table, engine, if_exists="append", index=False, method=insert_by_copy)


@transport("read_database", "rows", requires=["psycopg", "sqlalchemy.orm", "sqlalchemy.ext.asyncio"])
def read_polars_read_database_batches(engine, table):
    """Read the table with polars.read_database in batches of 10,000 rows from a streaming connection, then joined.

    With stream_results the server holds the result in a cursor, and the client's memory only one batch as Python
    values. The server sends text. A uuid arrives as a Python object (polars dtype Object), an integer as Int64.
    """
    import polars as pl

    with engine.connect().execution_options(stream_results=True) as connection:
        batches = pl.read_database(
            _select(table), connection, iter_batches=True, batch_size=BATCH_ROWS, infer_schema_length=None
        )
        frames = list(batches) or [pl.read_database(_select(table), connection)]  # without rows there is no batch
    return pl.concat(frames, how="vertical_relaxed")


@transport("read_sql_query", "rows", requires=["psycopg"])
def read_pandas_read_sql_query_chunks(engine, table):
    """Read the table with pandas.read_sql_query in chunks of 10,000 rows from a streaming connection, then joined.

    With stream_results the server holds the result in a cursor, and the client's memory only one chunk as Python
    values. The server sends text. A uuid and a date arrive as Python objects (dtype object), an integer as int64.
    """
    import pandas as pd

    with engine.connect().execution_options(stream_results=True) as connection:
        return pd.concat(pd.read_sql_query(_select(table), connection, chunksize=BATCH_ROWS), ignore_index=True)


def _select(table):
    """Return the query for all rows, with the table's name quoted."""
    import sqlalchemy as sa

    return sa.text(for_text(f"SELECT * FROM {identifier(table)}"))
