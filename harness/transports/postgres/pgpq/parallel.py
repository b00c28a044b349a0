"""pgpq over several connections in parallel: https://github.com/adriangb/pgpq"""

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from harness.registry import phase, transport
from harness.transports.postgres.binary_copy import copy_tables
from harness.transports.postgres.pgpq.client import BLOCK_ROWS
from harness.transports.postgres.tables import LOCK_TIMEOUT, key_columns, psycopg_connections, take_turn, types_of

connect = psycopg_connections


def _copy(connection, blocks, types, table):
    """Send the blocks of one slice, which waits for a lock no longer than LOCK_TIMEOUT."""
    connection.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    copy_tables(connection, table, types, blocks)


def _copy_slices(connections, slices, columns, table):
    """Send one slice over each connection, block by block; commit only after all have arrived, otherwise roll back."""
    types = types_of(connections[0], table, columns)
    with ExitStack() as transactions:
        for connection in connections:
            transactions.enter_context(connection.transaction())  # exit is in reverse: the turn ends last
        take_turn(connections[0], table)
        with ThreadPoolExecutor(len(connections)) as pool:
            number = len(connections)
            list(pool.map(_copy, connections, slices, [types] * number, [table] * number))


def _parts(rows, number):
    """Return for each part the offsets of its blocks and its number of rows; an empty part has one block."""
    bounds = [rows * part // number for part in range(number + 1)]
    return [
        [(start, min(BLOCK_ROWS, end - start)) for start in range(begin, max(end, begin + 1), BLOCK_ROWS)]
        for begin, end in itertools.pairwise(bounds)
    ]


@transport("COPY FROM STDIN (FORMAT binary), parallel", "binary rows, sorted by key")
def write_polars_copy_binary_sorted_parallel(connections, frame, table):
    """Sort the frame by the primary key and send its slices over several connections in parallel, encoded with pgpq.

    One connection per core (2 to 8), each with its own thread and transaction. An error in one slice rolls all of them
    back. The transactions commit one after the other once all rows have arrived. In between, another connection can see
    only some slices, and a crash can leave only some. If two slices have the same key, one waits for the other and
    fails after 10 seconds (lock_timeout), and no row stays. Parallel writers of one table take turns (an advisory
    lock), because they could wait for each other's keys.
    """
    with phase("encode"):
        keys = key_columns(connections[0], table)
        frame = frame.sort([frame[key] for key in keys]) if keys else frame  # the name * would be a pattern
    slices = [(frame.slice(*block).to_arrow() for block in blocks) for blocks in _parts(len(frame), len(connections))]
    _copy_slices(connections, slices, frame.columns, table)


@transport("COPY FROM STDIN (FORMAT binary), parallel", "binary rows, sorted by key")
def write_pandas_copy_binary_sorted_parallel(connections, frame, table):
    """Turn the frame into Arrow, sort it by the primary key and send its slices over several connections in parallel.

    One connection per core (2 to 8). All slices arrive or none. During the commits another connection can see only
    some, as with write_polars_copy_binary_sorted_parallel. NaN in a float column arrives as NULL.
    """
    import pyarrow as pa

    with phase("encode"):
        keys = key_columns(connections[0], table)
        arrow = pa.Table.from_pandas(frame, preserve_index=False)
        places = [(arrow.column_names.index(key), "ascending") for key in keys]  # the name .a would be a path
        arrow = arrow.sort_by(places) if keys else arrow
    slices = [(arrow.slice(*block) for block in blocks) for blocks in _parts(len(arrow), len(connections))]
    _copy_slices(connections, slices, arrow.column_names, table)
