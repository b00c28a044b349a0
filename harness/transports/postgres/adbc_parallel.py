"""ADBC over several connections at once: https://arrow.apache.org/adbc/current/driver/postgresql.html"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from harness.registry import transport
from harness.transports.postgres.sql import identifier, literal

CLIENT = "adbc"
# A part that waits behind an ALTER or TRUNCATE would wait for ever: that waits for a part that ends with the others.
LOCK_TIMEOUT = "10s"


@contextmanager
def connect(uri):
    """Yield as many connections as this process may use cores, at least 2 and at most 8, in autocommit mode."""
    from adbc_driver_postgresql import dbapi

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ExitStack() as stack:
        yield [stack.enter_context(dbapi.connect(uri, autocommit=True)) for _ in range(min(max(cores, 2), 8))]


def _ask(connection, statement):
    """Execute a query and return its one row."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()


def _do(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _begin(connections, stack):
    """Begin a transaction on every connection, all under the snapshot that the first exports; the stack ends them."""
    for connection in connections:
        _do(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        stack.callback(_do, connection, "ROLLBACK")
        _do(connection, f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    (snapshot,) = _ask(connections[0], "SELECT pg_export_snapshot()")
    for connection in connections[1:]:
        _do(connection, f"SET TRANSACTION SNAPSHOT '{snapshot}'")


def _queries(connection, table, number):
    """Return so many queries for ranges of the table's pages; the last range is open, so that no row is left out."""
    (pages,) = _ask(
        connection,
        f"SELECT pg_relation_size({literal(identifier(table))}::regclass) / current_setting('block_size')::bigint",
    )
    starts = [pages * part // number for part in range(number)]
    ends = [f" AND ctid < '({start},0)'" for start in starts[1:]] + [""]
    return [
        f"SELECT * FROM {identifier(table)} WHERE ctid >= '({start},0)'{end}"
        for start, end in zip(starts, ends, strict=True)
    ]


def _fetch(connection, query):
    """Return the rows of one query as Arrow."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetch_arrow_table()


def _read(connections, table):
    """Return the whole table as Arrow, read in parts over all connections under one snapshot."""
    import pyarrow as pa

    with ExitStack() as stack:
        _begin(connections, stack)
        queries = _queries(connections[0], table, len(connections))
        with ThreadPoolExecutor(len(connections)) as pool:
            return pa.concat_tables(pool.map(_fetch, connections, queries))


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT (FORMAT binary), parallel",
    payload="binary rows",
    requires=["polars", "pyarrow", "adbc_driver_postgresql.dbapi"],
)
def read_polars_ctid_snapshot(connections, table):
    """Read ranges of the table's pages with ADBC over as many connections as cores, all under one exported snapshot.

    2 to 8 connections, each in a thread. One exports its snapshot (pg_export_snapshot) and the others take it: a
    consistent read. ADBC copies in binary and fills Arrow columns. A uuid comes as 16 bytes (polars dtype Binary).
    """
    import polars as pl

    return pl.from_arrow(_read(connections, table))


@transport(
    "read",
    frame="pandas",
    path="COPY TO STDOUT (FORMAT binary), parallel",
    payload="binary rows",
    requires=["pandas", "pyarrow", "adbc_driver_postgresql.dbapi"],
    lossy={"refused": "far_dates"},
)
def read_pandas_ctid_snapshot(connections, table):
    """Read ranges of the table's pages with ADBC over as many connections as cores, all under one exported snapshot.

    As to polars, a consistent read; Arrow hands the columns on to pandas. A uuid comes as a Python object (dtype
    object), a date as datetime64[us], an integer column with nulls as Int64 and the like.
    """
    return _as_pandas(_read(connections, table))


def _as_pandas(table):
    """Turn an Arrow table into a pandas frame that keeps whole numbers beside nulls, and days as datetime64[us]."""
    import pandas as pd
    import pyarrow as pa

    for position, column in enumerate(table.columns):
        if pa.types.is_date(column.type):
            table = table.set_column(position, table.column_names[position], column.cast(pa.timestamp("us")))
    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            dtype = pd.api.types.pandas_dtype(str(column.type).capitalize())  # int32 -> Int32, which has room for NA
            frame[name] = column.to_pandas(types_mapper={column.type: dtype}.get)
    return frame
