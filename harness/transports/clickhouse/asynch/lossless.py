"""asynch with fewer losses than the published code: text inserts, and reads: https://github.com/long2ice/asynch"""

from harness.registry import phase, transport
from harness.transports.clickhouse.asynch.client import insert_text
from harness.transports.clickhouse.columns import pandas_csv, pandas_tsv, polars_tsv, typed
from harness.transports.clickhouse.server import LOSSLESS_INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier


@transport("native INSERT FORMAT CSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
async def write_polars_insert_csv_lossless(connection, frame, table):
    r"""Send the frame as CSV inside the query text, with every string quoted and each null as an unquoted \N.

    The published transport plus quotes: empty strings, leading and trailing spaces, a string \N and nulls all arrive
    unchanged.
    """
    with phase("encode"):
        payload = frame.write_csv(file=None, include_header=False, quote_style="non_numeric", null_value=r"\N")
    await insert_text(connection, table, frame.columns, "CSV", payload, LOSSLESS_INSERT_SETTINGS)


@transport("native INSERT FORMAT TSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
async def write_polars_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings and nulls arrive
    unchanged.
    """
    with phase("encode"):
        payload = polars_tsv(frame)
    await insert_text(connection, table, frame.columns, "TabSeparated", payload, LOSSLESS_INSERT_SETTINGS)


@transport("native INSERT FORMAT CSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
async def write_pandas_insert_csv_lossless(connection, frame, table):
    """Send the frame as CSV inside the query text. pyarrow writes it, quotes every string and leaves nulls empty.

    The published transport with another writer: empty strings, leading and trailing spaces, NaN and nulls arrive
    unchanged.
    """
    with phase("encode"):
        payload = pandas_csv(frame)
    await insert_text(connection, table, frame.columns, "CSV", payload, LOSSLESS_INSERT_SETTINGS)


@transport("native INSERT FORMAT TSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
async def write_pandas_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings, NaN and nulls arrive
    unchanged.
    """
    with phase("encode"):
        payload = pandas_tsv(frame)
    await insert_text(connection, table, frame.columns, "TabSeparated", payload, LOSSLESS_INSERT_SETTINGS)


@transport("native columnar fetch", "columns")
async def read_pandas_columnar_lossless(connection, table):
    """Fetch native blocks as one sequence of Python objects per column and keep nulls in numeric columns.

    The published read turns integers with nulls into float64, and a null in a float column into NaN. Here these columns
    are Arrow (pandas.ArrowDtype). UUIDs and dates stay Python objects.
    """
    import pandas as pd

    data, columns_with_types = await connection._connection.execute(
        f"SELECT * FROM {identifier(table)}", with_column_types=True, columnar=True
    )
    columns = zip(columns_with_types, data or [()] * len(columns_with_types), strict=True)
    return pd.DataFrame({name: typed(values, sql_type) for (name, sql_type), values in columns})


@transport("row fetch", "rows")
async def read_pandas_rows_lossless(connection, table):
    """Fetch all rows as tuples through a cursor, turn them into columns and keep nulls in numeric columns.

    The published read turns integers with nulls into float64, and a null in a float column into NaN. Here these columns
    are Arrow (pandas.ArrowDtype). UUIDs and dates stay Python objects.
    """
    import pandas as pd

    async with connection.cursor() as cursor:
        await cursor.execute(f"SELECT * FROM {identifier(table)}")
        rows = await cursor.fetchall()
        columns = zip(
            cursor.description, zip(*rows, strict=True) if rows else [()] * len(cursor.description), strict=True
        )
    return pd.DataFrame({column.name: typed(values, column.type_code) for column, values in columns})
