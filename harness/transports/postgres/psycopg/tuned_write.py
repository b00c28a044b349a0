"""Our own best write into Postgres, encoded by `arrow_wire`: an empty table gets its index at the end, another one rows
in the order of the primary key, from every core.

With random keys every row touches another page of the index; in key order, most rows go where the last one went.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from harness.registry import Unsupported, transport
from harness.transports.frames import joined, of_objects, require_names
from harness.transports.parts import batches
from harness.transports.postgres.psycopg.tuned import columns_of, most_together, settle, together
from harness.transports.postgres.tables import LOCK_TIMEOUT, TURN, index_afterwards, number_of_connections

_REQUIRES = ["arrow_wire.postgres_encoder", "numpy", "psycopg", "pyarrow", "pyarrow.compute"]
_WAY: Any = {"path": "COPY in slices", "payload": "binary rows"}
_PIECE_ROWS, _STREAM_ROWS, _PIECE_BYTES = 1 << 20, 1 << 18, 1 << 28  # are put in order together, of several batches
_PAGE_KEYS = 100  # of an index share a page of 8 kB, and more
_SLICE_ROWS = 20_000  # fewer are not worth another connection, or an index made afterwards
_EXACT = {"int2", "int4", "int8", "date", "timestamp", "timestamptz", "uuid"}  # whose values are equal as bytes or not
# The first column of the primary key, or else of a unique index, and whether several connections may write.
_KEY = """
SELECT a.attname, t.relkind = 'r' AND NOT t.relhastriggers AND (i.indexrelid IS NULL) = (a.attname IS NULL)
    AND NOT EXISTS (SELECT FROM pg_index o WHERE o.indrelid = t.oid AND (o.indisunique OR o.indisexclusion)
        AND o.indexrelid IS DISTINCT FROM i.indexrelid)
FROM pg_class t LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indisunique
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
WHERE t.oid = %s::regclass ORDER BY i.indisprimary DESC NULLS LAST LIMIT 1"""


@contextmanager
def connect(uri):
    """Yield a connection for each core, but two to eight, in autocommit mode: transactions are begun by hand."""
    import psycopg

    with ExitStack() as stack:
        # Nothing is prepared: a table may change, and what was prepared would then be refused.
        settings: Any = {"autocommit": True, "client_encoding": "utf8", "prepare_threshold": None}
        opened = (psycopg.connect(uri, **settings) for _ in range(number_of_connections()))
        yield [stack.enter_context(connection) for connection in opened]


def _pieces(arriving, most):
    """Gather record batches, up to so many rows, which are put in order together; yield each piece as one."""
    import pyarrow as pa

    waiting: list[Any] = []
    rows = size = 0
    for batch in arriving:
        if waiting and (rows + batch.num_rows > most or size + batch.nbytes > _PIECE_BYTES):
            piece, waiting = joined(pa.Table.from_batches(waiting)), []
            yield piece
            del piece  # which is not held while the next is gathered
            rows = size = 0
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if waiting:
        piece, waiting = joined(pa.Table.from_batches(waiting)), []
        yield piece


def _slices(encoder, key, rows, number):
    """Return the rows nearly in the order of the key column, if any, and where to cut: not between equal keys."""
    import numpy as np

    cuts = [rows * i // number for i in range(number + 1)]
    if key is None:
        return None, cuts
    keys = _near(encoder.keys(key))
    order = np.argsort(keys, kind="stable")  # of 16 bits: by their digits, in a tenth of the time of 64
    cuts[1:-1] = [int(np.searchsorted(keys, keys[order[cut]], sorter=order)) for cut in cuts[1:-1]]
    return order.view(np.uint64), cuts


def _near(keys):
    """Return keys without their last bits: what is left, 16 bits, orders all but rows that share a page of the index.

    Where it does not, as keys are far from evenly spread, return them as they are.
    """
    import numpy as np

    low = keys.min()
    shift = max(0, (int(keys.max()) - int(low)).bit_length() - 16)
    near = ((keys.view(np.uint64) - low.view(np.uint64)) >> np.uint64(shift)).astype(np.uint16)
    crowded = int(np.bincount(near).max()) > max(_PAGE_KEYS, len(keys) >> 12)
    return keys if crowded and shift else near


def _plan(connection, table, columns, names):
    """Return the types of the columns, the key column's number if it is among them, and whether several may write."""
    connection.execute("SELECT pg_advisory_xact_lock(%s | %s::regclass::oid::bigint)", [TURN, table])
    _, types = columns_of(connection, f"SELECT {columns} FROM {table}")
    name, several = connection.execute(_KEY, [table]).fetchone()
    key = names.index(name) if name in names else None
    return types, key, several and (name is None or (key is not None and types[key].name in _EXACT))


def _write(connections, table, names, batches_of, most=_PIECE_ROWS):
    """Write record batches, which `batches_of` yields when it is given the types of the columns by their names.

    Batches are gathered up to `most` rows; one that is larger by itself stays as it is.
    """
    from psycopg import sql

    table = sql.Identifier(table).as_string()
    require_names(names)
    columns = sql.SQL(", ").join(map(sql.Identifier, names)).as_string()
    first = connections[0]
    settle(first)
    at_once = most_together(first)
    with together(first) as join:
        types, key, several = _plan(first, table, columns, names)
        arriving = batches_of(dict(zip(names, types, strict=True)))
        statement = f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)"
        with ThreadPoolExecutor(len(connections)) as pool, ExitStack() as stack:
            copies: list[Any] = []
            for piece in _pieces(arriving, most):
                encoder, rows = _encoder(names, piece.columns, types), piece.num_rows
                if not copies:
                    if rows >= _SLICE_ROWS and stack.enter_context(index_afterwards(first, table)):
                        key, several = None, False
                    used = connections[: min(at_once, max(1, rows // _SLICE_ROWS)) if several else 1]
                    for connection in used[1:]:
                        join(connection)
                    copies = stack.enter_context(_copies(pool, used, statement))
                order, cuts = _slices(encoder, key, rows, len(copies))
                count = len(copies)
                list(pool.map(_send, copies, [encoder] * count, [order] * count, cuts, cuts[1:]))
                del piece, encoder, order


def _encoder(names, columns, types):
    from arrow_wire import postgres_encoder as postgres

    try:
        return postgres.Encoder(names, columns, types)
    except postgres.Unsupported as error:
        raise Unsupported(str(error)) from None


@contextmanager
def _copies(pool, connections, statement):
    """Begin a COPY on each connection; end all of them side by side, as the server works while it ends one."""
    from arrow_wire import postgres_encoder as postgres

    for connection in connections:
        connection.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    contexts = [connection.cursor().copy(statement) for connection in connections]
    copies = [context.__enter__() for context in contexts]
    try:
        for copy in copies:
            copy.write(postgres.HEADER)
        yield copies
        for copy in copies:
            copy.write(postgres.TRAILER)
    except BaseException as error:
        list(pool.map(_fail, contexts, [error] * len(contexts)))
        raise
    list(pool.map(lambda context: context.__exit__(None, None, None), contexts))


def _fail(context, error):
    """End a COPY because of an error, which is the one to be raised."""
    with suppress(Exception):
        context.__exit__(type(error), error, error.__traceback__)


def _send(copy, encoder, order, row, end):
    """Encode and send some of the rows, a block at a time."""
    for block in encoder.blocks(order, row, end):
        copy.write(block)


def _of_polars(frame, _):
    """Return the frame as Arrow's record batches, whose buffers it shares."""
    import polars as pl
    import pyarrow as pa

    columns = []
    for name, dtype in frame.schema.items():
        column = frame[name]
        if dtype == pl.Object:
            columns.append(_objects(name, column.to_list()))
            continue
        if dtype in (pl.Int128, pl.UInt128):
            column = column.cast(pl.Decimal(38, 0))
        columns.append(column.to_arrow(compat_level=pl.CompatLevel.newest()))
    return pa.table(columns, frame.columns).to_batches()


def _objects(name, values):
    """Return objects as an Arrow array, if they are uuids. Raises Unsupported."""
    import uuid

    import pyarrow as pa

    if all(value is None or isinstance(value, uuid.UUID) for value in values):
        return pa.array(values, pa.uuid())
    raise Unsupported(f'column "{name}": expected values of one type, found objects; make texts of them with str')


def _of_pandas(frame, types):
    """Return the frame as Arrow's record batches. In a column of floats NaN stays NaN."""
    import pyarrow as pa

    columns = []
    for name in frame.columns:
        column = frame[name]
        floats = types[name].name in ("float4", "float8") and column.dtype.kind == "f"
        try:
            columns.append(of_objects(column) if column.dtype == object else pa.array(column, from_pandas=not floats))
        except (OverflowError, TypeError, ValueError) as error:
            raise Unsupported(f'column "{name}": expected values of one type, found {column.dtype}: {error}') from None
    return pa.table(columns, list(frame.columns)).to_batches()


@transport("write", frame="polars", requires=["polars", *_REQUIRES], **_WAY)
def write_polars_tuned(connections, frame, table):
    """Send the rows as binary COPY, encoded by compiled code (`arrow_wire`), over one connection or one for each core.

    All rows are committed or none. From 20,000 rows on an empty table (new, or emptied by TRUNCATE) gets the index of
    its primary key once they are there, all in one transaction: in two thirds to four fifths of the time, with half of
    the work for the server and an index a quarter smaller. That takes the table's owner and a table that nobody uses at
    that moment, with no other index and no foreign keys that refer to it; until the end nobody else can read it (ACCESS
    EXCLUSIVE).

    Any other table gets its rows in the order of the primary key's first column, over a connection for each core: all
    connections but the first prepare their transactions, the first one's commit decides, then the others commit
    (two-phase commit). That takes a server with `max_prepared_transactions` of at least the number of connections less
    one, and costs two more waits for the disk. Elsewhere one connection sends all rows, which takes 1.2 to 1.6 times as
    long on two cores; a staging table and a move of its rows took twice as long again. For some milliseconds in between
    another connection may see a part of the rows. What a crash leaves prepared, named `dataframe-io-lab`, the next
    write ends as the first connection's transaction ended.

    A table with triggers, foreign keys or a second unique index gets one connection: over several, rows could wait for
    one another for ever. So could those of two parallel writers, who therefore take turns at a table: an advisory lock,
    one round trip (50 µs on loopback). A lock of anybody else is waited for 10 seconds (lock_timeout), then no row
    stays. What a column cannot hold is refused with its column and row: so are times of day for a date, decimals with
    more places, an instant for a timestamp without a zone, lists that are no rectangle.
    """
    _write(connections, table, list(frame.columns), lambda types: _of_polars(frame, types))


@transport("write", frame="pandas", requires=["pandas", *_REQUIRES], **_WAY)
def write_pandas_tuned(connections, frame, table):
    """Send the rows as binary COPY, encoded by compiled code (`arrow_wire`), over one connection or one for each core.

    As `write_polars_tuned`. In a column of floats NaN stays NaN: pandas cannot tell it from a missing value.
    """
    _write(connections, table, list(frame.columns), lambda types: _of_pandas(frame, types))


@transport("load", requires=["pyarrow.parquet", *_REQUIRES], **_WAY)
def load_tuned(connections, source, table):
    """Send the record batches of a Parquet file as binary COPY, piece by piece, over one connection or several.

    As `write_polars_tuned`; a piece of 262,144 rows or 256 MB at most is encoded, or put in order, at a time, and no
    more of the file is held.
    """
    from pyarrow import parquet

    _write(connections, table, parquet.read_schema(source).names, lambda _: batches(source), _STREAM_ROWS)
