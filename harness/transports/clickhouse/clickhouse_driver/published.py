"""clickhouse-driver, the native protocol in Python with C extensions: https://clickhouse-driver.readthedocs.io/

The published transports come first, then those that lose fewer values.
"""

from harness.registry import phase, transport
from harness.transports.clickhouse.clickhouse_driver.client import insert_columns, insert_text
from harness.transports.clickhouse.columns import (
    pandas_csv,
    pandas_csv_lossless,
    pandas_lists,
    pandas_tsv,
    polars_csv,
    polars_csv_lossless,
    polars_lists,
    polars_tsv,
)
from harness.transports.clickhouse.server import INSERT_SETTINGS, LOSSLESS_INSERT_SETTINGS, TEXT_INSERT_SETTINGS
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
    insert_text(connection, frame, table, TEXT_INSERT_SETTINGS, "CSV", polars_csv)


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
    insert_text(connection, frame, table, TEXT_INSERT_SETTINGS, "TabSeparated", polars_csv, "\t")


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
    insert_text(connection, frame, table, TEXT_INSERT_SETTINGS, "CSV", pandas_csv)


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
    insert_text(connection, frame, table, TEXT_INSERT_SETTINGS, "TabSeparated", pandas_csv, "\t")


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
    insert_columns(connection, frame, table, polars_lists)


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
    insert_columns(connection, frame, table, pandas_lists)


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


@transport("native INSERT FORMAT CSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
def write_polars_insert_csv_lossless(connection, frame, table):
    r"""Send the frame as CSV inside the query text, with every string quoted and each null as an unquoted \N.

    The published transport plus quotes: empty strings, leading and trailing spaces, a string \N and nulls all arrive
    unchanged.
    """
    insert_text(connection, frame, table, LOSSLESS_INSERT_SETTINGS, "CSV", polars_csv_lossless)


@transport("native INSERT FORMAT TSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
def write_polars_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings and nulls arrive
    unchanged.
    """
    insert_text(connection, frame, table, LOSSLESS_INSERT_SETTINGS, "TabSeparated", polars_tsv)


@transport("native INSERT FORMAT CSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
def write_pandas_insert_csv_lossless(connection, frame, table):
    """Send the frame as CSV inside the query text. pyarrow writes it, quotes every string and leaves nulls empty.

    The published transport with another writer: empty strings, leading and trailing spaces, NaN and nulls arrive
    unchanged.
    """
    insert_text(connection, frame, table, LOSSLESS_INSERT_SETTINGS, "CSV", pandas_csv_lossless)


@transport("native INSERT FORMAT TSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
def write_pandas_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings, NaN and nulls arrive
    unchanged.
    """
    insert_text(connection, frame, table, LOSSLESS_INSERT_SETTINGS, "TabSeparated", pandas_tsv)
