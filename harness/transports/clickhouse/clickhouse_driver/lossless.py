"""clickhouse-driver's inline text inserts with fewer losses: https://clickhouse-driver.readthedocs.io/"""

from harness.registry import phase, transport
from harness.transports.clickhouse.columns import pandas_csv, pandas_tsv, polars_tsv
from harness.transports.clickhouse.server import LOSSLESS_INSERT_SETTINGS
from harness.transports.clickhouse.sql import insert_into


@transport(
    "write",
    frame="polars",
    path="native INSERT FORMAT CSV, lossless",
    payload="delimited text",
    requires=["clickhouse_driver", "polars"],
    settings=LOSSLESS_INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 float64_beyond_float32 "
        "dates_beyond float32_into_float64",
        "refused": "booleans arrays nested float64_into_int32 timestamp_into_date boolean_into_int32 "
        "int32_into_date timestamp_into_int64",
        "hangs": "zero_rows",
    },
)
def write_polars_insert_csv_lossless(connection, frame, table):
    r"""Send the frame as CSV inside the query text, with every string quoted and each null as an unquoted \N.

    The published transport plus quotes: empty strings, leading and trailing spaces, a string \N and nulls all arrive
    unchanged.
    """
    with phase("encode"):
        payload = frame.write_csv(file=None, include_header=False, quote_style="non_numeric", null_value=r"\N")
    query = f"{insert_into(table, frame.columns)} FORMAT CSV\n{payload}"
    with phase("send"):
        connection.execute(query, settings=LOSSLESS_INSERT_SETTINGS)


@transport(
    "write",
    frame="polars",
    path="native INSERT FORMAT TSV, lossless",
    payload="delimited text",
    requires=["clickhouse_driver", "polars"],
    settings=LOSSLESS_INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 float64_beyond_float32 "
        "dates_beyond float32_into_float64",
        "refused": "arrays nested float64_into_int32 timestamp_into_date boolean_into_int32 int32_into_date "
        "timestamp_into_int64",
        "hangs": "zero_rows",
    },
)
def write_polars_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings and nulls arrive
    unchanged.
    """
    with phase("encode"):
        payload = polars_tsv(frame)
    query = f"{insert_into(table, frame.columns)} FORMAT TabSeparated\n{payload}"
    with phase("send"):
        connection.execute(query, settings=LOSSLESS_INSERT_SETTINGS)


@transport(
    "write",
    frame="pandas",
    path="native INSERT FORMAT CSV, lossless",
    payload="delimited text",
    requires=["clickhouse_driver", "pandas", "pyarrow.csv"],
    settings=LOSSLESS_INSERT_SETTINGS,
    lossy={
        "changed": "null_instant timestamps timestamps_tz int64_beyond_int32 uint32_beyond_int32 "
        "uint64_beyond_int64 float64_beyond_float32 dates_beyond float32_into_float64 "
        "timestamps_elsewhere timestamps_tz_elsewhere",
        "refused": "arrays nested boolean_into_int32 int32_into_date timestamp_into_int64",
        "hangs": "zero_rows",
    },
)
def write_pandas_insert_csv_lossless(connection, frame, table):
    """Send the frame as CSV inside the query text. pyarrow writes it, quotes every string and leaves nulls empty.

    The published transport with another writer: empty strings, leading and trailing spaces, NaN and nulls arrive
    unchanged.
    """
    with phase("encode"):
        payload = pandas_csv(frame)
    query = f"{insert_into(table, frame.columns)} FORMAT CSV\n{payload}"
    with phase("send"):
        connection.execute(query, settings=LOSSLESS_INSERT_SETTINGS)


@transport(
    "write",
    frame="pandas",
    path="native INSERT FORMAT TSV, lossless",
    payload="delimited text",
    requires=["clickhouse_driver", "pandas"],
    settings=LOSSLESS_INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 float64_beyond_float32 "
        "dates_beyond float32_into_float64",
        "refused": "arrays nested float64_into_int32 boolean_into_int32 int32_into_date timestamp_into_int64",
        "hangs": "zero_rows",
    },
)
def write_pandas_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped by ClickHouse's rules.

    The published transport with the escapes \\, \t, \n, \r and \N instead of quotes: strings, NaN and nulls arrive
    unchanged.
    """
    with phase("encode"):
        payload = pandas_tsv(frame)
    query = f"{insert_into(table, frame.columns)} FORMAT TabSeparated\n{payload}"
    with phase("send"):
        connection.execute(query, settings=LOSSLESS_INSERT_SETTINGS)
