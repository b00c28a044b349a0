"""ADBC, Arrow's own database driver, for Postgres: https://arrow.apache.org/adbc/current/driver/postgresql.html

The driver converts between Arrow columns and Postgres' binary COPY in C++, without Python values in between. It takes
and returns a uuid only as 16 bytes.
"""

from harness.registry import transport
from harness.transports.parts import batches, write_part
from harness.transports.postgres.adbc.client import is_uuid, schema_of
from harness.transports.postgres.binary_copy import as_the_table
from harness.transports.postgres.sql import identifier

BATCH_BYTES = 8 << 20  # of a stream; the default is twice that


def _polars_with_bytes(connection, frame, table):
    """Return the frame with the strings of every uuid column decoded to 16 bytes."""
    import polars.selectors as cs

    uuids = [field.name for field in connection.adbc_get_table_schema(table) if is_uuid(field)]
    columns = [name for name in frame.columns if name in uuids]
    return frame.with_columns(cs.by_name(columns).str.replace_all("-", "", literal=True).str.decode("hex"))


def _pandas_with_bytes(frame, schema):
    """Return the frame with the strings of every 16-byte column decoded."""
    import pyarrow as pa

    columns = [name for name in frame.columns if schema.field(name).type == pa.binary(16)]
    made = {name: frame[name].map(_as_bytes, na_action="ignore") for name in columns}
    return frame.assign(**made).astype(dict.fromkeys(columns, object))  # a column without any value would be float


def _as_bytes(text):
    return bytes.fromhex(text.replace("-", ""))


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows", requires=["pyarrow"])
def write_polars_ingest(connection, frame, table):
    """Append the frame to the table with adbc_ingest, straight from its Arrow memory.

    The driver encodes each value in the server's binary form and casts nothing. The transport asks the server which
    columns are uuid and first decodes their strings to 16 bytes.
    """
    frame = _polars_with_bytes(connection, frame, table)
    with connection.cursor() as cursor:
        cursor.adbc_ingest(table, frame, mode="append")
    connection.commit()


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows")
def write_pandas_ingest(connection, frame, table):
    """Append the frame to the table with adbc_ingest, as an Arrow table with the server's types.

    The driver encodes each value in the server's binary form and casts nothing. pyarrow first turns datetime64 into a
    date and every uuid string into 16 bytes. It treats a pandas NaN as a missing value, which arrives as NULL.
    """
    import pyarrow as pa

    schema = schema_of(connection, table)
    schema = pa.schema([schema.field(name) for name in frame.columns])
    arrow = pa.Table.from_pandas(_pandas_with_bytes(frame, schema), schema=schema, preserve_index=False)
    with connection.cursor() as cursor:
        cursor.adbc_ingest(table, arrow, mode="append")
    connection.commit()


@transport("write_database", "binary rows", requires=["pyarrow"])
def write_polars_write_database(connection, frame, table):
    """Append the frame to the table with polars.DataFrame.write_database over ADBC.

    polars calls adbc_ingest after two queries about the server and the table. polars passes a uuid string on as a
    string, which the server refuses, so the transport first decodes it to 16 bytes.
    """
    frame = _polars_with_bytes(connection, frame, table)
    frame.write_database(identifier(table), connection, engine="adbc", if_table_exists="append")


@transport("to_sql", "binary rows")
def write_pandas_to_sql(connection, frame, table):
    """Append the frame to the table with pandas.DataFrame.to_sql over ADBC.

    pandas calls adbc_ingest after it looks for the table. It does not convert types, and the server refuses its dates
    and uuids, so those columns first become Arrow dates and 16 bytes. A NaN arrives as NULL. pandas looks for the table
    by a pattern: it does not find a name with a backslash.
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


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows")
def read_polars_fetch(connection, table):
    """Read the table with fetch_polars: the driver builds Arrow batches, and polars takes them over.

    By default the driver wraps the query in COPY ... TO STDOUT (FORMAT binary). A uuid arrives as 16 bytes (Binary),
    all other values with the table's type. Fetching the batches one by one (fetch_record_batch) needs as much memory.
    """
    with connection.cursor() as cursor:
        cursor.execute(_query(table))
        frame = cursor.fetch_polars()
    connection.rollback()  # ends the query's transaction
    return frame


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows", requires=["pyarrow"])
def read_pandas_fetch(connection, table):
    """Read the table with fetch_df: the driver builds Arrow batches, and pyarrow turns them into a pandas frame.

    By default the driver wraps the query in COPY ... TO STDOUT (FORMAT binary). A uuid and a date arrive as Python
    objects (dtype object), an integer with nulls as float64. Fetching the batches one by one needs as much memory.
    """
    with connection.cursor() as cursor:
        cursor.execute(_query(table))
        frame = cursor.fetch_df()
    connection.rollback()  # ends the query's transaction
    return frame


@transport("row fetch", "binary rows")
def read_polars_fetch_without_copy(connection, table):
    """Read the table with fetch_polars and the option use_copy off: an ordinary query instead of a COPY.

    Use it for a query that COPY cannot run, such as SHOW. The server sends binary values; libpq holds the whole result
    before the driver builds one Arrow batch from it. A uuid arrives as 16 bytes (Binary).
    """
    from adbc_driver_postgresql import StatementOptions

    with connection.cursor(adbc_stmt_kwargs={StatementOptions.USE_COPY.value: False}) as cursor:
        cursor.execute(_query(table))
        frame = cursor.fetch_polars()
    connection.rollback()  # ends the query's transaction
    return frame


@transport("row fetch", "binary rows", requires=["pyarrow"])
def read_pandas_fetch_without_copy(connection, table):
    """Read the table with fetch_df and the option use_copy off: an ordinary query instead of a COPY.

    Use it for a query that COPY cannot run, such as SHOW. The server sends binary values; libpq holds the whole result
    before the driver builds one Arrow batch from it. A uuid and a date arrive as Python objects (dtype object).
    """
    from adbc_driver_postgresql import StatementOptions

    with connection.cursor(adbc_stmt_kwargs={StatementOptions.USE_COPY.value: False}) as cursor:
        cursor.execute(_query(table))
        frame = cursor.fetch_df()
    connection.rollback()  # ends the query's transaction
    return frame


@transport("read_sql", "binary rows", requires=["pyarrow"])
def read_pandas_read_sql(connection, table):
    """Read the table with pandas.read_sql over ADBC and dtype_backend="pyarrow".

    The frame keeps the driver's Arrow columns: a uuid is extension<arrow.uuid>, a date date32, and an integer with
    nulls stays an integer. No value becomes a Python object. pandas first asks whether a table has the query's name.
    """
    import pandas as pd

    frame = pd.read_sql(_query(table), connection, dtype_backend="pyarrow")
    connection.rollback()  # ends the query's transaction
    return frame


@transport("SELECT 1", "one value", origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()[0]


def _as_the_server_has_it(connection, source, table):
    """Return a Parquet file as an Arrow stream, with 16 bytes for each uuid and days for each date."""
    import pyarrow as pa
    from pyarrow import parquet

    fields = connection.adbc_get_table_schema(table)
    sql_types = {field.name: "uuid" if is_uuid(field) else str(field.type).partition("32")[0] for field in fields}
    empty = as_the_table(parquet.read_schema(source).empty_table(), sql_types)
    made = (as_the_table(pa.Table.from_batches([batch]), sql_types).to_batches() for batch in batches(source))
    return pa.RecordBatchReader.from_batches(empty.schema, (batch for some in made for batch in some))


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows")
def load_ingest(connection, source, table):
    """Append the record batches of a Parquet file with adbc_ingest, which takes one after the other.

    The driver asks for a batch, encodes it in the server's binary form and sends it. It casts nothing, so uuid strings
    first become 16 bytes, and dates days. The load is one transaction: if it is interrupted, no row stays.
    """
    with connection.cursor() as cursor:
        cursor.adbc_ingest(table, _as_the_server_has_it(connection, source, table), mode="append")
    connection.commit()


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows")
def unload_stream(connection, table, destination):
    """Write the table as Parquet, record batch by record batch as the driver builds them (fetch_record_batch).

    The driver wraps the query in COPY ... TO STDOUT (FORMAT binary) and builds a batch, here a row group, from every 8
    MiB (default: 16). A uuid arrives as 16 bytes. One statement returns the rows of one snapshot.
    """
    from adbc_driver_postgresql import StatementOptions

    hint = {StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)}
    with connection.cursor(adbc_stmt_kwargs=hint) as cursor:
        cursor.execute(f"SELECT * FROM {identifier(table)}")
        write_part(destination, "rows", cursor.fetch_record_batch())
    connection.rollback()  # ends the query's transaction


@transport("read_database(iter_batches=True), sink_parquet", "binary rows", requires=["pyarrow"])
def unload_polars_sink(connection, table, destination):
    """Let polars read batches over ADBC (read_database, iter_batches) and stream them into its own sink_parquet.

    register_io_source turns the batches into a LazyFrame, so you can put a polars query in between. A uuid arrives as
    16 bytes. A type that polars lacks arrives as the driver returns it. One statement returns the rows of one snapshot.
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    query = f"SELECT * FROM {identifier(table)}"
    schema = pl.read_database(f"{query} LIMIT 0", connection).schema

    def frames(columns, predicate, rows, batch_size):
        yield from pl.read_database(query, connection, iter_batches=True, batch_size=65_536)

    register_io_source(frames, schema=schema).sink_parquet(f"{destination}/rows.parquet", compression="lz4")
    connection.rollback()  # ends the query's transaction
