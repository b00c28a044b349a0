"""Rows into Postgres by binary COPY. An empty table gets its index at the end. Any other table gets its rows in the
order of its key, from every core.

With random keys every row touches another page of the index; in key order, most rows go where the last one went.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from psycopg import Connection, Copy, Error, errors, generators
from psycopg.abc import PQGen
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from arrow_wire.frames import joined
from arrow_wire.postgres_create import create, empty
from arrow_wire.postgres_encoder import HEADER, TRAILER, Encoder
from arrow_wire.postgres_server import (
    LOCK_TIMEOUT,
    TURN,
    Connections,
    answers,
    ask,
    columns_of,
    index_afterwards,
    listed,
    literal,
    types_of,
)
from arrow_wire.postgres_transactions import PREFIX, most_together, settle, together, within
from arrow_wire.postgres_types import ServerType
from arrow_wire.tally import Tally

# Given the types of the columns by their names: a NaN stays one only in floats, where pandas has it, too.
Batches: TypeAlias = Callable[[dict[str, ServerType]], Iterable[pa.RecordBatch]]
PIECE_ROWS, STREAM_ROWS, PIECE_BYTES = 1 << 20, 1 << 18, 1 << 28  # of several batches, which are sorted together
PAGE_KEYS = 100  # at least so many keys share a page of 8 kB of an index
SLICE_ROWS = 20_000  # fewer are not worth another connection, or an index that is built afterwards
_ORDERED_ROWS = 2_000  # with fewer the order makes no difference
_SENT_BYTES = 1 << 17  # libpq takes this much at a time
_STEP_ROWS = 1 << 16  # after which `progress` is called
_EXACT = {"int2", "int4", "int8", "date", "timestamp", "timestamptz", "uuid"}  # whose values are equal as bytes or not
# The first column of the primary key, or else of a unique index, and whether several connections may write.
_KEY = """
SELECT a.attname, t.relkind = 'r' AND NOT t.relhastriggers AND (i.indexrelid IS NULL) = (a.attname IS NULL)
    AND NOT EXISTS (SELECT FROM pg_index o WHERE o.indrelid = t.oid AND (o.indisunique OR o.indisexclusion)
        AND o.indexrelid IS DISTINCT FROM i.indexrelid)
FROM pg_class t LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indisunique
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
WHERE t.oid = %s::regclass ORDER BY i.indisprimary DESC NULLS LAST LIMIT 1"""


def write(
    connections: Connections, table: str, names: list[str], batches_of: Batches, tally: Tally, mode: str = "append",
    schema: pa.Schema | None = None, most: int = PIECE_ROWS, rows: int = 0, early: bool = False,
) -> None:  # fmt: skip
    """Write the record batches that `batches_of` yields, given the types of the columns by their names. Batches are
    gathered up to `most` rows; a larger batch stays as it is. `rows` is their number, or 0 if it is unknown. `early`
    batches do not depend on the types.
    """
    first, target = connections[0], _Target(table, names, mode, schema)
    settled, connections.settled = connections.settled, False
    few = mode == "append" and 0 < rows < SLICE_ROWS
    if few and _write_few(first, target, batches_of, tally, rows, settled, early):
        connections.settled = True
        return
    settle(first)
    at_once = most_together(first) if mode == "append" else 1
    with together(first) as join:
        _write(first, connections, at_once, join, target, batches_of, tally, most)
    connections.settled = True


def write_within(
    connection: Connection[Any], table: str, names: list[str], batches_of: Batches, tally: Tally, mode: str = "append",
    schema: pa.Schema | None = None, most: int = PIECE_ROWS,
) -> None:  # fmt: skip
    """As `write`, over the caller's connection and in its transaction alone."""
    with within(connection):
        _write(connection, [connection], 1, None, _Target(table, names, mode, schema), batches_of, tally, most)


class _Target:
    """The table, its name and the names of its columns in SQL, and the mode for an existing table."""

    def __init__(self, table: str, names: list[str], mode: str, schema: pa.Schema | None) -> None:
        self.table, self.names, self.mode, self.schema = table, names, mode, schema
        self.columns = listed(tuple(names))
        self.statement = f"COPY {table} ({self.columns}) FROM STDIN (FORMAT binary)"

    def prepare(self, connection: Connection[Any]) -> None:
        """Make the table, or empty it, as the mode says."""
        if self.mode == "replace" and empty(connection, self.table):
            return
        if self.mode != "append":
            assert self.schema is not None
            create(connection, self.table, self.schema)


def _write(
    first: Connection[Any], connections: Sequence[Connection[Any]], at_once: int,
    join: Callable[[Connection[Any]], None] | None, target: _Target, batches_of: Batches, tally: Tally, most: int,
) -> None:  # fmt: skip
    names = target.names
    target.prepare(first)
    if join:
        ask(first, "SELECT pg_advisory_xact_lock(%s | %s::regclass::oid::bigint)", [TURN, target.table])
    types, key, several = _plan(first, target.table, target.columns, names)
    arriving = batches_of(dict(zip(names, types, strict=True)))
    with ThreadPoolExecutor(len(connections)) as pool, ExitStack() as stack:
        copies: list[Any] = []
        for piece in _pieces(arriving, most):
            encoder, rows = Encoder(names, piece.columns, types), piece.num_rows
            if not copies:
                if join and rows >= SLICE_ROWS and stack.enter_context(index_afterwards(first, target.table)):
                    key, several = None, False
                used = connections[: min(at_once, max(1, rows // SLICE_ROWS)) if several else 1]
                for connection in used[1:]:
                    assert join is not None
                    join(connection)
                for connection in used if join else []:
                    ask(connection, "SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
                copies = stack.enter_context(_copies(pool, used, target.statement))
            order, cuts = _slices(encoder, key, rows, len(copies))
            count = len(copies)
            list(pool.map(_send, copies, [encoder] * count, [order] * count, cuts, cuts[1:], [tally] * count))
            del piece, encoder, order


def _write_few(
    connection: Connection[Any], target: _Target, batches_of: Batches, tally: Tally, rows: int, settled: bool,
    early: bool,
) -> bool:  # fmt: skip
    """Write rows in two round trips: first all queries and a COPY, as one transaction, then the rows. Return False,
    with nothing written, if more queries are needed: about prepared transactions of a writer (asked for unless
    `settled`), or types that not every server has. The first `early` batches are made while the server answers.
    """
    pgconn = connection.pgconn
    pieces: Iterator[pa.Table | pa.RecordBatch] = iter(())

    def convert(types: dict[str, ServerType]) -> None:
        nonlocal pieces
        pieces = _pieces(batches_of(types), PIECE_ROWS)
        pieces = chain(list(islice(pieces, 1)), pieces)

    with connection.lock:
        message = _message(target.table, target.columns, target.statement, rows > 1, settled, rows >= _ORDERED_ROWS)
        asked = 3 if rows >= _ORDERED_ROWS else 2  # statements from the one for types on
        try:
            results = answers(connection, message, partial(convert, {}) if early else lambda: None)
            types = types_of(results[-asked])
            if types is None or (not settled and results[-1 - asked].ntuples):
                _give_up(connection)
                return False
            key = _key_of(results[-2], target.names) if rows >= _ORDERED_ROWS else None
            waiting = bytearray(HEADER)
            if not early:
                convert(dict(zip(target.names, types, strict=True)))
            for piece in pieces:
                encoder = Encoder(target.names, piece.columns, types)
                order, _ = _slices(encoder, key, piece.num_rows, 1)
                size = 0
                for block in encoder.blocks(order, 0, piece.num_rows):
                    size += len(block)
                    waiting += block
                    while len(waiting) > _SENT_BYTES:
                        connection.wait(generators.copy_to(pgconn, waiting[:_SENT_BYTES]))
                        del waiting[:_SENT_BYTES]
                tally.add(piece.num_rows, size)
        except BaseException:
            _give_up(connection)
            raise
        connection.wait(_ended(pgconn, waiting + TRAILER))
    return True


@lru_cache(256)
def _message(table: str, columns: str, statement: str, turn: bool, settled: bool, ordered: bool) -> bytes:
    """Return all queries before few rows, also for the key of the table if they are `ordered`, and a COPY.

    A single row needs no `turn`: while it waits for another row, no session can wait for it.
    """
    name = literal(table)
    message = [
        *([f"SELECT pg_advisory_xact_lock({TURN} | {name}::regclass::oid::bigint)"] if turn else []),
        f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'",
        *([] if settled else [f"SELECT FROM pg_prepared_xact() WHERE gid ~ '^{PREFIX} '"]),
        f"SELECT {columns} FROM {table} LIMIT 0",
        *([_KEY.replace("%s", name)] if ordered else []),
        statement,
    ]
    return "; ".join(message).encode()


def _ended(pgconn: PGconn, data: bytes | bytearray) -> PQGen[None]:
    """Send the last bytes of a COPY and end it, in one wait."""
    yield from generators.copy_to(pgconn, data, False)
    if pgconn.put_copy_end():
        result = (yield from generators.execute(pgconn))[-1]
        if result.status != ExecStatus.COMMAND_OK:
            raise errors.error_from_result(result)
    else:  # the connection takes no more at present
        yield from generators.copy_end(pgconn, None)


def _give_up(connection: Connection[Any]) -> None:
    """End a COPY so that nothing of it is written."""
    with suppress(Error):  # which says that the client ended the COPY
        connection.wait(generators.copy_end(connection.pgconn, b"given up"))


def _key_of(result: PGresult, names: list[str]) -> int | None:
    name = (result.get_value(0, 0) or b"").decode() if result.ntuples else ""
    return names.index(name) if name in names else None


def _pieces(arriving: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.Table | pa.RecordBatch]:
    """Gather record batches up to a number of rows, which are sorted together; yield each piece as one batch.
    Skip batches without rows.
    """
    waiting: list[Any] = []
    rows = size = 0
    for batch in (batch for batch in arriving if batch.num_rows):
        if waiting:
            size += waiting[-1].nbytes
            if rows + batch.num_rows > most or size + batch.nbytes > PIECE_BYTES:
                yield _piece(waiting)
                rows = size = 0
        waiting.append(batch)
        rows += batch.num_rows
    if waiting:
        yield _piece(waiting)


def _piece(waiting: list[Any]) -> Any:
    """Return record batches as one, and release them."""
    batches = waiting.copy()
    waiting.clear()
    return joined(pa.Table.from_batches(batches)) if len(batches) > 1 else batches.pop()


def _slices(encoder: Encoder, key: int | None, rows: int, number: int) -> tuple[Any, list[int]]:
    """Return the rows nearly in the order of the key column, if any, and where to cut: not between equal keys."""
    cuts = [rows * i // number for i in range(number + 1)]
    if key is None:
        return None, cuts
    keys = _near(encoder.keys(key))
    order = np.argsort(keys, kind="stable")  # 16 bits are sorted by their digits, in a tenth of the time of 64
    cuts[1:-1] = [int(np.searchsorted(keys, keys[order[cut]], sorter=order)) for cut in cuts[1:-1]]
    return order.view(np.uint64), cuts


def _near(keys: Any) -> Any:
    """Return keys without their last bits: the 16 bits left order all but rows that share a page of the index.

    If the keys are too unevenly spread for that, return them as they are.
    """
    low = keys.min()
    shift = max(0, (int(keys.max()) - int(low)).bit_length() - 16)
    near = ((keys.view(np.uint64) - low.view(np.uint64)) >> np.uint64(shift)).astype(np.uint16)
    crowded = int(np.bincount(near).max()) > max(PAGE_KEYS, len(keys) >> 12)
    return keys if crowded and shift else near


def _plan(
    connection: Connection[Any], table: str, columns: str, names: list[str]
) -> tuple[list[ServerType], int | None, bool]:
    """Return the types of the columns, the number of the key column or None, and whether several may write."""
    _, types = columns_of(connection, f"SELECT {columns} FROM {table}")
    name, several = ask(connection, _KEY, [table])[0]
    key = names.index(name) if name in names else None
    return types, key, several and (name is None or (key is not None and types[key].name in _EXACT))


@contextmanager
def _copies(pool: ThreadPoolExecutor, connections: Sequence[Connection[Any]], statement: str) -> Iterator[list[Copy]]:
    """Begin a COPY on each connection; end all of them at the same time, because the server works at each end."""
    contexts = [connection.cursor().copy(statement.encode()) for connection in connections]
    copies = [context.__enter__() for context in contexts]
    try:
        for copy in copies:
            copy.write(HEADER)
        yield copies
        for copy in copies:
            copy.write(TRAILER)
    except BaseException as error:
        list(pool.map(_fail, contexts, [error] * len(contexts)))
        raise
    list(pool.map(lambda context: context.__exit__(None, None, None), contexts))


def _fail(context: Any, error: BaseException) -> None:
    """End a COPY because of an error, which the caller raises."""
    with suppress(Exception):
        context.__exit__(type(error), error, error.__traceback__)


def _send(copy: Copy, encoder: Encoder, order: Any, row: int, end: int, tally: Tally) -> None:
    """Encode and send some of the rows, a block at a time."""
    step = _STEP_ROWS if tally.progress else max(1, end - row)
    for low in range(row, end, step):
        size, high = 0, min(low + step, end)
        for block in encoder.blocks(order, low, high):
            copy.write(block)
            size += len(block)
        tally.add(high - low, size)
