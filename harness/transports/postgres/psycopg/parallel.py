"""psycopg 3 over several connections at once: https://www.psycopg.org/psycopg3/docs/"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from harness.registry import phase, transport
from harness.transports.postgres.tables import LOCK_TIMEOUT, key_columns, psycopg_connections, take_turn

connect = psycopg_connections


def _copy(connection, frame, table):
    """Print a slice of the frame as CSV and send it; every text is quoted, and an empty field is NULL."""
    from psycopg import sql

    columns = sql.SQL(", ").join(map(sql.Identifier, frame.columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(sql.Identifier(table), columns)
    connection.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    text = frame.write_csv(include_header=False, quote_style="non_numeric").encode()
    with connection.cursor().copy(statement) as copy:
        copy.write(text)


def _copy_slices(connections, frame, table):
    """Send one slice over each connection; commit them only when all have arrived, else none."""
    rows = -(-len(frame) // len(connections))
    slices = [frame.slice(number * rows, rows) for number in range(len(connections))]
    with ExitStack() as transactions:
        for connection in connections:
            transactions.enter_context(connection.transaction())  # they end in reverse: the first, with its turn, last
        take_turn(connections[0], table)
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
def write_polars_copy_csv_parallel(connections, frame, table):
    """Send slices of the frame as CSV over several connections at once.

    As many connections as cores (2 to 8), each with a thread and a transaction of its own: the server parses and stores
    several slices side by side. An error in one slice rolls all of them back. The transactions commit one after the
    other when all rows have arrived: in that moment another connection can see some slices and not yet the others, and
    a crash can leave it so. Where two slices have the same key, one waits for the other and fails after 10 seconds
    (lock_timeout), and no row stays. Two parallel writers of one table take turns (an advisory lock): they could wait
    for each other's keys. Every text is quoted, and an empty field is NULL.
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
def write_polars_copy_csv_sorted_parallel(connections, frame, table):
    """Sort the frame by the table's primary key and send its slices as CSV over several connections at once.

    As in the parallel copy of the unsorted frame; here every connection fills its own part of the index. The server is
    asked for the key's columns; without a key the order stays.
    """
    with phase("encode"):
        keys = key_columns(connections[0], table)
        frame = frame.sort([frame[key] for key in keys]) if keys else frame  # by name * would be a pattern
    _copy_slices(connections, frame, table)
