"""Move frames into and out of Postgres: `write`, `read`, `stream`.

Each takes an address, connections that `connect` opened, or the caller's connection. With an address they open one
connection for few rows, and one for each core (2 to 8) for many. With a `psycopg.Connection` they stay inside the
caller's transaction and open no other.

A table is a string with or without a schema ("orders", "sales.orders"), or a tuple of names as they are. In a string,
put a name that contains a point between double quotes. Errors are those of `arrow_wire.errors`.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from arrow_wire import frames
from arrow_wire.errors import Disconnected, Error, of_psycopg
from arrow_wire.tally import Progress, Tally, Written

try:
    import psycopg
except ImportError:
    raise ImportError("arrow_wire.postgres needs psycopg: pip install 'arrow-wire[postgres]'") from None

from arrow_wire import postgres_read, postgres_write
from arrow_wire.postgres_reader import LARGE, VIEWS, Style
from arrow_wire.postgres_server import Connections, Table, opened, parts_of, quoted, require_utf_8
from arrow_wire.postgres_transactions import settle

__all__ = ["Connections", "connect", "read", "stream", "write"]

Where: TypeAlias = str | Connections | psycopg.Connection[Any]
Mode: TypeAlias = Literal["append", "create", "replace"]
_POLARS = replace(VIEWS, digits=38)  # the most that a decimal of polars has
_PANDAS = replace(LARGE, date=pa.timestamp("us"))  # which has no dtype for days


@contextmanager
def connect(uri: str) -> Iterator[Connections]:
    """Yield connections to a server that several calls can use, one after the other: one for each core, 2 to 8.

    All are opened at once, in autocommit mode: each call is a transaction by itself.
    """
    with _as_ours(), opened(uri) as connections:
        connections[:]
        yield connections


def write(
    where: Where, table: Table, frame: Any, *, mode: Mode = "append", progress: Progress | None = None
) -> Written:
    """Write a frame into a table, all rows or none, and return how many rows, and how many bytes they were on the wire.

    `frame` is one of polars, pandas or pyarrow, or anything with `__arrow_c_stream__`. A reader of record batches is
    read in pieces of at most 262,144 rows or 256 MB. Columns are matched by name; those that only the table has get
    their defaults. `progress` is called with the number of rows so far.

    `mode`:

    - "append" to the existing table
    - "create" it, without a key, from the frame's types
    - "replace" all rows of the existing table (TRUNCATE, in the same transaction), or create it

    From 20,000 rows on, a table that is empty or emptied by TRUNCATE gets its primary key's index after the rows, in
    one transaction. This takes two thirds to four fifths of the time and half of the server's work, and the index is a
    quarter smaller. The session must own the table, and the table must not be in use, have another index, or be the
    target of foreign keys. Until the end no other session can read it (ACCESS EXCLUSIVE).

    Any other table gets its rows in the order of the primary key's first column, over a connection for each core. All
    connections but the first prepare their transactions. The first one's commit decides, then the others commit
    (two-phase commit). This needs a server whose `max_prepared_transactions` is at least the number of connections less
    one, and costs two more waits for the disk. Otherwise one connection sends all rows, which takes 1.2 to 1.6 times as
    long on two cores. For some milliseconds between these commits another connection may see a part of the rows. A
    crash may leave prepared transactions, named `arrow-wire`. A later write ends them as the first connection's
    transaction ended: the next one over new connections, after an error, or of 20,000 rows or more.

    A table with triggers, foreign keys or a second unique index gets one connection, because several could deadlock. So
    could two parallel writers. Writers of more than one row therefore take turns at a table, with an advisory lock. A
    wait for the lock of another session ends after 10 seconds (lock_timeout) with `Conflict`. A caller's connection
    gets neither lock nor timeout: its settings and its transaction are the caller's.

    In a pandas column of floats NaN stays NaN: pandas cannot tell it from a missing value. A value that its column
    cannot hold raises `WrongValue`, with column and row. Examples are a time of day for a date, a decimal with more
    places, and lists that do not form a rectangle. An instant for a timestamp without a zone is another type
    (`UnsupportedType`).
    """
    frames.require_choice("mode", mode, frames.MODES)
    target, tally, most = quoted(table), Tally(progress), postgres_write.PIECE_ROWS
    library = frames.library_of(frame)
    schema: pa.Schema | None = None
    if library == "arrow":
        reader = frames.reader_of(frame)
        names, schema = list(reader.schema.names), reader.schema
        frames.require_names(names)
        if isinstance(frame, pa.RecordBatchReader):
            most = postgres_write.STREAM_ROWS
    else:
        names = frames.names_of(frame)
        if mode != "append":
            schema = _reader(frame, library, lambda _: True).schema

    def batches(types: dict[str, Any]) -> Any:
        if library == "arrow":
            return reader
        return _reader(frame, library, lambda name: types[name].name in ("float4", "float8"))

    with _as_ours():
        if isinstance(where, psycopg.Connection):
            require_utf_8(where)
            postgres_write.write_within(where, target, names, batches, tally, mode, schema, most)
        else:
            rows = len(frame) if library != "arrow" or isinstance(frame, pa.Table) else 0
            with _connections(where) as connections:
                try:
                    early = library == "polars"  # read again if these are not few rows for the server
                    postgres_write.write(connections, target, names, batches, tally, mode, schema, most, rows, early)
                except psycopg.OperationalError as error:
                    if error.sqlstate is None:
                        _settle_anew(connections)
                    raise
    return tally.written


def _reader(frame: Any, library: str, is_float: Any) -> Any:
    if library == "polars":
        import polars as pl

        return frames.of_polars(frame, pl.Decimal(38, 0), frames.uuids)
    return frames.of_pandas(frame, is_float)


def read(where: Where, query: Table, given: Sequence[Any] | None = None, *, as_: str = "arrow") -> Any:
    """Return the rows of a query, or of a whole table, as a frame: `as_` is "polars", "pandas" or "arrow".

    `query` is a table's name, or a SELECT with a `%s` for each value of `given`. Each core reads a slice of a table, a
    range of its blocks. All slices share a snapshot, so the rows are those of one query. `jit` is off, because it costs
    more time than it saves. On a caller's connection, the caller's transaction decides which rows are visible.

    A uuid becomes a string, and an interval a duration with days of 24 hours. Types that Arrow lacks become the
    server's strings: JSON, network addresses, enums. So does a numeric without a limit, or with more digits than the
    frame's library has. Some values fit no frame and raise `WrongValue` with column and row: an infinite date or time,
    a numeric NaN, an interval with months, 24:00. A query with arrays is sent twice: the first time for the number of
    their dimensions. Their lower bounds are lost.

    In polars strings are views. In pandas only strings (dtype str) stay in Arrow's memory. A date becomes
    datetime64[us], and integers with nulls get the nullable dtypes of pandas.
    """
    styles = {"polars": _POLARS, "pandas": _PANDAS, "arrow": LARGE}
    frames.require_choice("as_", as_, styles)
    with _as_ours():
        if isinstance(where, psycopg.Connection):
            require_utf_8(where)
            table = postgres_read.read_within(where, _source(where, query, given), styles[as_])
        else:
            with _connections(where) as connections:
                table = postgres_read.read(connections, _source(connections, query, given), styles[as_])
    if as_ == "polars":
        import polars as pl

        return pl.DataFrame(table.to_reader())  # without a copy; from_arrow takes longer than a thousand rows
    return _of_pandas(table) if as_ == "pandas" else table


def _of_pandas(table: pa.Table) -> Any:
    return frames.pandas_frame(
        (name, _values(one)) for name, one in zip(table.column_names, table.columns, strict=True)
    )


def _values(column: pa.ChunkedArray) -> Any:
    import pandas as pd

    arrow_type = column.type
    if pa.types.is_large_string(arrow_type):
        return frames.pandas_strings(column)
    if pa.types.is_floating(arrow_type) or (pa.types.is_integer(arrow_type) and not column.null_count):
        return column.to_numpy()
    dtypes = {"bool": pd.BooleanDtype, "int16": pd.Int16Dtype, "int32": pd.Int32Dtype, "int64": pd.Int64Dtype}
    nullable = dtypes.get(str(arrow_type)) if column.null_count else None
    return column.to_pandas(types_mapper=nullable and (lambda _: nullable())).array


def stream(where: Where, query: Table, given: Sequence[Any] | None = None) -> pa.RecordBatchReader:
    """Return the rows of a query, or of a whole table, as a reader of record batches, in memory that does not grow.

    As `read`, but with a few batches in memory at a time. A batch has at most 65,536 rows or about 16 MB. Rows that
    come over several connections are in no order. Until the reader is read to its end or closed, no other code can use
    its connections.
    """
    batches = _streamed(where, query, given, LARGE)
    return pa.RecordBatchReader.from_batches(next(batches), batches)


def _streamed(where: Where, query: Table, given: Sequence[Any] | None, style: Style) -> Iterator[Any]:
    with _as_ours():
        if isinstance(where, psycopg.Connection):
            require_utf_8(where)
            yield from postgres_read.stream_within(where, _source(where, query, given), style)
        else:
            with _connections(where) as connections:
                yield from postgres_read.stream(connections, _source(connections, query, given), style)


def _source(where: Connections | psycopg.Connection[Any], query: Table, given: Sequence[Any] | None) -> Any:
    if isinstance(query, tuple) or parts_of(query):
        return postgres_read.Source(f"SELECT * FROM {quoted(query)}", quoted(query))
    text = query.strip().rstrip(";")
    if given is not None:
        connection = where[0] if isinstance(where, Connections) else where
        text = psycopg.ClientCursor(connection).mogrify(text.encode(), given)
    return postgres_read.Source(text)


def _connections(where: str | Connections) -> AbstractContextManager[Connections]:
    return opened(where) if isinstance(where, str) else nullcontext(where)


def _settle_anew(connections: Connections) -> None:
    """End prepared transactions over a new connection after one broke, if the server can be reached."""
    with suppress(psycopg.Error), opened(connections.uri) as again:
        for seconds in (0.0, 0.1, 0.5):  # until the server has noticed the broken connection
            time.sleep(seconds)
            settle(again[0])


class _as_ours:
    """Raise errors of psycopg and of sockets as errors of arrow-wire, too."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, error_type: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, ConnectionError) and not isinstance(error, Error):
            raise Disconnected(f"the connection to Postgres broke: {type(error).__name__}: {error}") from error
        if isinstance(error, psycopg.Error) and (raised := of_psycopg(error)) is not error:
            raise raised from error
