"""Move frames into and out of ClickHouse: `write`, `read`, `stream`. It needs only Python's standard library and Arrow.

Each takes an address, `http://user:password@host:8123/?database=sales` or `https://...`, or a server that `connect`
opened. For `https://`, the server's certificate must be valid for the authorities that this machine trusts, or for
those in the file `SSL_CERT_FILE` (an environment variable). Otherwise the call raises `Disconnected`.

A table is a string with or without a database ("orders", "sales.orders"), or a tuple of names as they are. In a string,
put a name that contains a point between backticks or double quotes. Errors are those of `arrow_wire.errors`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from arrow_wire import clickhouse_read, clickhouse_write, frames
from arrow_wire.clickhouse_http import Server, Table, connected, named
from arrow_wire.cores import number_of_connections
from arrow_wire.errors import Conflict, UnsupportedType
from arrow_wire.tally import Progress, Tally, Written

__all__ = ["Server", "connect", "read", "stream", "write"]

Where: TypeAlias = str | Server
Settings: TypeAlias = Mapping[str, object]
Mode: TypeAlias = Literal["append", "create", "replace"]


@contextmanager
def connect(uri: str, count: int | None = None) -> Iterator[Server]:
    """Yield open connections that several calls can use, one after the other.

    There are `count` of them. The default is one for each core that this process may use, at least 2 and at most 8.
    """
    with connected(uri, count or number_of_connections()) as server:
        yield server


def write(
    where: Where,
    table: Table,
    frame: Any,
    *,
    mode: Mode = "append",
    progress: Progress | None = None,
    settings: Settings | None = None,
    atomic: bool | None = None,
) -> Written:
    """Write a frame into a table, all rows or none, and return how many rows, and how many bytes they were on the wire.

    `frame` is one of polars, pandas or pyarrow, or anything with `__arrow_c_stream__`. A reader of record batches is
    read in pieces of at most 262,144 rows or 256 MB. Columns are matched by name; those that only the table has get
    their defaults. `progress` is called with the number of rows so far. `settings` are sent with every statement.

    `mode`:

    - "append" to the existing table
    - "create" it from the frame's types, as a MergeTree in the order of the rows
    - "replace" all rows of the existing table, or create it. It is exchanged with another table of the same
      definition (EXCHANGE TABLES), which materialized views do not see.

    Native blocks of one partition each go over several connections. Values cross the wire as the server keeps them;
    nothing is compressed. The server is asked for column types and the partition key. One row needs no question if a
    table with columns of these names was written to over the same `connect` before: the server compares the types.

    The rows go into a second table. One statement then links all of its parts into the target (ATTACH PARTITION ALL
    FROM), so readers, too, see all rows or none. That costs three statements and the links of the parts' files, about a
    tenth of the time of a million rows. It needs the right to create a table. If this process dies before the link, the
    second table stays: `<table>_staging_...`. Parts of up to 64 MB become compact ones, of a few files, where by
    default those of 10 MB have two a column. They are written in less time, but a query of one column takes up to a
    fifth longer until the server merges them. A table with its own settings for this keeps them.

    Up to 150,000 rows of one partition need no second table: they go as one block over one connection. A table of the
    MergeTree family takes such a block as a whole or not at all. Tables that feed materialized views use the second one
    for more than one row. So do tables whose partition key is not a date, its month or its year. If the connection
    breaks before the answer (`Disconnected`), the table has all rows or none, as with the link.

    `atomic` matters for rows of several partitions, in mode "append":

    - None: up to 30,000 rows of at most 10 MB and 99 partitions are one block, too. The server writes the parts of all
      partitions before it commits the first. So an error, a limit, a full disk or a broken connection leaves no row. It
      then commits one partition after the other. In these milliseconds a reader may see some of them. If the server
      dies or its disk fails in these milliseconds, those that were committed stay. Replicated tables use the second
      table, and so do those with a setting for wide parts.
    - True: any number of rows goes through the second table. Only a server that dies while it links the parts may leave
      some partitions: it renames their folders one after the other.
    - False: no row goes through the second table. Up to 150,000 rows are one block, more are several. The server
      commits each partition of a block before it writes the next. So a reader may see some of the rows before the
      others, and if the call fails, some may stay.

    A NaN in a column of floats stays a NaN; in a pandas column of objects it is a null. Timestamps at midnight become
    dates if the column has dates. A value that its column cannot hold is refused with its column and row
    (`WrongValue`).
    """
    frames.require_choice("mode", mode, frames.MODES)
    library, tally, parts = frames.library_of(frame), Tally(progress), named(table)
    most = clickhouse_write.STREAM_ROWS if isinstance(frame, pa.RecordBatchReader) else clickhouse_write.SLICE_ROWS
    if library == "arrow":
        reader = frames.reader_of(frame)
        frames.require_names(list(reader.schema.names))
    else:
        frames.names_of(frame)
        reader = _reader(frame, library)
    with _server(where, settings) as server:
        count = len(server.clients) or number_of_connections()
        how: Callable[..., None] = partial(clickhouse_write.write, strict=bool(atomic))
        if mode != "append":
            there = clickhouse_write.is_there(server, parts)
            if there and mode == "create":
                raise Conflict(f"the table {'.'.join(parts)} exists; append to it, or replace its rows")
            how = clickhouse_write.replace if there else clickhouse_write.make
        elif atomic is False:
            how = clickhouse_write.append
        how(server, count, parts, reader, most, tally)
    return tally.written


def _reader(frame: Any, library: str) -> pa.RecordBatchReader:
    if library == "polars":
        import polars as pl

        return frames.of_polars(frame, pl.String())
    return frames.of_pandas(frame, lambda _: True)


def read(where: Where, query: Table, *, as_: str = "arrow", settings: Settings | None = None) -> Any:
    """Return the rows of a query, or of a whole table, as a frame: `as_` is "polars", "pandas" or "arrow".

    `query` is a SELECT without FORMAT, or a table's name; values for its `{name:Type}` go into `settings` as
    `param_name`. The call sends one SELECT, so all rows are from one point in time. Nothing is compressed. A column is
    one chunk.

    UUID, IP addresses, enums, JSON and whole numbers beyond 64 bits become strings. Times of day become durations,
    which also hold times beyond a day. In pandas strings become str columns, dates and timestamps datetime64. Numbers
    and booleans with nulls get Arrow's dtypes (int32[pyarrow]), because numpy has no null and a NaN is another value.
    So do decimals, lists and other types that numpy lacks.
    """
    frames.require_choice("as_", as_, ("polars", "pandas", "arrow"))
    text = pa.string_view() if as_ == "polars" else pa.large_string()
    with _server(where, settings) as server:
        batches = clickhouse_read.blocks(server, clickhouse_read.query_of(query), text, sys.maxsize)
        schema = next(batches)
        if as_ == "polars":
            return _polars(schema, batches)
        if as_ == "pandas":
            return _pandas(batches)
        return pa.Table.from_batches(batches, schema)


def stream(where: Where, query: Table, *, settings: Settings | None = None) -> pa.RecordBatchReader:
    """Return the rows of a query, or of a whole table, as a reader of record batches, in memory that does not grow.

    As `read`, but with a few blocks in memory at a time. A batch has 131,072 rows, or those of one block of the server.
    Until the reader is read to its end or closed, no other code can use its connections.
    """
    batches = _streamed(where, query, settings)
    return pa.RecordBatchReader.from_batches(next(batches), batches)


def _streamed(where: Where, query: Table, settings: Settings | None) -> Iterator[Any]:
    with _server(where, settings) as server:
        wanted = clickhouse_read.query_of(query)
        yield from clickhouse_read.blocks(server, wanted, pa.large_string(), clickhouse_read.BATCH_ROWS)


@contextmanager
def _server(where: Where, settings: Settings | None) -> Iterator[Server]:
    if isinstance(where, Server):
        yield where.with_settings(settings or {})
        return
    with connected(where) as server:
        yield server.with_settings(settings or {})


def _polars(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Any:
    import polars as pl

    for field in schema:
        if pa.types.is_decimal256(field.type):
            batches.close()  # type: ignore[attr-defined]
            raise UnsupportedType(f'column "{field.name}": polars holds at most 38 digits, not {field.type}')
    return pl.DataFrame(pa.Table.from_batches(batches, schema).to_reader())  # from_arrow takes longer


def _pandas(batches: Iterator[pa.RecordBatch]) -> Any:
    return frames.pandas_frame((name, _values(one)) for batch in batches for name, one in frames.columns_of(batch))


def _values(array: pa.Array) -> Any:
    import pandas as pd

    arrow_type = array.type
    if pa.types.is_large_string(arrow_type):
        return frames.pandas_strings(pa.chunked_array([array]))
    if pa.types.is_date32(arrow_type):
        return array.to_numpy(zero_copy_only=False).astype("M8[us]")
    if pa.types.is_temporal(arrow_type):
        return array.to_pandas().array
    of_numpy = pa.types.is_boolean(arrow_type) or pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type)
    if of_numpy and not array.null_count:
        return array.to_numpy(zero_copy_only=False)
    return pd.array(array, dtype=pd.ArrowDtype(arrow_type))
