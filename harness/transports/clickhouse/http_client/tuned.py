"""Our own best transports into and out of ClickHouse: arrow-wire (arrow-wire/), a library over http.client and Native
blocks.

When rows go by a table of their own, and which values are refused: `help(arrow_wire.clickhouse.write)`.
"""

from typing import Any

from harness.registry import transport
from harness.transports.parts import batches, write_part

ENDPOINT = "clickhouse_http"
_PAYLOAD = "native columns"
_WRITE: Any = {
    "path": "HTTP INSERT FORMAT Native",
    "payload": _PAYLOAD,
    "settings": {"async_insert": "0", "min_insert_block_size_rows": "0", "min_insert_block_size_bytes": "0"},
}
_READ: Any = {
    "path": "HTTP SELECT FORMAT Native",
    "payload": _PAYLOAD,
    "settings": {"enable_http_compression": "0", "output_format_native_write_json_as_string": "1"},
}
_REQUIRES = ["arrow_wire.clickhouse", "numpy", "pyarrow"]


def connect(uri):
    """Return a block with open connections: one for each core, at least two, at most eight."""
    from arrow_wire import clickhouse

    return clickhouse.connect(uri)


@transport("write", frame="polars", requires=["polars", *_REQUIRES], **_WRITE)
def write_polars_tuned(server, frame, table):
    """Send Native blocks of one partition each over several HTTP connections, made by compiled code meanwhile.

    All rows or none: up to 150,000 of one partition go as one block, others by way of a table of their own.
    """
    from arrow_wire import clickhouse

    clickhouse.write(server, (table,), frame)  # a tuple takes any name


@transport("write", frame="pandas", requires=["pandas", *_REQUIRES], **_WRITE)
def write_pandas_tuned(server, frame, table):
    """Send the rows as `write_polars_tuned` does; a NaN in a column of floats stays one, among objects it is a null."""
    from arrow_wire import clickhouse

    clickhouse.write(server, (table,), frame)  # a tuple takes any name


@transport("load", requires=["pyarrow.parquet", *_REQUIRES], **_WRITE)
def load_tuned(server, source, table):
    """Send the record batches of a Parquet file as write_polars_tuned sends a frame, all or nothing.

    At most 262,144 rows are gathered at a time, or 256 MB, and cut into blocks of one partition each.
    """
    import pyarrow as pa
    from arrow_wire import clickhouse
    from pyarrow import parquet

    reader = pa.RecordBatchReader.from_batches(parquet.read_schema(source), batches(source))
    clickhouse.write(server, (table,), reader)


@transport("read", frame="polars", requires=["polars", *_REQUIRES], **_READ)
def read_polars_tuned(server, table):
    """Fetch the table as Native blocks, which compiled code decodes on arrival into memory that polars takes over.

    UUID, IP addresses, enums, JSON and whole numbers beyond 64 bits become texts, times of day durations.
    """
    from arrow_wire import clickhouse

    return clickhouse.read(server, (table,), as_="polars")


@transport("read", frame="pandas", requires=["pandas", *_REQUIRES], **_READ)
def read_pandas_tuned(server, table):
    """Fetch the table as read_polars_tuned does; texts become str columns, dates and timestamps datetime64.

    Numbers with nulls, decimals, lists and the like come in Arrow's dtypes.
    """
    from arrow_wire import clickhouse

    return clickhouse.read(server, (table,), as_="pandas")


@transport("unload", requires=["pyarrow.parquet", *_REQUIRES], **_READ)
def unload_tuned(server, table, destination):
    """Fetch the table as read_polars_tuned does, and write its rows, as they arrive, as one Parquet file."""
    from arrow_wire import clickhouse

    write_part(destination, "rows", clickhouse.stream(server, (table,)))
