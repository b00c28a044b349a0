"""SQLAlchemy over clickhouse-driver, dialect clickhouse+native: https://github.com/xzkostyan/clickhouse-sqlalchemy"""

from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.clickhouse.columns import (
    pandas_csv,
    pandas_csv_lossless,
    pandas_tsv,
    polars_csv,
    polars_csv_lossless,
    polars_tsv,
    typed,
)
from harness.transports.clickhouse.server import LOSSLESS_INSERT_SETTINGS, TEXT_INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier, insert_into
from harness.transports.sqlalchemy import for_text

ENDPOINT = "clickhouse_native"


@contextmanager
def connect(uri):
    """Yield a SQLAlchemy connection.

    clickhouse-sqlalchemy 0.3.2 closes the native connection after every result it has read. Every read, and the first
    write, therefore opens a new connection, and the time includes it.

    Settings are marked as important. A server older than 26.5 therefore refuses inline inserts with code 115
    (UNKNOWN_SETTING). Otherwise it would ignore the unknown setting and wait forever.
    """
    from sqlalchemy import create_engine, make_url

    url = make_url(uri).update_query_dict({"settings_is_important": "1"})
    if url.drivername == "clickhouses":
        url = url.update_query_dict({"secure": "true"})  # the dialect's name replaces the scheme
    engine = create_engine(url.set(drivername="clickhouse+native"))
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _insert_text(connection, frame, table, settings, format_name, encode, *how):
    """Encode a frame as text with `encode(frame, *how)`, and run an INSERT whose text contains it."""
    with phase("encode"):
        payload = encode(frame, *how)
    query = f"{insert_into(table, frame.columns)} FORMAT {format_name}\n{payload}"
    # The driver inserts parameters with the % operator, even without parameters, so a % in the data must be doubled.
    connection.exec_driver_sql(query.replace("%", "%%"), execution_options={"settings": settings})


@transport(
    "native INSERT FORMAT CSV",
    "delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    settings=TEXT_INSERT_SETTINGS,
    published="SQLAlchemy over native driver INSERT FORMAT CSV from Polars delimited text",
)
def write_polars_insert_csv(connection, frame, table):
    r"""Send the frame as CSV inside the text of one INSERT query over the native protocol.

    Client and server both hold the whole payload as one query string, and the server parses every value again. Needs
    ClickHouse 26.5 or newer. polars quotes a string only where CSV requires it. ClickHouse therefore trims leading and
    trailing spaces. A string \N and a null arrive as the column's default.
    """
    _insert_text(connection, frame, table, TEXT_INSERT_SETTINGS, "CSV", polars_csv)


@transport(
    "native INSERT FORMAT TSV",
    "delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    settings=TEXT_INSERT_SETTINGS,
    published="SQLAlchemy over native driver INSERT FORMAT TSV from Polars delimited text",
)
def write_polars_insert_tsv(connection, frame, table):
    r"""Send the frame as tab-separated text inside the text of one INSERT query over the native protocol.

    Client and server both hold the whole payload as one query string, and the server parses every value again. Needs
    ClickHouse 26.5 or newer. ClickHouse expects TabSeparated to be escaped (\t, \n, \\), but polars quotes it. An empty
    string arrives as two quotes. A string with a quote or backslash arrives changed, and one with a tab or newline
    breaks the insert. Nulls are lost.
    """
    _insert_text(connection, frame, table, TEXT_INSERT_SETTINGS, "TabSeparated", polars_csv, "\t")


@transport(
    "native INSERT FORMAT CSV",
    "delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    settings=TEXT_INSERT_SETTINGS,
    published="SQLAlchemy over native driver INSERT FORMAT CSV from Pandas delimited text",
)
def write_pandas_insert_csv(connection, frame, table):
    r"""Send the frame as CSV inside the text of one INSERT query over the native protocol.

    Client and server both hold the whole payload as one query string, and the server parses every value again. Needs
    ClickHouse 26.5 or newer. pandas quotes a string only where CSV requires it. ClickHouse therefore trims leading and
    trailing spaces. A string \N, a NaN and a missing value arrive as the column's default.
    """
    _insert_text(connection, frame, table, TEXT_INSERT_SETTINGS, "CSV", pandas_csv)


@transport(
    "native INSERT FORMAT TSV",
    "delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    settings=TEXT_INSERT_SETTINGS,
    published="SQLAlchemy over native driver INSERT FORMAT TSV from Pandas delimited text",
)
def write_pandas_insert_tsv(connection, frame, table):
    r"""Send the frame as tab-separated text inside the text of one INSERT query over the native protocol.

    Client and server both hold the whole payload as one query string, and the server parses every value again. Needs
    ClickHouse 26.5 or newer. ClickHouse expects TabSeparated to be escaped (\t, \n, \\), but pandas quotes it. A string
    with a quote or backslash arrives changed. A string with a tab or newline, and a NaN, break the insert. Missing
    values are lost.
    """
    _insert_text(connection, frame, table, TEXT_INSERT_SETTINGS, "TabSeparated", pandas_csv, "\t")


@transport(
    "row fetch",
    "rows",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    published="SQLAlchemy over native driver row fetch -> Polars dataframe",
)
def read_polars_rows(connection, table):
    """Fetch all rows through SQLAlchemy and build the frame from them.

    The server sends native columns. The driver turns them into rows, and polars turns the rows back into columns. UUIDs
    arrive as uuid.UUID, which polars can only hold in its Object type. Integers become Int64.
    """
    import polars as pl
    from sqlalchemy import text

    with phase("receive"):
        result = connection.execute(text(for_text(f"SELECT * FROM {identifier(table)}")))
    with phase("decode"):
        return pl.DataFrame(result.all(), schema=list(result.keys()), orient="row")


@transport(
    "row fetch",
    "rows",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    published="SQLAlchemy over native driver row fetch -> Pandas dataframe",
)
def read_pandas_rows(connection, table):
    """Fetch all rows through SQLAlchemy and build the frame from them.

    The server sends native columns. The driver turns them into rows, and pandas turns the rows back into columns. UUIDs
    and dates stay Python objects (uuid.UUID, datetime.date). Integers become int64.
    """
    import pandas as pd
    from sqlalchemy import text

    with phase("receive"):
        result = connection.execute(text(for_text(f"SELECT * FROM {identifier(table)}")))
    with phase("decode"):
        # pandas 3.1 converts tuples more than twice as fast as SQLAlchemy rows
        rows = [tuple(row) for row in result.all()]
        return pd.DataFrame(rows, columns=list(result.keys()))


@transport("SELECT 1", "one value", requires=["clickhouse_sqlalchemy"], origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    return connection.exec_driver_sql("SELECT 1").scalar_one()


@transport(
    "native INSERT FORMAT CSV, lossless",
    "delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    settings=LOSSLESS_INSERT_SETTINGS,
)
def write_polars_insert_csv_lossless(connection, frame, table):
    r"""Send the frame as CSV inside the query text, with every string quoted and each null as an unquoted \N.

    The published transport plus quotes: empty strings, leading and trailing spaces, a string \N and nulls all arrive
    unchanged.
    """
    _insert_text(connection, frame, table, LOSSLESS_INSERT_SETTINGS, "CSV", polars_csv_lossless)


@transport(
    "native INSERT FORMAT TSV, lossless",
    "delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    settings=LOSSLESS_INSERT_SETTINGS,
)
def write_polars_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings and nulls arrive
    unchanged.
    """
    _insert_text(connection, frame, table, LOSSLESS_INSERT_SETTINGS, "TabSeparated", polars_tsv)


@transport(
    "native INSERT FORMAT CSV, lossless",
    "delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    settings=LOSSLESS_INSERT_SETTINGS,
)
def write_pandas_insert_csv_lossless(connection, frame, table):
    """Send the frame as CSV inside the query text. pyarrow writes it, quotes every string and leaves nulls empty.

    The published transport with another writer: empty strings, leading and trailing spaces, NaN and nulls arrive
    unchanged.
    """
    _insert_text(connection, frame, table, LOSSLESS_INSERT_SETTINGS, "CSV", pandas_csv_lossless)


@transport(
    "native INSERT FORMAT TSV, lossless",
    "delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"],
    settings=LOSSLESS_INSERT_SETTINGS,
)
def write_pandas_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings, NaN and nulls arrive
    unchanged.
    """
    _insert_text(connection, frame, table, LOSSLESS_INSERT_SETTINGS, "TabSeparated", pandas_tsv)


@transport("row fetch", "rows", requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base"])
def read_pandas_rows_lossless(connection, table):
    """Fetch all rows through SQLAlchemy, turn them into columns and keep nulls in numeric columns.

    The published read turns integers with nulls into float64, and a null in a float column into NaN. Here these columns
    are Arrow (pandas.ArrowDtype). UUIDs and dates stay Python objects.
    """
    import pandas as pd
    from sqlalchemy import text

    result = connection.execute(text(for_text(f"SELECT * FROM {identifier(table)}")))
    described, rows = result.cursor.description, result.all()
    columns = zip(described, zip(*rows, strict=True) if rows else [()] * len(described), strict=True)
    return pd.DataFrame({name: typed(values, sql_type) for (name, sql_type, *_), values in columns})
