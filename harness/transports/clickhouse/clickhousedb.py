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
    # What stands behind the ? goes to the client: settings of the server with ch_ before their names.
    settings = {f"ch_{name}": value for name, value in INSERT_SETTINGS.items()}
    if url.drivername == "https":
        settings["secure"] = "true"  # the name of the dialect takes the scheme's place
    engine = create_engine(url.set(drivername="clickhousedb", database=database, query=settings))
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@transport(
    "read",
    frame="pandas",
    path="row fetch",
    payload="rows",
    requires=["clickhouse_connect.cc_sqlalchemy.dialect", "pandas", "sqlalchemy"],
    lossy={"changed": "int64_beside_null decimals"},
)
def read_pandas_sql(connection, table):
    """Fetch the table with pandas.read_sql, which most people try first.

    Native columns cross the wire; the client makes rows of them, and pandas columns again. UUIDs and dates stay Python
    objects (uuid.UUID, datetime.date); integers become int64, with nulls float64, and a null among floats becomes NaN.
    """
    import pandas as pd
    from sqlalchemy import text

    return pd.read_sql(text(for_text(f"SELECT * FROM {identifier(table)}")), connection)


@transport(
    "read",
    frame="polars",
    path="row fetch",
    payload="rows",
    requires=["clickhouse_connect.cc_sqlalchemy.dialect", "polars", "sqlalchemy"],
    lossy={
        "changed": "json",
        "refused": "null_decimal decimals nested padded_text",
    },
)
def read_polars_database(connection, table):
    """Fetch the table with polars.read_database over a SQLAlchemy connection.

    Native columns cross the wire; the client makes rows of them, and polars columns again. UUIDs arrive as uuid.UUID,
    for which polars has only the Object type. infer_schema_length=None, since the default of 100 rows takes a column
    that begins with as many nulls for nothing else.
    """
    import polars as pl

    return pl.read_database(for_text(f"SELECT * FROM {identifier(table)}"), connection, infer_schema_length=None)


@transport(
    "write",
    frame="pandas",
    path="native columnar insert",
    payload="rows",
    requires=["clickhouse_connect.cc_sqlalchemy.dialect", "pandas", "sqlalchemy"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "nan fraction_into_int32 unknown_label float32_nan timestamps_elsewhere",
        "refused": "uint64 int32_into_text text_into_date timestamp_into_int64 name_quoted",
    },
)
def write_pandas_to_sql(connection, frame, table):
    """Send the frame with pandas.to_sql, which most people try first.

    pandas makes one dictionary of Python objects per row; the dialect turns all of them into one insert of native
    columns. The table is looked up first. method="multi", which puts the values into the text of the query, took 70
    times as long and is not measured. A NaN goes as a null, and is refused where the column is not Nullable.
    """
    frame.to_sql(table, connection, if_exists="append", index=False)


@transport(
    "write",
    frame="polars",
    path="native columnar insert",
    payload="rows",
    requires=["clickhouse_connect.cc_sqlalchemy.dialect", "pandas", "polars", "pyarrow", "sqlalchemy"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "nan arrays fraction_into_int32 unknown_label float32_nan timestamps_elsewhere",
        "refused": "int32_into_text text_into_date date_into_timestamp timestamp_into_int64 name_quoted",
    },
)
def write_polars_database(connection, frame, table):
    """Send the frame with polars.write_database over a SQLAlchemy connection, which is pandas.to_sql underneath.

    polars hands pandas its Arrow columns, pandas makes one dictionary of Python objects per row, and the dialect turns
    all of them into one insert of native columns. A NaN goes as a null and is refused where the column is not Nullable.
    """
    quoted = '"' + table.replace('"', '""') + '"'  # to polars a.b is the table b of the schema a
    frame.write_database(quoted, connection, if_table_exists="append")


@transport(
    "call",
    path="SELECT 1",
    payload="one value",
    requires=["clickhouse_connect.cc_sqlalchemy.dialect", "sqlalchemy"],
    origin="limit",
)
def call_select_1(connection):
    """Ask for the number 1: what this client takes for a round trip with nothing in it."""
    from sqlalchemy import text

    return connection.execute(text("SELECT 1")).scalar_one()
