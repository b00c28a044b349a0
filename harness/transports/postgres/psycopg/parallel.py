"""psycopg 3 over several connections in parallel: https://www.psycopg.org/psycopg3/docs/"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from harness.registry import phase, transport
from harness.transports.postgres.sql import copy_from_stdin
from harness.transports.postgres.tables import LOCK_TIMEOUT, key_columns, psycopg_connections, take_turn

connect = psycopg_connections


def _copy(connection, frame, table):
    """Print a slice of the frame as CSV and send it; every string is quoted, and an empty field is NULL."""
    connection.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    text = frame.write_csv(include_header=False, quote_style="non_numeric").encode()
    with connection.cursor().copy(copy_from_stdin(table, frame.columns, "(FORMAT csv)")) as copy:
        copy.write(text)


def _copy_slices(connections, frame, table):
    """Send one slice over each connection; commit only after all have arrived, otherwise roll back."""
    rows = -(-len(frame) // len(connections))
    slices = [frame.slice(number * rows, rows) for number in range(len(connections))]
    with ExitStack() as transactions:
        for connection in connections:
            transactions.enter_context(connection.transaction())  # exit is in reverse: the turn ends last
        take_turn(connections[0], table)
        with ThreadPoolExecutor(len(connections)) as pool:
            list(pool.map(_copy, connections, slices, [table] * len(connections)))


@transport("COPY FROM STDIN, parallel", "delimited text")
def write_polars_copy_csv_parallel(connections, frame, table):
    """Send slices of the frame as CSV over several connections in parallel.

    One connection per core (2 to 8), each with its own thread and transaction, so the server parses and stores slices
    in parallel. Every string is quoted, and an empty field is NULL. An error in one slice rolls all of them back. The
    transactions commit one after the other once all rows have arrived. In between, another connection can see only some
    slices, and a crash can leave only some. If two slices have the same key, one waits for the other and fails after 10
    seconds (lock_timeout), and no row stays. Parallel writers of one table take turns (an advisory lock), because they
    could wait for each other's keys.
    """
    _copy_slices(connections, frame, table)


@transport("COPY FROM STDIN, parallel", "delimited text, sorted by key")
def write_polars_copy_csv_sorted_parallel(connections, frame, table):
    """Sort the frame by the table's primary key and send its slices as CSV over several connections in parallel.

    Works like write_polars_copy_csv_parallel, but every connection fills its own part of the index. The transport asks
    the server for the key's columns. Without a key the order stays.
    """
    with phase("encode"):
        keys = key_columns(connections[0], table)
        frame = frame.sort([frame[key] for key in keys]) if keys else frame  # the name * would be a pattern
    _copy_slices(connections, frame, table)
