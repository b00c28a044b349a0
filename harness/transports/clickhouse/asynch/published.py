"""asynch, the native protocol for asyncio, a port of clickhouse-driver: https://github.com/long2ice/asynch"""

from harness.registry import phase, transport
from harness.transports.clickhouse.asynch.client import insert_columns, insert_text
from harness.transports.clickhouse.server import INSERT_SETTINGS, TEXT_INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier


@transport(
    "native INSERT FORMAT CSV",
    "delimited text",
    settings=TEXT_INSERT_SETTINGS,
    published="asynch INSERT FORMAT CSV from Polars delimited text",
)
async def write_polars_insert_csv(connection, frame, table):
    r"""Send the frame as CSV inside the text of one INSERT query over the native protocol.

    The published code used an async SQLAlchemy engine, which does not work with asynch 0.4.0. This transport calls
    asynch directly. Client and server both hold the whole payload as one query string, and the server parses every
    value again. Needs ClickHouse 26.5 or newer. polars quotes a string only where CSV requires it. ClickHouse therefore
    trims leading and trailing spaces. A string \N and a null arrive as the column's default.
    """
    with phase("encode"):
        payload = frame.write_csv(file=None, include_header=False)
    await insert_text(connection, table, frame.columns, "CSV", payload, TEXT_INSERT_SETTINGS)


@transport(
    "native INSERT FORMAT TSV",
    "delimited text",
    settings=TEXT_INSERT_SETTINGS,
    published="asynch INSERT FORMAT TSV from Polars delimited text",
)
async def write_polars_insert_tsv(connection, frame, table):
    r"""Send the frame as tab-separated text inside the text of one INSERT query over the native protocol.

    The published code used an async SQLAlchemy engine, which does not work with asynch 0.4.0. This transport calls
    asynch directly. Client and server both hold the whole payload as one query string, and the server parses every
    value again. Needs ClickHouse 26.5 or newer. ClickHouse expects TabSeparated to be escaped (\t, \n, \\), but polars
    quotes it. An empty string arrives as two quotes. A string with a quote or backslash arrives changed, and one with a
    tab or newline breaks the insert. Nulls are lost.
    """
    with phase("encode"):
        payload = frame.write_csv(file=None, include_header=False, separator="\t")
    await insert_text(connection, table, frame.columns, "TabSeparated", payload, TEXT_INSERT_SETTINGS)


@transport(
    "native INSERT FORMAT CSV",
    "delimited text",
    settings=TEXT_INSERT_SETTINGS,
    published="asynch INSERT FORMAT CSV from Pandas delimited text",
)
async def write_pandas_insert_csv(connection, frame, table):
    r"""Send the frame as CSV inside the text of one INSERT query over the native protocol.

    The published code used an async SQLAlchemy engine, which does not work with asynch 0.4.0. This transport calls
    asynch directly. Client and server both hold the whole payload as one query string, and the server parses every
    value again. Needs ClickHouse 26.5 or newer. pandas quotes a string only where CSV requires it. ClickHouse therefore
    trims leading and trailing spaces. A string \N, a NaN and a missing value arrive as the column's default.
    """
    with phase("encode"):
        payload = frame.to_csv(None, index=False, header=False)
    await insert_text(connection, table, frame.columns, "CSV", payload, TEXT_INSERT_SETTINGS)


@transport(
    "native INSERT FORMAT TSV",
    "delimited text",
    settings=TEXT_INSERT_SETTINGS,
    published="asynch INSERT FORMAT TSV from Pandas delimited text",
)
async def write_pandas_insert_tsv(connection, frame, table):
    r"""Send the frame as tab-separated text inside the text of one INSERT query over the native protocol.

    The published code used an async SQLAlchemy engine, which does not work with asynch 0.4.0. This transport calls
    asynch directly. Client and server both hold the whole payload as one query string, and the server parses every
    value again. Needs ClickHouse 26.5 or newer. ClickHouse expects TabSeparated to be escaped (\t, \n, \\), but pandas
    quotes it. A string with a quote or backslash arrives changed. A string with a tab or newline, and a NaN, break the
    insert. Missing values are lost.
    """
    with phase("encode"):
        payload = frame.to_csv(None, index=False, header=False, sep="\t")
    await insert_text(connection, table, frame.columns, "TabSeparated", payload, TEXT_INSERT_SETTINGS)


@transport(
    "native columnar insert",
    "columns",
    settings=INSERT_SETTINGS,
    published="asynch native columnar insert from Polars dataframe",
)
async def write_polars_columnar(connection, frame, table):
    """Send every column as a list of Python objects; the client packs them into typed native blocks.

    The server parses nothing. The client creates one Python object per value and parses the UUID strings.
    """
    with phase("encode"):
        columns = [frame.get_column(name).to_list() for name in frame.columns]
    await insert_columns(connection, frame, table, columns, INSERT_SETTINGS)


@transport(
    "native columnar insert",
    "columns",
    settings=INSERT_SETTINGS,
    published="asynch native columnar insert from Pandas dataframe",
)
async def write_pandas_columnar(connection, frame, table):
    """Send every column as a list of Python objects; the client packs them into typed native blocks.

    The server parses nothing. The client creates one Python object per value (a Timestamp for a date) and parses the
    UUID strings.
    """
    with phase("encode"):
        columns = [frame[name].to_list() for name in frame.columns]
    await insert_columns(connection, frame, table, columns, INSERT_SETTINGS)


@transport("native columnar fetch", "columns", published="asynch native columnar fetch -> Polars dataframe")
async def read_polars_columnar(connection, table):
    """Fetch native blocks as one sequence of Python objects per column and build the frame from them.

    UUIDs arrive as uuid.UUID, which polars can only hold in its Object type. Integers become Int64.
    """
    import polars as pl

    with phase("receive"):
        data, columns_with_types = await connection._connection.execute(
            f"SELECT * FROM {identifier(table)}", with_column_types=True, columnar=True
        )
    with phase("decode"):
        return pl.DataFrame({name: values for (name, _), values in zip(columns_with_types, data, strict=True)})


@transport("native columnar fetch", "columns", published="asynch native columnar fetch -> Pandas dataframe")
async def read_pandas_columnar(connection, table):
    """Fetch native blocks as one sequence of Python objects per column and build the frame from them.

    UUIDs and dates stay Python objects (uuid.UUID, datetime.date). Integers become int64.
    """
    import pandas as pd

    with phase("receive"):
        data, columns_with_types = await connection._connection.execute(
            f"SELECT * FROM {identifier(table)}", with_column_types=True, columnar=True
        )
    with phase("decode"):
        return pd.DataFrame({name: values for (name, _), values in zip(columns_with_types, data, strict=True)})


@transport("row fetch", "rows", published="asynch row fetch -> Polars dataframe")
async def read_polars_rows(connection, table):
    """Fetch all rows as tuples through a cursor and build the frame from them.

    The server sends native columns. The driver turns them into rows, and polars turns the rows back into columns. UUIDs
    arrive as uuid.UUID, which polars can only hold in its Object type. Integers become Int64.
    """
    import polars as pl

    with phase("receive"):
        async with connection.cursor() as cursor:
            await cursor.execute(f"SELECT * FROM {identifier(table)}")
            rows = await cursor.fetchall()
            names = [column.name for column in cursor.description]
    with phase("decode"):
        return pl.DataFrame(rows, schema=names, orient="row")


@transport("row fetch", "rows", published="asynch row fetch -> Pandas dataframe")
async def read_pandas_rows(connection, table):
    """Fetch all rows as tuples through a cursor and build the frame from them.

    The server sends native columns. The driver turns them into rows, and pandas turns the rows back into columns. UUIDs
    and dates stay Python objects (uuid.UUID, datetime.date). Integers become int64.
    """
    import pandas as pd

    with phase("receive"):
        async with connection.cursor() as cursor:
            await cursor.execute(f"SELECT * FROM {identifier(table)}")
            rows = await cursor.fetchall()
            names = [column.name for column in cursor.description]
    with phase("decode"):
        return pd.DataFrame(rows, columns=names)


@transport("SELECT 1", "one value", origin="limit")
async def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    async with connection.cursor() as cursor:
        await cursor.execute("SELECT 1")
        return (await cursor.fetchone())[0]
