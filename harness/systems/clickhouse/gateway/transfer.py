"""Move data into and out of the engine in pieces: an INSERT from a stream, a result as a stream."""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from . import wire
from .blocks import (
    BLOCK_INFO,
    WITH_ZONES,
    Block,
    BlockColumn,
    UnknownTypeError,
    first_columns,
    read_blocks,
    with_columns,
)
from .engine import Session, definitions, quote_name, quote_text
from .errors import ClickHouseError
from .sql import InsertHead, Query

# Formats whose blocks can simply be concatenated: send_query encodes each block separately. Every other format (with a
# header, a footer, totals) goes through a pipe, which takes one thread per query. So does Native: the engine then
# builds blocks while earlier ones are sent.
_BLOCKWISE_FORMATS = frozenset({"rowbinary", "jsoneachrow", "jsonlines", "ndjson", "jsoncompacteachrow"})
# The text formats are blockwise too, unless the query requests totals or extremes after an empty line.
_BLOCKWISE_WITHOUT_TOTALS = frozenset({"tabseparated", "tsv", "tabseparatedraw", "tsvraw", "csv"})
_TOTALS = re.compile(r"\bTOTALS\b|\bextremes\b", re.IGNORECASE)
# Formats through the pipe without an end mark: nothing must be held back until the query's outcome is known.
_WITHOUT_END_MARK = frozenset({"native"})
_RETRY_SECONDS = 0.005
# Threads that run queries while a connection's thread moves their data. One that is reused saves the engine and Python
# 0.5 ms of CPU a query. There is one for each query that runs, so none waits.
_WORKERS = ThreadPoolExecutor(max_workers=1 << 16, thread_name_prefix="clickhouse-query")


def insert(
    session: Session,
    insert: InsertHead,
    format: str,
    pour: Callable[[int], None],
    params: Mapping[str, str] | None = None,
) -> None:
    """Insert the data that `pour` writes into a pipe, in a format; any error, even the source's, cancels the INSERT.

    As on a server, committed blocks of a MergeTree insert stay: about a million rows each. The engine reads from a
    pipe. chdb's send_insert would need no second thread. But in 4.4.0 it reports success and drops the rows if the
    table refuses them (a CHECK constraint, too many partitions).
    """
    read_end, write_end = wire.open_pipe()

    def work() -> None:
        try:
            session.execute(insert.reading(f"/dev/fd/{read_end}", format), params=params)
        finally:
            os.close(read_end)  # a source that still writes gets EPIPE

    worker = _WORKERS.submit(work)
    try:
        pour(write_end)
    except BaseException:
        # Kill the query first: closing the pipe alone would look like the data's end, and the rows so far would stay.
        _cancel(session, worker)
        raise
    finally:
        os.close(write_end)
        worker.exception()  # waits
    worker.result()


def stream(
    session: Session, query: Query, format: str, params: Mapping[str, str] | None = None
) -> Generator[bytes | memoryview | wire.Piece, None, None]:
    """Yield a query's result in a format, in pieces, in bounded memory; close the iterator to stop the query.

    A piece is invalid once the next one is requested.
    """
    name = format.lower()
    has_totals = session.extremes or _TOTALS.search(query.text)
    if not query.streams:
        if data := session.execute(query.text, format, params).bytes():
            yield data
    elif name in _BLOCKWISE_FORMATS or (name in _BLOCKWISE_WITHOUT_TOTALS and not has_totals):
        with contextlib.closing(session.blocks(query, format, params)) as blocks:
            yield from (block for _, block in blocks)
    else:
        yield from _through_pipe(session, query, format, params)


def stream_blocks(
    session: Session, query: Query, revision: int, params: Mapping[str, str] | None = None
) -> Generator[Block, None, None]:
    """Yield a query's result as native blocks of a revision; an empty result is one block without rows.

    A block's data are invalid once the next one is requested.
    """
    if not query.streams:
        for block in _blocks_at_once(session, query, params):
            yield with_columns(block, block.columns, revision)
        return
    columns: tuple[BlockColumn, ...] = ()
    with contextlib.closing(session.blocks(query, "Native", params)) as first_look:
        first = next(first_look, None)
        if first is None:
            yield Block(session.describe(query.body, params), 0, b"")
            return
        with contextlib.suppress(UnknownTypeError):
            columns = first_columns(first[1])
        named = _with_zones(session, query, columns, revision, params)
        if named:
            yield with_columns(Block(columns, *first), named, revision)
            for rows, data in first_look:
                yield with_columns(Block(columns, rows, data), named, revision)
            return
    # The gateway cannot skip a type, or needs more than its name: ask the engine and start the query again.
    named = session.describe(query.body, params)
    columns = columns or named
    with contextlib.closing(session.blocks(query, "Native", params)) as again:
        for rows, data in again:
            yield with_columns(Block(columns, rows, data), named, revision)


def stream_native(
    session: Session, query: Query, revision: int, params: Mapping[str, str] | None
) -> Generator[bytes | memoryview, None, None]:
    """Yield a query's result in the Native format of a revision; an empty result has no bytes."""
    with contextlib.closing(stream_blocks(session, query, revision, params)) as blocks:
        for block in blocks:
            if block.rows:
                yield BLOCK_INFO
                yield block.data


def totals_and_extremes(
    session: Session, query: Query, columns: tuple[BlockColumn, ...], params: Mapping[str, str] | None
) -> tuple[list[Block], list[Block]]:
    """Return the blocks of a query's totals and of its extremes, which the Native format leaves out.

    Only another format has them, so a query with totals or extremes runs a second time for them.
    """
    if not query.streams or not (session.extremes or _TOTALS.search(query.text)):
        return [], []
    found = json.loads(
        b"".join(
            piece for piece in _through_pipe(session, query, "JSONCompactStrings", params) if isinstance(piece, bytes)
        )
    )
    structure = definitions(columns)

    def as_blocks(rows: list[list[str]]) -> list[Block]:
        if not rows:
            return []
        lines = "".join(json.dumps(row, ensure_ascii=False) for row in rows)
        select = f"SELECT * FROM format(JSONCompactStringsEachRow, {quote_text(structure)}, {quote_text(lines)})"
        return read_blocks(session.execute(select, "Native").bytes())

    extremes = found.get("extremes", {})
    return as_blocks([found["totals"]] if "totals" in found else []), as_blocks(list(extremes.values()))


def _with_zones(
    session: Session, query: Query, columns: tuple[BlockColumn, ...], revision: int, params: Mapping[str, str] | None
) -> tuple[BlockColumn, ...]:
    """Return a running query's columns with the time zones of DateTime, which Native at revision 0 leaves out.

    Returns nothing if they cannot be known while the query runs.
    """
    if revision < WITH_ZONES or all(column.type != "DateTime" for column in columns):
        return columns
    named = session.describe_running(query.body, params)
    bare = [BlockColumn(one.name, "DateTime") if one.type.startswith("DateTime(") else one for one in named]
    return named if bare == list(columns) else ()


def _blocks_at_once(session: Session, query: Query, params: Mapping[str, str] | None) -> Iterator[Block]:
    blocks = read_blocks(session.execute(query.text, "Native", params).bytes())
    if not blocks:  # an empty result has no bytes in the Native format, so the columns come from another format
        text = session.execute(query.text, "JSONCompact", params).bytes() or b'{"meta": []}'
        meta = json.loads(text)["meta"]
        blocks = [Block(tuple(BlockColumn(column["name"], column["type"]) for column in meta), 0, b"")]
    yield from blocks


def _through_pipe(
    session: Session, query: Query, format: str, params: Mapping[str, str] | None
) -> Generator[bytes | wire.Piece, None, None]:
    """Let the engine write a well-formed file into a pipe, and yield its data.

    Unlike a server, a failing engine still ends its file properly (Arrow's end mark, Parquet's footer). The last piece
    is therefore held back until the outcome is known, and dropped on failure, unless the format has no such end.
    """
    read_end, write_end = wire.open_pipe()

    def write() -> None:
        target = f"INTO OUTFILE '/dev/fd/{write_end}' TRUNCATE COMPRESSION 'none' FORMAT {format}"
        try:
            session.execute(f"{query.body}\n{target}", params=params)  # the line break ends a trailing comment
        finally:
            os.close(write_end)

    writer = _WORKERS.submit(write)
    try:
        last = b""
        if format.lower() in _WITHOUT_END_MARK:
            yield from wire.pieces(read_end)
        else:
            last = yield from _all_but_last(read_end)
        try:
            writer.result()
        except ClickHouseError as error:
            error.rest = last
            raise
        if last:
            yield last
    finally:
        os.close(read_end)  # a writer that still works gets EPIPE
        _cancel(session, writer)
        writer.exception()  # waits


def _all_but_last(pipe: int) -> Generator[bytes, None, bytes]:
    """Yield a pipe's data except the last piece, which is the return value."""
    last = b""
    while data := os.read(pipe, wire.PIPE_BYTES):
        if last:
            yield last
        last = data
    return last


def _cancel(session: Session, worker: Future[None]) -> None:
    """Stop a session's query that runs in another thread, even if it has only just begun."""
    while not worker.done() and not session.stop():
        time.sleep(_RETRY_SECONDS)


# External tables: a client sends them with its query, and they are gone after it.


class ExternalTables:
    """The external tables of one query, as temporary tables of its session."""

    def __init__(self, session: Session) -> None:
        """Begin without a table."""
        self._session = session
        self._names: list[str] = []

    def add(self, name: str, structure: str, format: str, pour: Callable[[int], None]) -> None:
        """Make a table with columns as in CREATE TABLE, and fill it with the data that ``pour`` writes into a pipe."""
        self._create(name, structure)
        self._fill(name, format, pour)

    def add_block(self, name: str, block: Block) -> None:
        """Add a native block to a table; its first block also makes it."""
        name = name or "_data"
        if name not in self._names:
            self._create(name, definitions(block.columns))
        if block.rows:
            self._fill(name, "Native", lambda pipe: wire.write_all(pipe, (block.data,)))

    def close(self) -> None:
        """Remove the tables."""
        while self._names:
            self._session.drop_temporary(self._names.pop())

    def _create(self, name: str, structure: str) -> None:
        self._session.create_temporary(name, structure)
        self._names.append(name)

    def _fill(self, name: str, format: str, pour: Callable[[int], None]) -> None:
        into = quote_name(name)
        head = InsertHead(f"INSERT INTO {into}", "", None, into, "*", format, 0)
        insert(self._session, head, format, pour)
