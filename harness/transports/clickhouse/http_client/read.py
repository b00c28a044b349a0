"""Our own transports out of ClickHouse: https://clickhouse.com/docs/interfaces/formats/Native"""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from harness.registry import Unsupported, transport
from harness.transports.clickhouse.http_client.client import (
    FOR_PANDAS,
    FOR_POLARS,
    PAYLOAD,
    UNCOMPRESSED,
    AnswerBytes,
    connected,
    described,
    send,
)
from harness.transports.clickhouse.sql import identifier
from harness.transports.parts import write_part

PINNED = {**UNCOMPRESSED, "output_format_native_write_json_as_string": "1"}
PATH = "HTTP SELECT FORMAT Native"
BATCH_ROWS = 1 << 17  # of a stream, or a block of the server, which mostly has half as many


@contextmanager
def connect(uri):
    """Yield two open connections: for the rows, and for what is asked beside them."""
    with connected(uri, 2) as connection:
        yield connection


def _batches(connection, table, text, enough):
    """Yield the rows as record batches; a failure on the way, or leaving early, closes the connection they come on.

    The first thing it yields is their schema. Raises Unsupported for a column that cannot be read, before any row.
    """
    from arrow_wire import clickhouse_native as clickhouse

    clients, user, parameters = connection
    query, done = f"SELECT * FROM {identifier(table)}", False
    try:
        # The names of the types are asked for while the server finds the first rows. Should the table change between
        # the two, its blocks say so.
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(described, clients[1], user, parameters | PINNED, f"({query})")
            answer = AnswerBytes(send(clients[0], user, parameters | PINNED, f"{query} FORMAT Native"))
            columns = asked.result()
        try:
            result = clickhouse.Result([(name, sql_type) for name, sql_type, _ in columns], text)
        except TypeError as error:
            raise Unsupported(str(error)) from None
        yield result.schema
        yield from clickhouse.batches(result, answer.readinto, enough)
        done = True
    finally:
        if not done:
            clients[0].close()


def read_stream(connection, table, text=None):
    """Return a reader of record batches: a table of any size, of which a few blocks are in memory at a time.

    `text` is the Arrow type of texts, string_view where it is not given.

    Until it is read to its end, nothing else can be asked on this connection.
    """
    import pyarrow as pa

    batches = _batches(connection, table, text or pa.string_view(), BATCH_ROWS)
    return pa.RecordBatchReader.from_batches(next(batches), batches)


@transport(
    "read",
    frame="polars",
    path=PATH,
    payload=PAYLOAD,
    requires=FOR_POLARS,
    settings=PINNED,
)
def read_polars_tuned(connection, table):
    """Fetch the table as Native blocks, which compiled code decodes on arrival into memory that polars takes over.

    One SELECT, so all rows are of one moment; nothing is compressed. A column is one chunk. UUID, IP addresses, enums,
    JSON and whole numbers beyond 64 bits become texts, times of day durations, which also hold what is beyond a day.
    """
    import polars as pl
    import pyarrow as pa

    batches = _batches(connection, table, pa.string_view(), sys.maxsize)
    for field in next(batches):
        if pa.types.is_decimal256(field.type):
            batches.close()
            raise Unsupported(f'column "{field.name}": expected decimals of 38 digits at most, found {field.type}')
    return pl.DataFrame({name: pl.from_arrow(array) for batch in batches for name, array in _columns(batch)})


def _columns(batch):
    return zip(batch.schema.names, batch.columns, strict=True)


@transport(
    "read",
    frame="pandas",
    path=PATH,
    payload=PAYLOAD,
    requires=FOR_PANDAS,
    settings=PINNED,
)
def read_pandas_tuned(connection, table):
    """Fetch the table as read_polars_tuned does; texts become str columns, dates and timestamps datetime64.

    Numbers and booleans with nulls come in Arrow's dtypes (int32[pyarrow]), as numpy has no null and a NaN is a value
    of its own; so do decimals, lists and the like, for which it has nothing. Only dates and booleans are copied.
    """
    import pandas as pd
    import pyarrow as pa

    batches = _batches(connection, table, pa.large_string(), sys.maxsize)
    next(batches)
    series = {name: _series(array) for batch in batches for name, array in _columns(batch)}
    return pd.DataFrame(series, copy=False)


def _series(array):
    import pandas as pd
    import pyarrow as pa

    arrow_type = array.type
    if pa.types.is_large_string(arrow_type):
        return pd.Series(pd.array(pa.chunked_array([array]), dtype="str"), copy=False)
    if pa.types.is_date32(arrow_type):
        return pd.Series(array.to_numpy(zero_copy_only=False).astype("M8[us]"), copy=False)
    if pa.types.is_temporal(arrow_type):
        return array.to_pandas()
    of_numpy = pa.types.is_boolean(arrow_type) or pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type)
    if of_numpy and not array.null_count:
        return pd.Series(array.to_numpy(zero_copy_only=False), copy=False)
    return pd.Series(array, dtype=pd.ArrowDtype(arrow_type), copy=False)


@transport(
    "unload",
    path=PATH,
    payload=PAYLOAD,
    requires=["arrow_wire", "numpy", "pyarrow.parquet"],
    settings=PINNED,
)
def unload_tuned(connection, table, destination):
    """Fetch the table as read_polars_tuned does, and write its rows, as they arrive, as one Parquet file."""
    import pyarrow as pa

    write_part(destination, "rows", read_stream(connection, table, pa.large_string()))
