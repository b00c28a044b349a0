"""Rows into ClickHouse as Native blocks, all or none: https://clickhouse.com/docs/interfaces/formats/Native"""

import re
import threading
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from arrow_wire.clickhouse_create import create, sql_type
from arrow_wire.clickhouse_http import Server, identifier, identifiers, literal, rows_of
from arrow_wire.clickhouse_native import Columns, Room
from arrow_wire.errors import Error, ServerError, UnsupportedType, WrongValue
from arrow_wire.frames import columns_of, joined
from arrow_wire.tally import Tally

# Blocks become parts as they are. By default the server first joins them to a million rows, and splits those again.
PINNED = {"async_insert": "0", "min_insert_block_size_rows": "0", "min_insert_block_size_bytes": "0"}
# Rows of one partition become one part, as a whole or not at all. This setting refuses a block with several partitions.
ONE_PARTITION = {"max_partitions_per_insert_block": "1", "throw_on_max_partitions_per_insert_block": "1"}
SLICE_ROWS = 1_048_449  # cut into blocks at a time; the server's own default, so that it gets no more parts than usual
STREAM_ROWS = 262_144  # of a file: more parts, less memory
ONE_BLOCK_ROWS = 150_000  # more arrive as soon through a second table: NOTES.md
MOST_GROUPS = 100  # blocks in a slice: more than so many partitions in one INSERT block are refused by default
# Of several partitions, in one block: more rows take little less time than through a second table, and parts of more
# bytes have a file for each column.
FEW_ROWS, FEW_BYTES = 30_000, 10_000_000
# The parts of all partitions are written before the first of them is committed: MergeTreeSink.cpp. By default, on a
# local disk, each is committed before the next one is written.
COMMITTED_LAST = {
    "max_insert_delayed_streams_for_parallel_write": "1000",
    "max_partitions_per_insert_block": str(MOST_GROUPS),
}
SLICE_BYTES = 1 << 28  # of a slice at most, where rows are wide
MOST_ROW_BYTES = 1 << 32
COMPACT_BYTES = 1 << 26  # of a part that is written as a few files, instead of two a column: NOTES.md
# Refuses a block unless its types are the table's. By default the server converts values, and may change them. It takes
# Bool and UInt8 for the same, and does not compare the names in types such as enums and tuples.
SAME_TYPES = {"input_format_native_allow_types_conversion": "0", "input_format_null_as_default": "0"}
_SCALAR = r"Int\d+|UInt(?!8)\d+|Float\d+|BFloat16|(Fixed)?String|UUID|IPv[46]|Decimal|Date(Time)?(32|64)?"
COMPARED = re.compile(rf"((Nullable|LowCardinality|Array)\()*({_SCALAR})\b")
# What it says then, before it takes a row: other types while it reads the block, no such column, no such table.
OTHER_TYPES = re.compile(r"Code: (?:16|60)\b|Code: 53\b.*executing Native", re.DOTALL)
KNOWN_KEY = r"(?:(toYYYYMM|toYear|toDate)\()?`?(\w+)`?\)?"


def _columns(batch: pa.Table, types: dict[str, str], exact: bool = False) -> Columns:
    """Return an Arrow table as columns of these types, by name.

    Raises UnsupportedType if one cannot be converted to its column's type.
    """
    try:
        return Columns([(name, array, types[name]) for name, array in columns_of(batch)], exact)
    except TypeError as error:
        raise UnsupportedType(str(error)) from None


class _Told(NamedTuple):
    """A table's engine, alone and with its clauses, its partition key, and how many materialized views it feeds."""

    engine: str
    storage: str
    partition_key: str
    views: int

    @property
    def commits_last(self) -> bool:
        """Whether the parts of a small block are committed once all of them are written, if the INSERT asks for that.

        A replicated table waits for its keeper after each. Parts with a file for each column are too many streams.
        """
        return not self.engine.startswith(("Replicated", "Shared")) and "_for_wide_part" not in self.storage


class _Target:
    """A table that rows go into: its name as SQL, its types, and facts (`told`) from the second connection.

    These are asked for at once, or when they are first used: to ask costs as much as half an INSERT of one row. The
    types are `guessed` if this table, or one with columns of the same names, was written over the connections before.
    """

    def __init__(self, server: Server, parts: tuple[str, ...], names: list[str], at_once: bool, guess: bool) -> None:
        self._server, self._parts, self.table, self._asked = server, parts, _sql(parts), False
        self._keys = [(self.table, *names), (None, *names)]
        self.types = next((server.types[key] for key in self._keys if guess and key in server.types), {})
        self.guessed = bool(self.types)
        try:
            if at_once:
                self._ask()
            if not self.guessed:
                self.ask_types(names)
        except BaseException:
            self.close()
            raise

    def ask_types(self, names: list[str]) -> None:
        """Ask the server for the types. Raises UnsupportedType where a column of these names is not there."""
        self.types, self.guessed = {name: of for name, of, _ in self._server.described(f"TABLE {self.table}")}, False
        for name in names:
            if name not in self.types:
                raise UnsupportedType(f'column "{name}": the table has no such column; rename or drop it')
        if all(COMPARED.match(self.types[name]) for name in names):
            self._server.types.update(dict.fromkeys(self._keys, self.types))

    def _ask(self) -> None:
        *databases, name = map(literal, self._parts)
        what = "engine, engine_full, partition_key, length(dependencies_table)"
        where = f"database = {''.join(databases) or 'currentDatabase()'} AND name = {name}"
        self._server.begin(f"SELECT {what} FROM system.tables WHERE {where} FORMAT JSONCompact", number=1)
        self._asked = True

    @cached_property
    def told(self) -> _Told:
        """The server's facts about the table; the first use waits for them."""
        if not self._asked:
            self._ask()
        found = rows_of(self._server.whole_answer(1))
        if not found:
            self._server.described(f"TABLE {self.table}", 1)  # raises the server's error for a missing table
            raise UnsupportedType(f"{self.table}: system.tables does not list this table; is it a temporary one?")
        engine, storage, partition_key, views = found[0]
        return _Told(engine, storage, partition_key, int(views))

    def close(self) -> None:
        """Close the second connection if an answer on it was not read."""
        if self._asked and "told" not in vars(self):
            self._server.client(1).close()


class _Several(Exception):
    """The server may not take the rows as one block."""


class _OtherTypes(Exception):
    """The table does not have the types that were guessed."""


class _Blocks:
    """Hands out the blocks of slices to several threads, one after the other, until one of them fails."""

    def __init__(self, slices: Iterable[pa.Table], types: dict[str, str], partition_key: str, parts: int) -> None:
        self._lock = threading.Lock()
        self.failure: BaseException | None = None
        self._blocks = self._all(slices, types, partition_key, parts)

    def next(self) -> list[tuple[Columns, Any]]:
        """Return columns and the rows of a block, as the only item of a list; an empty list at the end."""
        with self._lock:
            if self.failure:
                raise RuntimeError("broken off, because another connection failed")
            return list(islice(self._blocks, 1))

    def _all(
        self, slices: Iterable[pa.Table], types: dict[str, str], partition_key: str, parts: int
    ) -> Iterator[tuple[Columns, Any]]:
        for batch in slices:
            columns = _columns(batch, types)
            for rows in _blocks_of(batch, partition_key, parts):
                yield columns, rows
            del batch, columns, rows  # before the next slice is gathered


def _chunks(blocks: _Blocks, held: list[tuple[Columns, Any]], tally: Tally) -> Iterator[bytes | memoryview]:
    """Yield the held block and all further ones as chunks of a request's body. All are encoded into the same memory,
    one after the other.

    No block is held longer than that: it refers to its slice.
    """
    room = Room()
    while held:
        columns, rows = held.pop()
        data = columns.block(room, rows)
        yield b"%x\r\n" % len(data)
        yield data
        yield b"\r\n"
        tally.add(len(rows), len(data))
        del columns, rows
        held += blocks.next()
    yield b"0\r\n\r\n"


def _insertion(table: str, names: list[str]) -> tuple[dict[str, str], str]:
    """Return the settings and the query of an INSERT.

    Each INSERT has a new token. A table's settings may make the server drop repeated blocks; with a new token it takes
    this one.
    """
    query = f"INSERT INTO {table} ({identifiers(names)}) FORMAT Native"
    return PINNED | {"insert_deduplication_token": uuid.uuid4().hex}, query


def _insert(server: Server, count: int, table: str, names: list[str], blocks: _Blocks, tally: Tally) -> None:
    """Insert blocks over `count` connections, each with its own INSERT; a failure ends all of them."""

    def insert(number: int) -> None:
        try:
            if held := blocks.next():
                settings, query = _insertion(table, names)
                server.sent(query, _chunks(blocks, held, tally), number, settings)
        except BaseException as error:
            blocks.failure = blocks.failure or error
            server.client(number).close()

    server.client(count - 1)  # all exist before threads use them
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(insert, range(count)))
    if blocks.failure:
        raise blocks.failure


def _insert_block(server: Server, target: _Target, names: list[str], batch: pa.Table, few: bool, tally: Tally) -> None:
    """Insert rows as one block: of one partition, which the server takes as a whole or not at all, or `few`.

    The block is made before any of it is sent, and the request states its length, so the server cannot use a part. The
    last byte waits until it is certain how the server takes the block. Raises _Several if it is not, and _OtherTypes
    where guessed types are not the table's: the server compares them.
    """
    settings, query = _insertion(target.table, names)
    if target.guessed:
        settings |= SAME_TYPES
    try:
        data = _columns(batch, target.types, target.guessed).block(Room(), range(len(batch)))
    except Error:
        if target.guessed:
            raise _OtherTypes from None
        raise
    few = few and len(data) <= FEW_BYTES
    if few:
        settings |= COMMITTED_LAST
    elif len(batch) > 1:  # of one row, a view may make rows of several partitions
        settings |= ONE_PARTITION

    def body() -> Iterator[memoryview]:
        yield data[:-1]
        if not _goes_as_one_block(batch, target, few):
            raise _Several
        yield data[-1:]

    try:
        server.sent(query, body(), 0, settings, len(data))
    except BaseException as error:
        server.client(0).close()
        if target.guessed and isinstance(error, ServerError) and OTHER_TYPES.search(str(error)):
            raise _OtherTypes from None
        raise
    tally.add(len(batch), len(data))


def write(
    server: Server, count: int, parts: tuple[str, ...], reader: pa.RecordBatchReader, most: int, tally: Tally,
    strict: bool = False,
) -> None:  # fmt: skip
    """Insert all rows of a record batch reader, of which `most` are gathered at a time, over `count` connections.

    `strict` is whether few rows of several partitions, too, go through a second table. Raises UnsupportedType for a
    column that the table does not have, or of a type that cannot be converted to the column's. Raises WrongValue for a
    value that its column does not hold. Both name column and row.
    """
    names = list(reader.schema.names)
    slices = _slices(reader, most)
    held = list(islice(slices, 1))
    with closing(_Target(server, parts, names, not held or len(held[0]) > 1, True)) as target:
        few = bool(held) and len(held[0]) <= FEW_ROWS and not strict
        if held and (_looks_like_one_block(held[0], target, few) or _goes_as_one_block(held[0], target, few)):
            held += islice(slices, 1)  # there is one where rows are wide
            with suppress(_Several):
                if len(held) == 1:
                    with suppress(_OtherTypes):
                        return _insert_block(server, target, names, held[0], few, tally)
                    target.ask_types(names)
                    return _insert_block(server, target, names, held[0], few, tally)
        if target.guessed:
            target.ask_types(names)
        if held:
            with _staged(server, parts, target, names) as staging:
                blocks = _Blocks(_with(held, slices), target.types, target.told.partition_key, count)
                _insert(server, count, staging, names, blocks, tally)


def append(
    server: Server, count: int, parts: tuple[str, ...], reader: pa.RecordBatchReader, most: int, tally: Tally
) -> None:
    """As `write`, but straight into the table: if it fails, some rows may stay. Few rows go as one block."""
    names = list(reader.schema.names)
    slices = _slices(reader, most)
    held = list(islice(slices, 1))
    few = not held or len(held[0]) <= ONE_BLOCK_ROWS
    with closing(_Target(server, parts, names, not few, False)) as target:
        key, count = ("", 1) if few else (target.told.partition_key, count)
        _insert(server, count, target.table, names, _Blocks(_with(held, slices), target.types, key, count), tally)


def replace(
    server: Server, count: int, parts: tuple[str, ...], reader: pa.RecordBatchReader, most: int, tally: Tally
) -> None:
    """As `write`, but replace a table's rows: it changes places with an equal table that has the new rows."""
    names = list(reader.schema.names)
    with closing(_Target(server, parts, names, True, False)) as target:
        sql_types, partition_key = target.types, target.told.partition_key
    with _dropped_on_failure(server, parts, f"CREATE TABLE {{}} AS {target.table}") as staging:
        blocks = _Blocks(_slices(reader, most), sql_types, partition_key, count)
        _insert(server, count, staging, names, blocks, tally)
        server.ask(f"EXCHANGE TABLES {staging} AND {target.table}")
    server.ask(f"DROP TABLE {staging} SYNC")


def make(
    server: Server, count: int, parts: tuple[str, ...], reader: pa.RecordBatchReader, most: int, tally: Tally
) -> None:
    """As `write`, but create the table, which gets its name once all rows are in it."""
    names = list(reader.schema.names)
    types = {field.name: sql_type(field) for field in reader.schema}
    with _dropped_on_failure(server, parts, create("{}", reader.schema)) as staging:
        _insert(server, count, staging, names, _Blocks(_slices(reader, most), types, "", count), tally)
        server.ask(f"RENAME TABLE {staging} TO {_sql(parts)}")


def is_there(server: Server, parts: tuple[str, ...]) -> bool:
    """Return whether there is a table of this name."""
    return server.ask(f"EXISTS TABLE {_sql(parts)}").strip() == "1"


def _with(held: list[pa.Table], slices: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the held tables, releasing each, and then the slices."""
    while held:
        yield held.pop(0)
    yield from slices


def _sql(parts: tuple[str, ...]) -> str:
    return ".".join(map(identifier, parts))


def _looks_like_one_block(batch: pa.Table, target: _Target, few: bool) -> bool:
    """Whether rows are one partition by each date of the table, or `few` of them, so that they need not wait for the
    partition key.
    """
    dates = [name for name, sql_type in target.types.items() if sql_type.startswith("Date")]
    if len(batch) > ONE_BLOCK_ROWS or not set(dates) <= set(batch.schema.names):
        return False
    found = [_partitions(batch, f"toYYYYMM({name})", 1) for name in dates if target.types[name] in ("Date", "Date32")]
    return len(found) == len(dates) and all(groups is not None and (few or not groups.any()) for groups in found)


def _goes_as_one_block(batch: pa.Table, target: _Target, few: bool) -> bool:
    """Whether the server surely takes these rows as a whole or not at all when they come as one block; or, of `few`,
    writes all of them before it commits any.

    A table of the MergeTree family does the first with those of one partition; views get theirs afterwards:
    https://clickhouse.com/docs/concepts/features/operations/insert/transactions
    """
    if len(batch) == 1:  # other engines, too, take one row or none
        return True
    if not target.told.engine.endswith("MergeTree") or target.told.views or len(batch) > ONE_BLOCK_ROWS:
        return False
    if not target.told.partition_key:
        return True
    groups = _partitions(batch, target.told.partition_key, 1)
    if groups is None:
        return False
    if few and target.told.commits_last:
        return int(groups.max()) < MOST_GROUPS - 1  # a zone moves an instant to the next one at most
    name = re.fullmatch(KNOWN_KEY, target.told.partition_key)[2]  # type: ignore[index]
    if target.types.get(name) not in ("Date", "Date32") or getattr(batch[name].type, "tz", None):
        return False  # of an instant its zone decides, or the server's
    return not groups.any()


def _staging_engine(engine: str, storage: str) -> str:
    """Return the ENGINE clause of a table like another; if it is empty, AS decides.

    Its parts are compact up to a larger size, unless the other has its own settings for that. A replicated table's
    clause has a path in its keeper; AS makes a new path.
    """
    if not engine.endswith("MergeTree"):
        return " ENGINE = Memory"
    if engine.startswith(("Replicated", "Shared")) or "_for_wide_part" in storage or " SETTINGS " not in storage:
        return ""
    return f" ENGINE = {storage}, min_bytes_for_wide_part = {COMPACT_BYTES}"


@contextmanager
def _dropped_on_failure(server: Server, parts: tuple[str, ...], statement: str) -> Iterator[str]:
    """Yield the name, as SQL, of a table that a statement creates next to another; drop it if anything fails."""
    staging = _sql((*parts[:-1], f"{parts[-1]}_staging_{uuid.uuid4().hex}"))
    server.ask(statement.replace("{}", staging, 1))
    try:
        yield staging
    except BaseException:
        with suppress(ServerError, OSError):  # the first error says more
            server.ask(f"DROP TABLE {staging} SYNC")
        raise


@contextmanager
def _staged(server: Server, parts: tuple[str, ...], target: _Target, names: list[str]) -> Iterator[str]:
    """Yield an empty table like another; at the end its rows go into the other at once.

    A table of the MergeTree family gets the parts as links, without a copy. Any other table, or one that feeds
    materialized views, gets the rows by one INSERT SELECT.
    """
    like = f"{target.table}{_staging_engine(target.told.engine, target.told.storage)}"
    with _dropped_on_failure(server, parts, f"CREATE TABLE {{}} AS {like}") as staging:
        yield staging
        if target.told.engine.endswith("MergeTree") and not target.told.views:
            server.ask(f"ALTER TABLE {target.table} ATTACH PARTITION ALL FROM {staging}")
        else:
            columns = identifiers(names)
            server.ask(f"INSERT INTO {target.table} ({columns}) SELECT {columns} FROM {staging}")
    server.ask(f"DROP TABLE {staging} SYNC")


def _slices(reader: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    """Yield the rows of a record batch reader as tables of this many rows, or fewer if they are wide."""
    held: list[pa.RecordBatch] = []
    rows, size, counted, at_most, before = 0, 0, 0, 0, 0
    for batch in reader:
        while len(batch):
            piece = _beginning(batch.slice(0, most - rows), before)
            before += len(piece)
            batch = batch.slice(len(piece))
            held.append(piece)
            rows, at_most = rows + len(piece), at_most + piece.get_total_buffer_size()
            if at_most >= SLICE_BYTES:  # perhaps less, because buffers may be shared; counting takes time
                size, counted = size + sum(map(_size, held[counted:])), len(held)
                at_most = size
            if rows == most or at_most >= SLICE_BYTES:
                rows, size, counted, at_most = 0, 0, 0, 0
                yield _released(held)
    if held:
        yield _released(held)


def _released(held: list[pa.RecordBatch]) -> pa.Table:
    """Return record batches as one table, and release them: columns that are joined are copies."""
    batches = held.copy()
    held.clear()
    return joined(pa.Table.from_batches(batches))


def _beginning(batch: pa.RecordBatch, row: int) -> pa.RecordBatch:
    """Return the first rows of a record batch: up to SLICE_BYTES, but at least one.

    Raises WrongValue for a row above 4 GB. `row` is the first one's number in the frame.
    """
    size = batch.get_total_buffer_size()  # or less, because buffers may be shared
    while size >= SLICE_BYTES and (size := _size(batch)) >= SLICE_BYTES and len(batch) > 1:
        batch = batch.slice(0, (len(batch) + 1) // 2)
    if len(batch) == 1 and size > MOST_ROW_BYTES:
        of, name = max((_size(batch.select([name])), name) for name in batch.schema.names)
        raise WrongValue(f'column "{name}": row {row}: {of:,} bytes; a row has at most 4 GB', name, row)
    return batch


def _size(batch: pa.RecordBatch) -> int:
    """Return the approximate size of a record batch's rows, although views refer to all strings of the frame."""
    total = 0
    for column in batch.columns:
        if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):  # each begins with its length
            views = np.frombuffer(column.buffers()[1], np.uint32)[4 * column.offset :: 4][: len(column)]
            total += 16 * len(column) + int(views.sum(dtype=np.int64))
        else:
            total += column.nbytes
    return total


def _blocks_of(batch: pa.Table, partition_key: str, parts: int) -> list[Any]:
    """Return the rows of each block: one partition each, or equal parts of neighbouring rows."""
    groups = _partitions(batch, partition_key, parts)
    if groups is None:
        cuts = [len(batch) * number // parts for number in range(parts + 1)]
        return [range(low, high) for low, high in pairwise(cuts) if low < high]
    order = np.argsort(groups, kind="stable").view(np.uint64)
    ends = np.cumsum(np.bincount(groups))
    return [rows for rows in np.split(order, ends[:-1]) if len(rows)]


def _partitions(batch: pa.Table, partition_key: str, parts: int) -> Any:
    """Return the number of each row's partition; None if there are too many or too few, or they are unknown.

    This affects speed alone: the server splits and sorts the rows. The keys known here are a date, its month and its
    year.
    """
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
