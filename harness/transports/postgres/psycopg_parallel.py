"""psycopg 3 over several connections at once: https://www.psycopg.org/psycopg3/docs/"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from harness.registry import phase, transport

CLIENT = "psycopg"
# A slice that waits for a row of another one would wait for ever: that one commits only when all are done.
LOCK_TIMEOUT = "10s"
# So writers over several connections take turns at a table: an advisory lock of its oid behind a class id, "lab ".
TURN = 0x6C616220 << 32


@contextmanager
def connect(uri):
    """Yield as many connections as this process may use cores, at least 2 and at most 8, in autocommit mode."""
    import psycopg

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ExitStack() as stack:
        yield [stack.enter_context(psycopg.connect(uri, autocommit=True)) for _ in range(min(max(cores, 2), 8))]


def _key_columns(connection, table):
    """Ask the server for the columns of the table's primary key, in its order; none gives an empty list."""
    rows = connection.execute(
        "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (number, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number "
        "WHERE i.indisprimary AND i.indrelid = quote_ident(%s)::regclass ORDER BY k.place",
        [table],
    )
    return [name for (name,) in rows]


def _copy(connection, frame, table):
    """Print a slice of the frame as CSV and send it; every text is quoted, and an empty field is NULL."""
    from psycopg import sql

    columns = sql.SQL(", ").join(map(sql.Identifier, frame.columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(sql.Identifier(table), columns)
    connection.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    text = frame.write_csv(include_header=False, quote_style="non_numeric").encode()
    with connection.cursor().copy(statement) as copy:
        copy.write(text)


def _take_turn(connection, table):
    """Wait until no other parallel writer is at the table; the transaction's end is the end of the turn."""
    connection.execute("SELECT pg_advisory_xact_lock(%s | quote_ident(%s)::regclass::oid::bigint)", [TURN, table])


def _copy_slices(connections, frame, table):
    """Send one slice over each connection; commit them only when all have arrived, else none."""
    rows = -(-len(frame) // len(connections))
    slices = [frame.slice(number * rows, rows) for number in range(len(connections))]
    with ExitStack() as transactions:
        for connection in connections:
            transactions.enter_context(connection.transaction())  # they end in reverse: the first, with its turn, last
        _take_turn(connections[0], table)
        with ThreadPoolExecutor(len(connections)) as pool:
            list(pool.map(_copy, connections, slices, [table] * len(connections)))


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN, parallel",
    payload="delimited text",
    requires=["polars", "psycopg"],
    lossy={"changed": "float32_into_float64", "refused": "far_dates arrays float64_into_int32"},
)
def write_polars_copy_csv(connections, frame, table):
    """Send slices of the frame as CSV over several connections at once.

    As many connections as cores (2 to 8), each with a thread and a transaction of its own: the server parses and stores
    several slices side by side. An error in one slice rolls all of them back. The transactions commit one after the
    other when all rows have arrived: in that moment another connection can see some slices and not yet the others, and
    a crash can leave it so. Where two slices have the same key, one waits for the other and fails after 10 seconds
    (lock_timeout), and no row stays. Two parallel writers of one table take turns (an advisory lock): they could wait
    for each other's keys. No value is lost: every text is quoted, and an empty field is NULL.
    """
    _copy_slices(connections, frame, table)


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN, parallel",
    payload="delimited text, sorted by key",
    requires=["polars", "psycopg"],
    lossy={"changed": "float32_into_float64", "refused": "far_dates arrays float64_into_int32"},
)
def write_polars_copy_csv_sorted(connections, frame, table):
    """Sort the frame by the table's primary key and send its slices as CSV over several connections at once.

    As in the parallel copy of the unsorted frame; here every connection fills its own part of the index. The server is
    asked for the key's columns; without a key the order stays.
    """
    with phase("encode"):
        keys = _key_columns(connections[0], table)
        frame = frame.sort([frame[key] for key in keys]) if keys else frame  # by name * would be a pattern
    _copy_slices(connections, frame, table)
