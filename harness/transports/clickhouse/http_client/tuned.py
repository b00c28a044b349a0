"""The lab's tuned transports into and out of ClickHouse: the library arrow-wire over http.client and Native blocks.

`help(arrow_wire.clickhouse.write)` says when rows go through a staging table and which values are refused.
"""

from harness.registry import transport
from harness.transports.parts import batches, write_part

ENDPOINT = "clickhouse_http"
_INSERT = {"async_insert": "0", "min_insert_block_size_rows": "0", "min_insert_block_size_bytes": "0"}
_SELECT = {"enable_http_compression": "0", "output_format_native_write_json_as_string": "1"}


def connect(uri):
    """Return a block with open connections: one for each core, at least two, at most eight."""
    from arrow_wire import clickhouse

    return clickhouse.connect(uri)


@transport("HTTP INSERT FORMAT Native", "native columns", requires=["numpy", "pyarrow"], settings=_INSERT)
def write_polars_tuned(server, frame, table):
    """Send Native blocks, one partition each, over several HTTP connections while compiled code encodes the next ones.

    All rows or none: 150,000 rows of one partition, or 30,000 of several, go as one block, more through a staging
    table. Only a server that dies while it commits several partitions may leave some.
    """
    from arrow_wire import clickhouse

    clickhouse.write(server, (table,), frame)  # a tuple allows any table name


@transport("HTTP INSERT FORMAT Native", "native columns", requires=["numpy", "pyarrow"], settings=_INSERT)
def write_pandas_tuned(server, frame, table):
    """Send the rows like `write_polars_tuned`. NaN in a float column stays NaN; NaN among objects becomes a null."""
    from arrow_wire import clickhouse

    clickhouse.write(server, (table,), frame)  # a tuple allows any table name


@transport("HTTP INSERT FORMAT Native", "native columns", requires=["numpy"], settings=_INSERT)
def load_tuned(server, source, table):
    """Send a Parquet file's record batches like write_polars_tuned sends a frame, all or nothing.

    At most 262,144 rows or 256 MB are gathered at a time and cut into blocks of one partition each.
    """
    import pyarrow as pa
    from arrow_wire import clickhouse
    from pyarrow import parquet

    reader = pa.RecordBatchReader.from_batches(parquet.read_schema(source), batches(source))
    clickhouse.write(server, (table,), reader)


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy", "pyarrow"], settings=_SELECT)
def read_polars_tuned(server, table):
    """Fetch the table as Native blocks; compiled code decodes them on arrival into memory that polars takes over.

    UUIDs, IP addresses, enums, JSON and integers beyond 64 bits become strings. Times of day become durations.
    """
    from arrow_wire import clickhouse

    return clickhouse.read(server, (table,), as_="polars")


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy", "pyarrow"], settings=_SELECT)
def read_pandas_tuned(server, table):
    """Fetch the table like read_polars_tuned; strings become str columns, dates and timestamps datetime64.

    Numbers with nulls, decimals and nested types such as lists keep Arrow dtypes.
    """
    from arrow_wire import clickhouse

    return clickhouse.read(server, (table,), as_="pandas")


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy"], settings=_SELECT)
def unload_tuned(server, table, destination):
    """Fetch the table like read_polars_tuned and write its rows to one Parquet file as they arrive."""
    from arrow_wire import clickhouse

    write_part(destination, "rows", clickhouse.stream(server, (table,)))
