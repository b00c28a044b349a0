"""clickhouse-driver, the native protocol in Python with C extensions: https://clickhouse-driver.readthedocs.io/"""

from harness.registry import phase, transport
from harness.transports.clickhouse.clickhouse_driver.client import insert_columns, insert_text
from harness.transports.clickhouse.server import INSERT_SETTINGS, TEXT_INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier


@transport(
    "native INSERT FORMAT CSV",
    "delimited text",
    settings=TEXT_INSERT_SETTINGS,
    published="clickhouse-driver INSERT FORMAT CSV from Polars delimited text",
)
def write_polars_insert_csv(connection, frame, table):
    r"""Send the frame as CSV inside the text of one INSERT query over the native protocol.

    Client and server both hold the whole payload as one query string, and the server parses every value again. Needs
    ClickHouse 26.5 or newer. polars quotes a string only where CSV requires it. ClickHouse therefore trims leading and
    trailing spaces. A string \N and a null arrive as the column's default.
    """
    with phase("encode"):
        payload = frame.write_csv(file=None, include_header=False)
    insert_text(connection, table, frame.columns, "CSV", payload, TEXT_INSERT_SETTINGS)


@transport(
    "native INSERT FORMAT TSV",
    "delimited text",
    settings=TEXT_INSERT_SETTINGS,
    published="clickhouse-driver INSERT FORMAT TSV from Polars delimited text",
)
def write_polars_insert_tsv(connection, frame, table):
    r"""Send the frame as tab-separated text inside the text of one INSERT query over the native protocol.

    Client and server both hold the whole payload as one query string, and the server parses every value again. Needs
    ClickHouse 26.5 or newer. ClickHouse expects TabSeparated to be escaped (\t, \n, \\), but polars quotes it. An empty
    string arrives as two quotes. A string with a quote or backslash arrives changed, and one with a tab or newline
    breaks the insert. Nulls are lost.
    """
    with phase("encode"):
        payload = frame.write_csv(file=None, include_header=False, separator="\t")
    insert_text(connection, table, frame.columns, "TabSeparated", payload, TEXT_INSERT_SETTINGS)


@transport(
    "native INSERT FORMAT CSV",
    "delimited text",
    settings=TEXT_INSERT_SETTINGS,
    published="clickhouse-driver INSERT FORMAT CSV from Pandas delimited text",
)
def write_pandas_insert_csv(connection, frame, table):
    r"""Send the frame as CSV inside the text of one INSERT query over the native protocol.

    Client and server both hold the whole payload as one query string, and the server parses every value again. Needs
    ClickHouse 26.5 or newer. pandas quotes a string only where CSV requires it. ClickHouse therefore trims leading and
    trailing spaces. A string \N, a NaN and a missing value arrive as the column's default.
    """
    with phase("encode"):
        payload = frame.to_csv(None, index=False, header=False)
    insert_text(connection, table, frame.columns, "CSV", payload, TEXT_INSERT_SETTINGS)


@transport(
    "native INSERT FORMAT TSV",
    "delimited text",
    settings=TEXT_INSERT_SETTINGS,
    published="clickhouse-driver INSERT FORMAT TSV from Pandas delimited text",
)
def write_pandas_insert_tsv(connection, frame, table):
    r"""Send the frame as tab-separated text inside the text of one INSERT query over the native protocol.

    Client and server both hold the whole payload as one query string, and the server parses every value again. Needs
    ClickHouse 26.5 or newer. ClickHouse expects TabSeparated to be escaped (\t, \n, \\), but pandas quotes it. A string
    with a quote or backslash arrives changed. A string with a tab or newline, and a NaN, break the insert. Missing
    values are lost.
    """
    with phase("encode"):
        payload = frame.to_csv(None, index=False, header=False, sep="\t")
    insert_text(connection, table, frame.columns, "TabSeparated", payload, TEXT_INSERT_SETTINGS)


@transport(
    "native columnar insert",
    "columns",
    settings=INSERT_SETTINGS,
    published="clickhouse-driver native columnar insert from Polars dataframe",
)
def write_polars_columnar(connection, frame, table):
    """Send every column as a list of Python objects; the client packs them into typed native blocks.

    The server parses nothing. The client creates one Python object per value and parses the UUID strings.
    """
    with phase("encode"):
        columns = [frame.get_column(name).to_list() for name in frame.columns]
    insert_columns(connection, frame, table, columns)


@transport(
    "native columnar insert",
    "columns",
    settings=INSERT_SETTINGS,
    published="clickhouse-driver native columnar insert from Pandas dataframe",
)
def write_pandas_columnar(connection, frame, table):
    """Send every column as a list of Python objects; the client packs them into typed native blocks.

    The server parses nothing. The client creates one Python object per value (a Timestamp for a date) and parses the
    UUID strings.
    """
    with phase("encode"):
        columns = [frame[name].to_list() for name in frame.columns]
    insert_columns(connection, frame, table, columns)


@transport("native columnar fetch", "columns", published="clickhouse-driver native columnar fetch -> Polars dataframe")
def read_polars_columnar(connection, table):
    """Fetch native blocks as one sequence of Python objects per column and build the frame from them.

    UUIDs arrive as uuid.UUID, which polars can only hold in its Object type. Integers become Int64.
    """
    import polars as pl

    with phase("receive"):
        data, columns_with_types = connection.execute(
            f"SELECT * FROM {identifier(table)}", with_column_types=True, columnar=True
        )
    with phase("decode"):
        return pl.DataFrame({name: values for (name, _), values in zip(columns_with_types, data, strict=True)})


@transport("native columnar fetch", "columns", published="clickhouse-driver native columnar fetch -> Pandas dataframe")
def read_pandas_columnar(connection, table):
    """Fetch native blocks as one sequence of Python objects per column and build the frame from them.

    UUIDs and dates stay Python objects (uuid.UUID, datetime.date). Integers become int64.
    """
    import pandas as pd

    with phase("receive"):
        data, columns_with_types = connection.execute(
            f"SELECT * FROM {identifier(table)}", with_column_types=True, columnar=True
        )
    with phase("decode"):
        return pd.DataFrame({name: values for (name, _), values in zip(columns_with_types, data, strict=True)})


@transport("SELECT 1", "one value", origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    return connection.execute("SELECT 1")[0][0]
