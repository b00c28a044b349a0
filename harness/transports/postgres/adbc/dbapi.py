"""ADBC, Arrow's own database driver, for Postgres: https://arrow.apache.org/adbc/current/driver/postgresql.html

The driver turns Arrow columns into Postgres' binary COPY and back in C++, without a Python value in between. A uuid it
takes as 16 bytes only, and gives back so.
"""

from harness.registry import transport
from harness.transports.postgres.adbc.client import is_uuid, schema_of
from harness.transports.postgres.sql import identifier


def _polars_with_bytes(connection, frame, table):
    """Return the frame with the texts of every uuid column decoded to 16 bytes."""
    import polars.selectors as cs

    uuids = [field.name for field in connection.adbc_get_table_schema(table) if is_uuid(field)]
    columns = [name for name in frame.columns if name in uuids]
    return frame.with_columns(cs.by_name(columns).str.replace_all("-", "", literal=True).str.decode("hex"))


def _pandas_with_bytes(frame, schema):
    """Return the frame with the texts of every column of 16 bytes decoded."""
    import pyarrow as pa

    columns = [name for name in frame.columns if schema.field(name).type == pa.binary(16)]
    made = {name: frame[name].map(_as_bytes, na_action="ignore") for name in columns}
    return frame.assign(**made).astype(dict.fromkeys(columns, object))  # a column without any value would be float


def _as_bytes(text):
    return bytes.fromhex(text.replace("-", ""))


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN (FORMAT binary)",
    payload="binary rows",
    requires=["polars", "pyarrow", "adbc_driver_postgresql.dbapi"],
    lossy={
        "changed": "uint64_beyond_int64 int32_into_date timestamp_into_int64",
        "refused": "categories jsonb int64_into_int32 int32_into_int64 float64_into_int32 int32_into_float64"
        " float32_into_float64 float64_into_decimal int32_into_text text_into_int32 "
        "text_into_date date_into_timestamp timestamp_into_date",
    },
)
def write_polars_ingest(connection, frame, table):
    """Append the frame to the table with adbc_ingest, straight from its Arrow memory.

    The driver encodes each value in the server's own binary form. It casts nothing: every uuid text is decoded to 16
    bytes first, and which columns are uuid, the server is asked.
    """
    frame = _polars_with_bytes(connection, frame, table)
    with connection.cursor() as cursor:
        cursor.adbc_ingest(table, frame, mode="append")
    connection.commit()


@transport(
    "write",
    frame="pandas",
    path="COPY FROM STDIN (FORMAT binary)",
    payload="binary rows",
    requires=["pandas", "pyarrow", "adbc_driver_postgresql.dbapi"],
    lossy={
        "changed": "nan float64_beyond_float32 float32_nan timestamp_into_int64",
        "refused": "null_decimal decimals uint64 float64_into_decimal int32_into_text",
    },
)
def write_pandas_ingest(connection, frame, table):
    """Append the frame to the table with adbc_ingest, as an Arrow table of the types the server names.

    The driver encodes each value in the server's own binary form. It casts nothing: pyarrow makes a date of datetime64,
    and every uuid text is decoded to 16 bytes first. pyarrow takes a NaN of pandas for a missing value: it arrives as
    NULL.
    """
    import pyarrow as pa

    schema = schema_of(connection, table)
    schema = pa.schema([schema.field(name) for name in frame.columns])
    arrow = pa.Table.from_pandas(_pandas_with_bytes(frame, schema), schema=schema, preserve_index=False)
    with connection.cursor() as cursor:
        cursor.adbc_ingest(table, arrow, mode="append")
    connection.commit()


@transport(
    "write",
    frame="polars",
    path="write_database",
    payload="binary rows",
    requires=["polars", "pyarrow", "adbc_driver_postgresql.dbapi"],
    lossy={
        "changed": "uint64_beyond_int64 int32_into_date timestamp_into_int64",
        "refused": "categories jsonb int64_into_int32 int32_into_int64 float64_into_int32 int32_into_float64"
        " float32_into_float64 float64_into_decimal int32_into_text text_into_int32 "
        "text_into_date date_into_timestamp timestamp_into_date",
    },
)
def write_polars_write_database(connection, frame, table):
    """Append the frame to the table with polars.DataFrame.write_database over ADBC.

    adbc_ingest underneath, after two questions to the server about itself and the table. polars passes a uuid text on
    as text, which the server refuses, so it is decoded to 16 bytes first.
    """
    frame = _polars_with_bytes(connection, frame, table)
    frame.write_database(identifier(table), connection, engine="adbc", if_table_exists="append")


@transport(
    "write",
    frame="pandas",
    path="to_sql",
    payload="binary rows",
    requires=["pandas", "pyarrow", "adbc_driver_postgresql.dbapi"],
    lossy={
        "changed": "nan uint64_beyond_int64 float32_nan timestamp_into_int64",
        "refused": "arrays jsonb int64_into_int32 int32_into_int64 float64_into_int32 "
        "int32_into_float64 float32_into_float64 float64_into_decimal int32_into_text "
        "text_into_int32 name_backslash",
    },
)
def write_pandas_to_sql(connection, frame, table):
    """Append the frame to the table with pandas.DataFrame.to_sql over ADBC.

    adbc_ingest underneath, after a look through the server's tables. pandas passes types on as they are, which the
    server refuses for a date and a uuid: those columns become Arrow dates and 16 bytes first. A NaN arrives as NULL.
    pandas looks for the table by a pattern: it does not find one with a backslash in its name.
    """
    import pandas as pd
    import pyarrow as pa

    schema = schema_of(connection, table)
    dates = [name for name in frame.columns if schema.field(name).type == pa.date32()]
    frame = _pandas_with_bytes(frame, schema).astype(dict.fromkeys(dates, pd.ArrowDtype(pa.date32())))
    frame.to_sql(table, connection, if_exists="append", index=False)


def _query(table):
    """Return the query for all rows, with the table's name quoted."""
    return f"SELECT * FROM {identifier(table)}"


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT (FORMAT binary)",
    payload="binary rows",
    requires=["polars", "adbc_driver_postgresql.dbapi"],
)
def read_polars_fetch(connection, table):
    """Read the table with fetch_polars: the driver makes Arrow batches, polars takes them over.

    By default the driver wraps the query in COPY ... TO STDOUT (FORMAT binary). A uuid comes as 16 bytes (Binary), all
    else as the type it has in the table. Taking the batches one by one (fetch_record_batch) needs as much memory.
    """
    with connection.cursor() as cursor:
        cursor.execute(_query(table))
        frame = cursor.fetch_polars()
    connection.rollback()  # ends the transaction of the query
    return frame


@transport(
    "read",
    frame="pandas",
    path="COPY TO STDOUT (FORMAT binary)",
    payload="binary rows",
    requires=["pandas", "pyarrow", "adbc_driver_postgresql.dbapi"],
    lossy={"changed": "int64_beside_null", "refused": "far_dates"},
)
def read_pandas_fetch(connection, table):
    """Read the table with fetch_df: the driver makes Arrow batches, pyarrow makes them a pandas frame.

    By default the driver wraps the query in COPY ... TO STDOUT (FORMAT binary). A uuid and a date come as Python
    objects (dtype object), an integer beside a null as float64. Taking the batches one by one needs as much memory.
    """
    with connection.cursor() as cursor:
        cursor.execute(_query(table))
        frame = cursor.fetch_df()
    connection.rollback()  # ends the transaction of the query
    return frame


@transport(
    "read",
    frame="polars",
    path="row fetch",
    payload="binary rows",
    requires=["polars", "adbc_driver_postgresql.dbapi"],
)
def read_polars_fetch_without_copy(connection, table):
    """Read the table with fetch_polars and the option use_copy off: an ordinary query instead of a COPY.

    What a query needs that COPY cannot take (SHOW, for example). Binary values cross the wire; libpq holds the whole
    result before the driver makes one Arrow batch of it. A uuid comes as 16 bytes (Binary).
    """
    from adbc_driver_postgresql import StatementOptions

    with connection.cursor(adbc_stmt_kwargs={StatementOptions.USE_COPY.value: False}) as cursor:
        cursor.execute(_query(table))
        frame = cursor.fetch_polars()
    connection.rollback()  # ends the transaction of the query
    return frame


@transport(
    "read",
    frame="pandas",
    path="row fetch",
    payload="binary rows",
    requires=["pandas", "pyarrow", "adbc_driver_postgresql.dbapi"],
    lossy={"changed": "int64_beside_null", "refused": "far_dates"},
)
def read_pandas_fetch_without_copy(connection, table):
    """Read the table with fetch_df and the option use_copy off: an ordinary query instead of a COPY.

    What a query needs that COPY cannot take (SHOW, for example). Binary values cross the wire; libpq holds the whole
    result before the driver makes one Arrow batch of it. A uuid and a date come as Python objects (dtype object).
    """
    from adbc_driver_postgresql import StatementOptions

    with connection.cursor(adbc_stmt_kwargs={StatementOptions.USE_COPY.value: False}) as cursor:
        cursor.execute(_query(table))
        frame = cursor.fetch_df()
    connection.rollback()  # ends the transaction of the query
    return frame


@transport(
    "read",
    frame="pandas",
    path="read_sql",
    payload="binary rows",
    requires=["pandas", "pyarrow", "adbc_driver_postgresql.dbapi"],
)
def read_pandas_read_sql(connection, table):
    """Read the table with pandas.read_sql over ADBC and dtype_backend="pyarrow".

    The frame keeps the Arrow columns as they come: a uuid is extension<arrow.uuid>, a date date32, and an integer
    beside a null stays one. No value becomes a Python object. pandas first asks whether a table has the query's name.
    """
    import pandas as pd

    frame = pd.read_sql(_query(table), connection, dtype_backend="pyarrow")
    connection.rollback()  # ends the transaction of the query
    return frame


@transport("call", path="SELECT 1", payload="one value", requires=["adbc_driver_postgresql.dbapi"], origin="limit")
def call_select_1(connection):
    """Ask for the number 1: what this client takes for a round trip with nothing in it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()[0]
