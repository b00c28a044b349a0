"""clickhouse-driver beyond lists of objects: NumPy, compression, rows: https://clickhouse-driver.readthedocs.io/"""

from contextlib import contextmanager

from harness.registry import Unsupported, phase, transport
from harness.transports.clickhouse.clickhouse_driver.client import insert_columns, opened
from harness.transports.clickhouse.columns import pandas_lists_with_none, pandas_rows, polars_lists, without_nan
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


@contextmanager
def connect(uri):
    """Yield open clients by name, one for each set of options."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield {name: stack.enter_context(opened(uri, **options)) for name, options in CLIENTS.items()}


def _polars_arrays(frame):
    """Return copies, because the driver writes integers into the UUID array it receives."""
    return [frame.get_column(name).to_numpy(writable=True) for name in frame.columns]


def _pandas_arrays(frame):
    """Return copies, because the driver writes integers into the UUID array it receives."""
    return [without_nan(values).to_numpy(copy=True) for _, values in frame.items()]


@transport(
    "native columnar insert, NumPy",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "pandas", "zstd"],
    settings=INSERT_SETTINGS,
)
def write_polars_numpy(connection, frame, table):
    """Send every column as a NumPy array to a client with use_numpy.

    The driver copies numbers and dates without conversion. Strings and UUIDs are one Python object per value. The
    driver has no NumPy code for UUIDs: it parses them and logs that. It sends a null in a float column as NaN. The
    driver imports pandas for this.
    """
    insert_columns(connection["numpy"], frame, table, _polars_arrays)


@transport(
    "native columnar insert, NumPy",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "zstd"],
    settings=INSERT_SETTINGS,
)
def write_pandas_numpy(connection, frame, table):
    """Send every column as a NumPy array to a client with use_numpy.

    The driver copies numbers and dates without conversion. Strings and UUIDs are one Python object per value. The
    driver has no NumPy code for UUIDs: it parses them and logs that.
    """
    insert_columns(connection["numpy"], frame, table, _pandas_arrays)


@transport(
    "native columnar insert, NumPy, lz4",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "pandas", "zstd"],
    settings=INSERT_SETTINGS,
)
def write_polars_numpy_lz4(connection, frame, table):
    """Send every column as a NumPy array in blocks compressed with lz4; otherwise like write_polars_numpy."""
    insert_columns(connection["numpy lz4"], frame, table, _polars_arrays)


@transport(
    "insert_dataframe, NumPy",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "zstd"],
    settings=INSERT_SETTINGS,
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
    "native columnar insert, lz4",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "pandas", "zstd"],
    settings=INSERT_SETTINGS,
)
def write_polars_columnar_lz4(connection, frame, table):
    """Send every column as a list of Python objects in native blocks compressed with lz4.

    The published columnar insert, which does not compress, plus compression. The server parses nothing. The client
    creates one Python object per value and parses the UUID strings.
    """
    insert_columns(connection["lz4"], frame, table, polars_lists)


@transport(
    "native columnar insert, zstd",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "pandas", "zstd"],
    settings=INSERT_SETTINGS,
)
def write_polars_columnar_zstd(connection, frame, table):
    """Send every column as a list of Python objects in native blocks compressed with zstd.

    The published columnar insert, which does not compress, plus compression. The server parses nothing. The client
    creates one Python object per value and parses the UUID strings.
    """
    insert_columns(connection["zstd"], frame, table, polars_lists)


@transport(
    "native columnar insert, lz4",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "zstd"],
    settings=INSERT_SETTINGS,
)
def write_pandas_columnar_lz4(connection, frame, table):
    """Send every column as a list of Python objects in native blocks compressed with lz4.

    The published columnar insert, which does not compress, plus compression. The client converts each date through a
    Timestamp.
    """
    insert_columns(connection["lz4"], frame, table, pandas_lists_with_none)


def _insert_rows(client, frame, table, encode):
    with phase("encode"):
        rows = encode(frame)
    with phase("send"):
        client.execute(f"{insert_into(table, frame.columns)} VALUES", params=rows, settings=INSERT_SETTINGS)


@transport(
    "native insert of rows",
    "rows",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "pandas", "zstd"],
    settings=INSERT_SETTINGS,
)
def write_polars_rows(connection, frame, table):
    """Pass all rows to execute() as tuples; the client turns them into columns and packs them into native blocks."""
    _insert_rows(connection["plain"], frame, table, lambda frame: frame.rows())


@transport(
    "native insert of rows",
    "rows",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "zstd"],
    settings=INSERT_SETTINGS,
)
def write_pandas_rows(connection, frame, table):
    """Pass all rows to execute() as tuples; the client turns them into columns and packs them into native blocks."""
    _insert_rows(connection["plain"], frame, table, pandas_rows)
