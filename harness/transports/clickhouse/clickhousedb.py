"""SQLAlchemy over clickhouse-connect, dialect clickhousedb: https://clickhouse.com/docs/integrations/python"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier
from harness.transports.sqlalchemy import for_text

ENDPOINT = "clickhouse_http"


@contextmanager
def connect(uri):
    """Yield a SQLAlchemy connection, whose client has asked the server for its version and settings."""
    from sqlalchemy import create_engine, make_url

    url = make_url(uri)
    database = str(url.query.get("database", "default"))
    # Parameters after the ? go to the client; the prefix ch_ marks server settings.
    settings = {f"ch_{name}": value for name, value in INSERT_SETTINGS.items()}
    if url.drivername == "https":
        settings["secure"] = "true"  # the dialect's name replaces the scheme
    engine = create_engine(url.set(drivername="clickhousedb", database=database, query=settings))
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@transport("row fetch", "rows", requires=["clickhouse_connect.cc_sqlalchemy.dialect"])
def read_pandas_sql(connection, table):
    """Fetch the table with pandas.read_sql, the method most people try first.

    The server sends native columns. The client turns them into rows, and pandas turns the rows back into columns. UUIDs
    and dates stay Python objects (uuid.UUID, datetime.date). Integers become int64, or float64 with nulls. A null in a
    float column becomes NaN.
    """
    import pandas as pd
    from sqlalchemy import text

    return pd.read_sql(text(for_text(f"SELECT * FROM {identifier(table)}")), connection)


@transport("row fetch", "rows", requires=["clickhouse_connect.cc_sqlalchemy.dialect"])
def read_polars_database(connection, table):
    """Fetch the table with polars.read_database over a SQLAlchemy connection.

    The server sends native columns. The client turns them into rows, and polars turns the rows back into columns. UUIDs
    arrive as uuid.UUID, which polars can only hold in its Object type. With the default infer_schema_length of 100,
    polars gives a column that begins with 100 nulls the type Null. This transport sets it to None.
    """
    import polars as pl

    return pl.read_database(for_text(f"SELECT * FROM {identifier(table)}"), connection, infer_schema_length=None)


@transport(
    "native columnar insert", "rows", requires=["clickhouse_connect.cc_sqlalchemy.dialect"], settings=INSERT_SETTINGS
)
def write_pandas_to_sql(connection, frame, table):
    """Send the frame with pandas.to_sql, the method most people try first.

    pandas builds a dictionary of Python objects for each row, and the dialect turns them all into one insert of native
    columns. pandas first looks up the table. method="multi" puts the values into the query text; it took 70 times as
    long and is not measured. A NaN is sent as a null, which a column that is not Nullable refuses.
    """
    frame.to_sql(table, connection, if_exists="append", index=False)


@transport(
    "native columnar insert",
    "rows",
    requires=["clickhouse_connect.cc_sqlalchemy.dialect", "pandas", "pyarrow"],
    settings=INSERT_SETTINGS,
)
def write_polars_database(connection, frame, table):
    """Send the frame with polars.write_database over a SQLAlchemy connection, which calls pandas.to_sql.

    polars passes its Arrow columns to pandas. pandas builds a dictionary of Python objects for each row, and the
    dialect turns them all into one insert of native columns. A NaN is sent as a null, which a column that is not
    Nullable refuses.
    """
    quoted = '"' + table.replace('"', '""') + '"'  # polars reads a.b as table b in schema a
    frame.write_database(quoted, connection, if_table_exists="append")


@transport("SELECT 1", "one value", requires=["clickhouse_connect.cc_sqlalchemy.dialect"], origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    from sqlalchemy import text

    return connection.execute(text("SELECT 1")).scalar_one()
