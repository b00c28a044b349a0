"""SQLAlchemy over psycopg2, which SQLAlchemy 2.0 takes for an address that begins with `postgresql://`.

The calls of pandas and polars on an engine of a plain address, with no option beyond those that name the table.
https://docs.sqlalchemy.org/en/20/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2
"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.tables import sqlalchemy_engine
from harness.transports.sqlalchemy import for_text

STATEMENT_ROWS = 100


@contextmanager
def connect(uri):
    """Yield an engine over psycopg2 whose pool already holds one open connection."""
    # By name, because SQLAlchemy 2.1 takes psycopg 3 for the same address.
    with sqlalchemy_engine(uri, "psycopg2") as engine:
        yield engine


@transport("to_sql", "rows", requires=["psycopg2"])
def write_pandas_to_sql(engine, frame, table):
    """Append the frame to the table with pandas.DataFrame.to_sql and its default method.

    Every row becomes a dict, and SQLAlchemy puts 1,000 of them into an INSERT, whose values psycopg2 writes as text. A
    NaN arrives as NULL, and -0.0 as 0.
    """
    frame.to_sql(table, engine, if_exists="append", index=False)


@transport("to_sql", "rows", requires=["psycopg2"])
def write_pandas_to_sql_multi(engine, frame, table):
    """Append the frame to the table with pandas.DataFrame.to_sql and method="multi", 100 rows an INSERT.

    SQLAlchemy makes an object of every value and names it, which takes most of the time. A NaN arrives as NULL, and
    -0.0 as 0.
    """
    frame.to_sql(table, engine, if_exists="append", index=False, method="multi", chunksize=STATEMENT_ROWS)


@transport("write_database", "rows", requires=["pandas", "pyarrow", "psycopg2", "sqlalchemy.orm"])
def write_polars_write_database(engine, frame, table):
    """Append the frame to the table with polars.DataFrame.write_database and a SQLAlchemy engine.

    pandas.to_sql does the work, on a pandas frame of Arrow columns. A NaN arrives as NULL, and -0.0 as 0.
    """
    frame.write_database(identifier(table), engine, engine="sqlalchemy", if_table_exists="append")


@transport("read_sql_query", "rows", requires=["psycopg2"])
def read_pandas_read_sql_query(engine, table):
    """Read the table with pandas.read_sql_query.

    Text crosses the wire, psycopg2 parses it into Python values, and pandas builds the frame from them. A date and a
    uuid come as Python objects (dtype object), an integer as int64.
    """
    import pandas as pd

    query = f"SELECT * FROM {identifier(table)}"
    return pd.read_sql_query(query.replace("%", "%%"), engine)  # pandas hands a string to the driver as it is


@transport("read_database", "rows", requires=["psycopg2", "sqlalchemy.orm", "sqlalchemy.ext.asyncio"])
def read_polars_read_database(engine, table):
    """Read the table with polars.read_database.

    Text crosses the wire, psycopg2 parses it into Python values, and polars builds the frame from them. A uuid comes as
    a Python object (polars dtype Object), an integer as Int64.
    """
    import polars as pl

    return pl.read_database(for_text(f"SELECT * FROM {identifier(table)}"), connection=engine)
