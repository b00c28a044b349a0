"""SQLAlchemy over psycopg 3, through which both libraries read by default: https://docs.sqlalchemy.org/en/20/core/"""

from contextlib import contextmanager

from harness.registry import transport


@contextmanager
def connect(uri):
    """Yield an engine over psycopg 3 whose pool already holds one open connection."""
    import sqlalchemy as sa

    engine = sa.create_engine(sa.make_url(uri).set(drivername="postgresql+psycopg"))
    try:
        engine.connect().close()  # an engine connects at its first use; the connection goes back to the pool
        yield engine
    finally:
        engine.dispose()


@transport(
    "read",
    frame="polars",
    path="read_database",
    payload="rows",
    requires=["polars", "psycopg", "sqlalchemy", "sqlalchemy.orm", "sqlalchemy.ext.asyncio"],
    published="psycopg / SQLAlchemy -> polars.read_database",
)
def read_polars_read_database(engine, table):
    """Read the table with polars.read_database through a SQLAlchemy engine.

    A row fetch underneath: text crosses the wire, psycopg parses it into Python values and polars builds the frame
    from them. A uuid comes as a Python object (polars dtype Object), an integer as Int64.
    """
    import polars as pl

    return pl.read_database(f'SELECT * FROM "{table}"', connection=engine)


@transport(
    "read",
    frame="pandas",
    path="read_sql_query",
    payload="rows",
    requires=["pandas", "psycopg", "sqlalchemy"],
    published="psycopg / SQLAlchemy -> pandas.read_sql_query",
)
def read_pandas_read_sql_query(engine, table):
    """Read the table with pandas.read_sql_query through a SQLAlchemy engine.

    A row fetch underneath: text crosses the wire, psycopg parses it into Python values and pandas builds the frame
    from them. A uuid and a date come as Python objects (dtype object), an integer as int64.
    """
    import pandas as pd

    return pd.read_sql_query(f'SELECT * FROM "{table}"', engine)


@transport("call", path="SELECT 1", payload="one value", requires=["psycopg", "sqlalchemy"], origin="limit")
def call_select_1(engine):
    """Ask for the number 1: what this client takes for a round trip with nothing in it."""
    from sqlalchemy import text

    with engine.connect() as connection:
        return connection.execute(text("SELECT 1")).scalar_one()
