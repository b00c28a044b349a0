"""clickhouse-driver beyond lists of objects: NumPy, compression, rows: https://clickhouse-driver.readthedocs.io/"""

from contextlib import contextmanager

from harness.registry import Unsupported, phase, transport
from harness.transports.clickhouse.clickhouse_driver.client import opened
from harness.transports.clickhouse.columns import without_nan
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier, insert_into

# A client's options set its compression and whether it accepts NumPy arrays.
CLIENTS = {
    "plain": {},
    "lz4": {"compression": "lz4"},
    "zstd": {"compression": "zstd"},
    "numpy": {"use_numpy": "1"},
    "numpy lz4": {"use_numpy": "1", "compression": "lz4"},
}

# Modules that opening all these clients imports.
OF_CONNECT = ("clickhouse_cityhash", "clickhouse_driver", "lz4.block", "numpy", "pandas", "zstd")


@contextmanager
def connect(uri):
    """Yield open clients by name, one for each set of options."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield {name: stack.enter_context(opened(uri, **options)) for name, options in CLIENTS.items()}


def _insert_columns(client, frame, table, columns):
    with phase("send"):
        query = f"{insert_into(table, frame.columns)} VALUES"
        client.execute(query, params=columns, columnar=True, settings=INSERT_SETTINGS)


def _polars_arrays(frame):
    """Return copies, because the driver writes integers into the UUID array it receives."""
    return [frame.get_column(name).to_numpy(writable=True) for name in frame.columns]


def _pandas_arrays(frame):
    """Return copies, because the driver writes integers into the UUID array it receives."""
    return [without_nan(values).to_numpy(copy=True) for _, values in frame.items()]


@transport(
    "write",
    frame="polars",
    path="native columnar insert, NumPy",
    payload="columns",
    requires=[*OF_CONNECT, "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "nulls first_10000_null int64_beside_null timestamps timestamps_tz int64_beyond_int32 "
        "uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned fraction_into_int32 "
        "float64_beyond_float32 dates_beyond timestamp_into_int64",
        "refused": "arrays nested float64_into_decimal int32_into_text",
    },
)
def write_polars_numpy(connection, frame, table):
    """Send every column as a NumPy array to a client with use_numpy.

    The driver copies numbers and dates without conversion. Strings and UUIDs are one Python object per value. The
    driver has no NumPy code for UUIDs: it parses them and logs that. It sends a null in a float column as NaN. The
    driver imports pandas for this.
    """
    with phase("encode"):
        columns = _polars_arrays(frame)
    _insert_columns(connection["numpy"], frame, table, columns)


@transport(
    "write",
    frame="pandas",
    path="native columnar insert, NumPy",
    payload="columns",
    requires=[*OF_CONNECT],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "timestamps timestamps_tz int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 "
        "negative_into_unsigned fraction_into_int32 float64_beyond_float32 dates_beyond "
        "timestamp_into_int64",
        "refused": "null_instant nested float64_into_decimal int32_into_text",
    },
)
def write_pandas_numpy(connection, frame, table):
    """Send every column as a NumPy array to a client with use_numpy.

    The driver copies numbers and dates without conversion. Strings and UUIDs are one Python object per value. The
    driver has no NumPy code for UUIDs: it parses them and logs that.
    """
    with phase("encode"):
        columns = _pandas_arrays(frame)
    _insert_columns(connection["numpy"], frame, table, columns)


@transport(
    "write",
    frame="polars",
    path="native columnar insert, NumPy, lz4",
    payload="columns",
    requires=[*OF_CONNECT, "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "nulls first_10000_null int64_beside_null timestamps timestamps_tz int64_beyond_int32 "
        "uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned fraction_into_int32 "
        "float64_beyond_float32 dates_beyond timestamp_into_int64",
        "refused": "arrays nested float64_into_decimal int32_into_text",
    },
)
def write_polars_numpy_lz4(connection, frame, table):
    """Send every column as a NumPy array in blocks compressed with lz4; otherwise like write_polars_numpy."""
    with phase("encode"):
        columns = _polars_arrays(frame)
    _insert_columns(connection["numpy lz4"], frame, table, columns)


@transport(
    "write",
    frame="pandas",
    path="insert_dataframe, NumPy",
    payload="columns",
    requires=[*OF_CONNECT],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "timestamps timestamps_tz int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 "
        "negative_into_unsigned fraction_into_int32 float64_beyond_float32 dates_beyond "
        "timestamp_into_int64",
        "refused": "null_text null_decimal decimals nested enum float64_into_decimal int32_into_text text_into_date",
    },
)
def write_pandas_insert_dataframe(connection, frame, table):
    """Send the frame with insert_dataframe to a client with use_numpy; impossible with a UUID column.

    The driver (0.2.11) has no NumPy code for UUID: it writes integers into the frame's array, which pandas 3 does not
    allow. write_pandas_numpy passes it copies instead.
    """
    client = connection["numpy"]
    types = {row[0]: row[1] for row in connection["plain"].execute(f"DESCRIBE TABLE {identifier(table)}")}
    if any("UUID" in types[name] for name in frame.columns):
        raise Unsupported(
            "insert_dataframe of clickhouse-driver 0.2.11 writes integers into the frame's array of UUIDs, which "
            "pandas 3 makes read-only"
        )
    client.insert_dataframe(f"{insert_into(table, frame.columns)} VALUES", frame, settings=INSERT_SETTINGS)


@transport(
    "write",
    frame="polars",
    path="native columnar insert, lz4",
    payload="columns",
    requires=[*OF_CONNECT, "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "timestamps timestamps_tz dates_beyond",
        "refused": "nested float64_into_int32 int32_into_text text_into_int32 text_into_date "
        "date_into_timestamp int32_into_date timestamp_into_int64",
    },
)
def write_polars_columnar_lz4(connection, frame, table):
    """Send every column as a list of Python objects in native blocks compressed with lz4.

    The published columnar insert, which does not compress, plus compression. The server parses nothing. The client
    creates one Python object per value and parses the UUID strings.
    """
    with phase("encode"):
        columns = [frame.get_column(name).to_list() for name in frame.columns]
    _insert_columns(connection["lz4"], frame, table, columns)


@transport(
    "write",
    frame="polars",
    path="native columnar insert, zstd",
    payload="columns",
    requires=[*OF_CONNECT, "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "timestamps timestamps_tz dates_beyond",
        "refused": "nested float64_into_int32 int32_into_text text_into_int32 text_into_date "
        "date_into_timestamp int32_into_date timestamp_into_int64",
    },
)
def write_polars_columnar_zstd(connection, frame, table):
    """Send every column as a list of Python objects in native blocks compressed with zstd.

    The published columnar insert, which does not compress, plus compression. The server parses nothing. The client
    creates one Python object per value and parses the UUID strings.
    """
    with phase("encode"):
        columns = [frame.get_column(name).to_list() for name in frame.columns]
    _insert_columns(connection["zstd"], frame, table, columns)


@transport(
    "write",
    frame="pandas",
    path="native columnar insert, lz4",
    payload="columns",
    requires=[*OF_CONNECT],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "timestamps timestamps_tz dates_beyond",
        "refused": "nested float64_into_int32 int32_into_text text_into_int32 text_into_date int32_into_date"
        " timestamp_into_int64",
    },
)
def write_pandas_columnar_lz4(connection, frame, table):
    """Send every column as a list of Python objects in native blocks compressed with lz4.

    The published columnar insert, which does not compress, plus compression. The client converts each date through a
    Timestamp.
    """
    with phase("encode"):
        columns = [without_nan(values).to_list() for _, values in frame.items()]
    _insert_columns(connection["lz4"], frame, table, columns)


@transport(
    "write",
    frame="polars",
    path="native insert of rows",
    payload="rows",
    requires=[*OF_CONNECT, "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "timestamps timestamps_tz dates_beyond",
        "refused": "nested float64_into_int32 int32_into_text text_into_int32 text_into_date "
        "date_into_timestamp int32_into_date timestamp_into_int64",
    },
)
def write_polars_rows(connection, frame, table):
    """Pass all rows to execute() as tuples; the client turns them into columns and packs them into native blocks."""
    with phase("encode"):
        rows = frame.rows()
    with phase("send"):
        query = f"{insert_into(table, frame.columns)} VALUES"
        connection["plain"].execute(query, params=rows, settings=INSERT_SETTINGS)


@transport(
    "write",
    frame="pandas",
    path="native insert of rows",
    payload="rows",
    requires=[*OF_CONNECT],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "timestamps timestamps_tz dates_beyond",
        "refused": "nested float64_into_int32 int32_into_text text_into_int32 text_into_date int32_into_date"
        " timestamp_into_int64",
    },
)
def write_pandas_rows(connection, frame, table):
    """Pass all rows to execute() as tuples; the client turns them into columns and packs them into native blocks."""
    with phase("encode"):
        rows = list(zip(*(without_nan(values).to_list() for _, values in frame.items()), strict=True))
    with phase("send"):
        query = f"{insert_into(table, frame.columns)} VALUES"
        connection["plain"].execute(query, params=rows, settings=INSERT_SETTINGS)
