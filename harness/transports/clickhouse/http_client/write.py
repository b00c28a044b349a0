"""Our own transports into ClickHouse: https://clickhouse.com/docs/interfaces/formats/Native"""

import json
import os
import re
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice, pairwise

from harness.registry import Unsupported, transport
from harness.transports.clickhouse.http_client.client import (
    FOR_PANDAS,
    FOR_POLARS,
    PAYLOAD,
    connected,
    described,
    send,
)
from harness.transports.clickhouse.sql import identifier, identifiers, literal
from harness.transports.frames import joined, of_objects, require_names
from harness.transports.parts import batches

# Blocks become parts as they come. By default the server first joins them to a million rows, and splits those again.
PINNED = {"async_insert": "0", "min_insert_block_size_rows": "0", "min_insert_block_size_bytes": "0"}
# Rows of one partition become one part, which is there or not. A block with rows of several is refused by this.
ONE_PARTITION = {"max_partitions_per_insert_block": "1", "throw_on_max_partitions_per_insert_block": "1"}
PATH = "HTTP INSERT FORMAT Native"
SLICE_ROWS = 1_048_449  # cut into blocks at a time; the server's own default, so that it gets no more parts than usual
STREAM_ROWS = 262_144  # of a file: more parts, less memory
ONE_BLOCK_ROWS = 150_000  # more arrive as soon by way of a table of their own: docs/native.md
SLICE_BYTES = 1 << 28  # of a slice at most, where rows are wide
COMPACT_BYTES = 1 << 26  # of a part that is written as a few files, in place of two a column: docs/native.md
MOST_GROUPS = 100  # blocks in a slice: more than so many partitions in one INSERT block are refused by default
KNOWN_KEY = r"(?:(toYYYYMM|toYear|toDate)\()?`?(\w+)`?\)?"


@contextmanager
def connect(uri):
    """Yield an open connection for each core (2 to 8)."""
    with connected(uri, min(max(os.cpu_count() or 2, 2), 8)) as connection:
        yield connection


def _ask(connection, query, number=0):
    clients, user, parameters = connection
    return send(clients[number], user, parameters, query).read().decode()


def _columns(batch, types):
    """Return an Arrow table as columns of these types, by name. Raises Unsupported for one that has no way into its."""
    from arrow_wire import clickhouse_native as clickhouse

    named = zip(batch.schema.names, batch.columns, strict=True)
    try:
        return clickhouse.Columns([(name, array, types[name]) for name, array in named])
    except TypeError as error:
        raise Unsupported(str(error)) from None


class _Blocks:
    """Hands out the blocks of slices to several threads, one after the other, until one of them fails."""

    def __init__(self, slices, types, partition_key, parts):
        self._lock, self.failure = threading.Lock(), None
        self._blocks = self._all(slices, types, partition_key, parts)

    def next(self):
        """Return columns and the rows of a block, or None at the end."""
        with self._lock:
            if self.failure:
                raise RuntimeError("broken off, because another connection failed")
            return next(self._blocks, None)

    def _all(self, slices, types, partition_key, parts):
        for batch in slices:
            columns = _columns(batch, types)
            for rows in _blocks_of(batch, partition_key, parts):
                yield columns, rows


def _chunks(blocks, first):
    """Yield blocks as chunks of a request's body: each is encoded into the same memory when the one before is sent."""
    from arrow_wire import clickhouse_native as clickhouse

    block, room = first, clickhouse.Room()
    while block is not None:
        columns, rows = block
        data = columns.block(room, rows)
        yield b"%x\r\n" % len(data)
        yield data
        yield b"\r\n"
        block = blocks.next()
    yield b"0\r\n\r\n"


def _insertion(parameters, table, names):
    """Return the parameters and the query of an INSERT.

    The token is its own: a server that drops blocks it had before, as tables can ask it to, is to take this one.
    """
    query = f"INSERT INTO {identifier(table)} ({identifiers(names)}) FORMAT Native"
    return parameters | PINNED | {"insert_deduplication_token": uuid.uuid4().hex}, query


def _insert(connection, table, names, blocks):
    """Insert blocks over all connections, each with an INSERT of its own; a failure breaks all of them off."""
    clients, user, parameters = connection

    def insert(client):
        try:
            if (first := blocks.next()) is not None:
                settings, query = _insertion(parameters, table, names)
                send(client, user, settings, query, _chunks(blocks, first)).read()
        except BaseException as error:
            blocks.failure = blocks.failure or error
            client.close()

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(insert, clients))
    if blocks.failure:
        raise blocks.failure


def _insert_block(connection, table, names, batch, types):
    """Insert rows of one partition as one block, which the server takes as a whole or not at all.

    All of it is made before any of it is sent, and the request says how long it is: of a part nothing can be read.
    """
    from arrow_wire import clickhouse_native as clickhouse

    clients, user, parameters = connection
    settings, query = _insertion(parameters, table, names)
    data = _columns(batch, types).block(clickhouse.Room(), range(len(batch)))
    try:
        send(clients[0], user, settings | ONE_PARTITION, query, data).read()
    except BaseException:
        clients[0].close()
        raise


def write_stream(connection, reader, table, most=None):
    """Insert all rows of a record batch reader, of which `most` (a million) are gathered at a time: all or none.

    Raises Unsupported for a column that the table does not have, or of a type that has no way into it, ValueError for a
    value that its column does not hold; column and row are named.
    """
    names = list(reader.schema.names)
    require_names(names)
    types, (engine, storage, partition_key, views) = _asked(connection, table)
    for name in names:
        if name not in types:
            raise Unsupported(
                f'column "{name}": expected a column of the table, found none of this name; rename or drop it'
            )
    sql_types = {name: types[name] for name in names}
    slices = _slices(reader, most or SLICE_ROWS)
    held = list(islice(slices, 1))
    if held and _goes_as_one_block(held[0], engine, partition_key, views, sql_types):
        held += islice(slices, 1)  # there is one where rows are wide
        if len(held) == 1:
            _insert_block(connection, table, names, held[0], sql_types)
            return
    if held:
        with _staged(connection, table, names, engine, storage, views) as staging:
            blocks = _Blocks(_with(held, slices), sql_types, partition_key, len(connection[0]))
            _insert(connection, staging, names, blocks)


def _with(held, slices):
    """Yield what is held, which is let go of, and then the slices."""
    while held:
        yield held.pop(0)
    yield from slices


def _asked(connection, table):
    """Return the types of the table's columns by name, and what `_target` does; both are asked for at once."""
    clients, user, parameters = connection
    with ThreadPoolExecutor(1) as pool:
        target = pool.submit(_target, connection, table)
        columns = described(clients[0], user, parameters, f"TABLE {identifier(table)}")
        return {name: sql_type for name, sql_type, _ in columns}, target.result()


def _target(connection, table):
    """Return the table's engine, alone and with its clauses, the partition key and how many views it feeds."""
    what = "engine, engine_full, partition_key, length(dependencies_table)"
    where = f"database = currentDatabase() AND name = {literal(table)}"
    answer = _ask(connection, f"SELECT {what} FROM system.tables WHERE {where} FORMAT JSONCompact", 1)
    engine, storage, partition_key, views = json.loads(answer)["data"][0]
    return engine, storage, partition_key, int(views)


def _goes_as_one_block(batch, engine, partition_key, views, types):
    """Whether the server surely takes these rows as a whole or not at all when they come as one block.

    A table of the MergeTree family does so with those of one partition; views get theirs afterwards:
    https://clickhouse.com/docs/concepts/features/operations/insert/transactions
    """
    if not engine.endswith("MergeTree") or views or len(batch) > ONE_BLOCK_ROWS:
        return False
    if not partition_key or len(batch) == 1:
        return True
    found = re.fullmatch(KNOWN_KEY, partition_key)
    if not found or types.get(found[2]) not in ("Date", "Date32") or getattr(batch[found[2]].type, "tz", None):
        return False  # of an instant its zone decides, or the server's
    groups = _partitions(batch, partition_key, 1)
    return groups is not None and not groups.any()


def _staging_engine(engine, storage):
    """Return the ENGINE clause of a table like another; an empty one leaves it to AS.

    Its parts are compact up to a larger size, unless the other says itself what its parts are to be like. Of a
    replicated table the clause has the place in its keeper, which AS makes a new one of.
    """
    if not engine.endswith("MergeTree"):
        return " ENGINE = Memory"
    if engine.startswith(("Replicated", "Shared")) or "_for_wide_part" in storage or " SETTINGS " not in storage:
        return ""
    return f" ENGINE = {storage}, min_bytes_for_wide_part = {COMPACT_BYTES}"


@contextmanager
def _staged(connection, table, names, engine, storage, views):
    """Yield an empty table like another; what is in it then goes into the other at once.

    The parts of a table of the MergeTree family are linked into it, which costs no copy; into any other, or one that
    feeds materialized views, the rows go by one INSERT SELECT.
    """
    staging = f"{table}_staging_{uuid.uuid4().hex}"
    like = f"{identifier(table)}{_staging_engine(engine, storage)}"
    _ask(connection, f"CREATE TABLE {identifier(staging)} AS {like}")
    try:
        yield staging
        if engine.endswith("MergeTree") and not views:
            _ask(connection, f"ALTER TABLE {identifier(table)} ATTACH PARTITION ALL FROM {identifier(staging)}")
        else:
            columns = identifiers(names)
            select = f"SELECT {columns} FROM {identifier(staging)}"
            _ask(connection, f"INSERT INTO {identifier(table)} ({columns}) {select}")
    except BaseException:
        with suppress(RuntimeError, OSError):  # what failed before says more
            _ask(connection, f"DROP TABLE {identifier(staging)} SYNC")
        raise
    _ask(connection, f"DROP TABLE {identifier(staging)} SYNC")


def _slices(reader, most):
    """Yield the rows of a record batch reader as tables of so many rows, or fewer where they are wide."""
    import pyarrow as pa

    held, rows, size, counted, at_most = [], 0, 0, 0, 0
    for batch in reader:
        while len(batch):
            piece = batch.slice(0, most - rows)
            batch = batch.slice(len(piece))
            held.append(piece)
            rows, at_most = rows + len(piece), at_most + piece.get_total_buffer_size()
            if at_most >= SLICE_BYTES:  # or not, where buffers are shared: to count takes time
                size, counted = size + sum(map(_size, held[counted:])), len(held)
                at_most = size
            if rows == most or at_most >= SLICE_BYTES:
                yield joined(pa.Table.from_batches(held))
                held, rows, size, counted, at_most = [], 0, 0, 0, 0
    if held:
        yield joined(pa.Table.from_batches(held))


def _size(batch):
    """Return about how many bytes the rows of a record batch are, though views refer to all texts of the frame."""
    import numpy as np
    import pyarrow as pa

    total = 0
    for column in batch.columns:
        if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):  # each begins with its length
            views = np.frombuffer(column.buffers()[1], np.uint32)[4 * column.offset :: 4][: len(column)]
            total += 16 * len(column) + int(views.sum(dtype=np.int64))
        else:
            total += column.nbytes
    return total


def _blocks_of(batch, partition_key, parts):
    """Return the rows of each block: of one partition each, or equal parts that stand together."""
    import numpy as np

    groups = _partitions(batch, partition_key, parts)
    if groups is None:
        cuts = [len(batch) * number // parts for number in range(parts + 1)]
        return [range(low, high) for low, high in pairwise(cuts) if low < high]
    order = np.argsort(groups, kind="stable").view(np.uint64)
    ends = np.cumsum(np.bincount(groups))
    return [rows for rows in np.split(order, ends[:-1]) if len(rows)]


def _partitions(batch, partition_key, parts):
    """Return a number for every row, of its partition; None where these are too many, too few or not known.

    This is about speed alone, the server splits and sorts what it gets. The keys known here are a date, its month and
    its year.
    """
    import numpy as np
    import pyarrow as pa

    found = re.fullmatch(KNOWN_KEY, partition_key)
    if not found or found[2] not in batch.schema.names:
        return None
    column = batch[found[2]]
    dated = pa.types.is_date(column.type) or (pa.types.is_timestamp(column.type) and found[1])
    if not dated or column.null_count or not len(column):
        return None
    days = column.chunk(0).cast(pa.date32(), safe=False)
    days = np.frombuffer(days.buffers()[1], np.int32)[days.offset :][: len(days)]  # to_numpy imports pandas
    unit, first, last = {"toYYYYMM": "M", "toYear": "Y"}.get(found[1], "D"), int(days.min()), int(days.max())
    if last - first > 366 * MOST_GROUPS:
        return None
    numbers = np.arange(first, last + 1).astype("M8[D]").astype(f"M8[{unit}]").astype(np.int64)
    if not parts <= numbers[-1] - numbers[0] + 1 <= MOST_GROUPS:
        return None
    return (numbers - numbers[0]).astype(np.uint8)[days - first]


def _table_of_polars(frame):
    """Return a polars frame as an Arrow table that shares its memory, but for objects and numbers of 128 bits."""
    import polars as pl
    import pyarrow as pa

    wide = pl.col(pl.Int128, pl.UInt128)  # for which Arrow has no type
    objects = {
        column.name: _of_objects(column.name, column.to_list(), pa.array)
        for column in frame
        if column.dtype == pl.Object
    }
    plain = frame.drop(list(objects)).with_columns(wide.cast(pl.String))
    table = plain.to_arrow(compat_level=pl.CompatLevel.newest())
    return pa.table({name: objects[name] if name in objects else table[name] for name in frame.columns})


def _table_of_pandas(frame):
    """Return a pandas frame as an Arrow table, which shares the memory of numpy's and Arrow's columns.

    A NaN among floats stays one; in a column of objects it is a null, as None is.
    """
    import pyarrow as pa

    return pa.table({name: _of_series(name, values) for name, values in frame.items()})


def _of_series(name, values):
    import pyarrow as pa

    if values.dtype == object:
        return _of_objects(name, values, of_objects)
    return pa.array(values.to_numpy() if values.dtype in ("float64", "float32", "float16") else values)


def _of_objects(name, values, array_of):
    import pyarrow as pa

    try:
        return array_of(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise Unsupported(f'column "{name}": expected objects of one type, found: {error}; cast them first') from None


@transport(
    "write",
    frame="polars",
    path=PATH,
    payload=PAYLOAD,
    requires=FOR_POLARS,
    settings=PINNED,
)
def write_polars_tuned(connection, frame, table):
    """Send Native blocks of one partition each over several HTTP connections, made by compiled code meanwhile.

    Values cross the wire as the server keeps them; nothing is compressed. The server is asked for column types and the
    partition key. A value that its column cannot hold is refused, with its row. All or nothing: the rows go into a
    table of their own, whose parts are then linked into the other at once (ATTACH PARTITION ALL FROM), for readers too;
    that costs three statements and the links of the parts' files, about a tenth of the time of a million rows, and
    needs the right to create a table. If this process dies before, that table is left, `<table>_staging_...`. Parts of
    up to 64 MB become compact ones, of a few files, where by default those of 10 MB have two a column: written in less
    time, they are the same bytes, but a query of one column takes up to a fifth longer until the server merges them.
    A table with settings of its own for this keeps them.

    Up to 150,000 rows of one partition go without it, as one block over one connection. A table of the MergeTree family
    takes such a block as a whole or not at all; one that feeds materialized views is left out, and one whose partition
    key is neither a date, its month nor its year, but for single rows. Should there be several partitions all the same,
    the server refuses the block. Where a connection breaks before the answer all rows are there or none is, as after
    the link.
    """
    require_names(frame.columns)
    write_stream(connection, _table_of_polars(frame).to_reader(), table)


@transport(
    "write",
    frame="pandas",
    path=PATH,
    payload=PAYLOAD,
    requires=FOR_PANDAS,
    settings=PINNED,
)
def write_pandas_tuned(connection, frame, table):
    """Take over the columns of the frame as Arrow, then do as write_polars_tuned.

    A NaN in a column of floats stays a NaN, in one of objects it is a null. Timestamps at midnight become days where
    the column has days.
    """
    require_names(list(frame.columns))
    write_stream(connection, _table_of_pandas(frame).to_reader(), table)


@transport(
    "load",
    path=PATH,
    payload=PAYLOAD,
    requires=["arrow_wire", "numpy", "pyarrow.parquet"],
    settings=PINNED,
)
def load_tuned(connection, source, table):
    """Send the record batches of a Parquet file as write_polars_tuned sends a frame, all or nothing.

    At most 262,144 rows are gathered at a time, or 256 MB, and cut into blocks of one partition each.
    """
    import pyarrow as pa
    from pyarrow import parquet

    reader = pa.RecordBatchReader.from_batches(parquet.read_schema(source), batches(source))
    write_stream(connection, reader, table, STREAM_ROWS)
