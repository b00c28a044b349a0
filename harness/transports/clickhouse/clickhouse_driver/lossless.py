"""clickhouse-driver's inline text inserts with fewer losses: https://clickhouse-driver.readthedocs.io/"""

from harness.registry import phase, transport
from harness.transports.clickhouse.clickhouse_driver.client import insert_text
from harness.transports.clickhouse.columns import pandas_csv, pandas_tsv, polars_tsv
from harness.transports.clickhouse.server import LOSSLESS_INSERT_SETTINGS


@transport("native INSERT FORMAT CSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
def write_polars_insert_csv_lossless(connection, frame, table):
    r"""Send the frame as CSV inside the query text, with every string quoted and each null as an unquoted \N.

    The published transport plus quotes: empty strings, leading and trailing spaces, a string \N and nulls all arrive
    unchanged.
    """
    with phase("encode"):
        payload = frame.write_csv(file=None, include_header=False, quote_style="non_numeric", null_value=r"\N")
    insert_text(connection, table, frame.columns, "CSV", payload, LOSSLESS_INSERT_SETTINGS)


@transport("native INSERT FORMAT TSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
def write_polars_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings and nulls arrive
    unchanged.
    """
    with phase("encode"):
        payload = polars_tsv(frame)
    insert_text(connection, table, frame.columns, "TabSeparated", payload, LOSSLESS_INSERT_SETTINGS)


@transport("native INSERT FORMAT CSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
def write_pandas_insert_csv_lossless(connection, frame, table):
    """Send the frame as CSV inside the query text. pyarrow writes it, quotes every string and leaves nulls empty.

    The published transport with another writer: empty strings, leading and trailing spaces, NaN and nulls arrive
    unchanged.
    """
    with phase("encode"):
        payload = pandas_csv(frame)
    insert_text(connection, table, frame.columns, "CSV", payload, LOSSLESS_INSERT_SETTINGS)


@transport("native INSERT FORMAT TSV, lossless", "delimited text", settings=LOSSLESS_INSERT_SETTINGS)
def write_pandas_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings, NaN and nulls arrive
    unchanged.
    """
    with phase("encode"):
        payload = pandas_tsv(frame)
    insert_text(connection, table, frame.columns, "TabSeparated", payload, LOSSLESS_INSERT_SETTINGS)
