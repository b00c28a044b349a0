"""Data in and out of the engine in pieces: an INSERT from a stream, a result as a stream."""

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping

from . import pipes
from .blocks import Block, BlockColumn, UnknownTypeError, read_blocks
from .errors import ClickHouseError
from .session import Session, Written
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


def insert(session: Session, insert: InsertHead, format: str, pour: Callable[[int], None]) -> Written:
    """Insert the data that `pour` writes into a pipe, in a format; any error, even the source's, cancels the INSERT.

    As on a server, committed blocks of a MergeTree insert stay: about a million rows each. The engine reads from a
    pipe. chdb's send_insert would need no second thread. But in 4.4.0 it reports success and drops the rows if the
    table refuses them (a CHECK constraint, too many partitions).
    """
    read_end, write_end = pipes.open_pipe()
    outcome: list[Written | ClickHouseError] = []

    def work() -> None:
        source = f"FROM INFILE '/dev/fd/{read_end}' COMPRESSION 'none'"
        try:
            result = session.execute(f"{insert.into}\n{source} {insert.settings}\nFORMAT {format}")
            outcome.append(Written(result.rows_written(), result.bytes_written(), result.elapsed()))
        except ClickHouseError as error:
            outcome.append(error)
        finally:
            os.close(read_end)  # a source that still writes gets EPIPE

    worker = threading.Thread(target=work, name="clickhouse-insert", daemon=True)
    worker.start()
    try:
        pour(write_end)
    except BaseException:
        # Kill the query first: closing the pipe alone would look like the data's end, and the rows so far would stay.
        _cancel(session, worker)
        raise
    finally:
        os.close(write_end)
        worker.join()
    if isinstance(outcome[0], ClickHouseError):
        raise outcome[0]
    return outcome[0]


def stream(
    session: Session, query: Query, format: str, params: Mapping[str, str] | None = None
) -> Generator[bytes | memoryview | pipes.Piece, None, None]:
    """Yield a query's result in a format, in pieces, in bounded memory; close the iterator to stop the query.

    A piece is invalid once the next one is requested.
    """
    if not query.streams:
        return _at_once(session, query, format, params)
    name = format.lower()
    if name in _BLOCKWISE_FORMATS or (name in _BLOCKWISE_WITHOUT_TOTALS and not _TOTALS.search(query.text)):
        return _block_by_block(session, query, format, params)
    return _through_pipe(session, query, format, params)


def stream_blocks(session: Session, query: Query) -> Generator[Block, None, None]:
    """Yield a query's result as native blocks; an empty result is one block without rows.

    A block's data are invalid once the next one is requested.
    """
    if not query.streams:
        yield from _blocks_at_once(session, query)
        return
    columns: tuple[BlockColumn, ...] = ()
    with contextlib.closing(session.blocks(query, "Native")) as first_look:
        first = next(first_look, None)
        if first is None:
            yield Block(session.describe(query.body), 0, b"")
            return
        with contextlib.suppress(UnknownTypeError):
            columns = read_blocks(bytes(first[1]))[0].columns
            yield Block(columns, *first)
            for rows, data in first_look:
                yield Block(columns, rows, data)
            return
    # The gateway cannot skip this type: get its name from the engine and start the query again.
    columns = session.describe(query.body)
    with contextlib.closing(session.blocks(query, "Native")) as again:
        for rows, data in again:
            yield Block(columns, rows, data)


def _blocks_at_once(session: Session, query: Query) -> Iterator[Block]:
    blocks = read_blocks(session.execute(query.text, "Native").bytes())
    if not blocks:  # an empty result has no bytes in the Native format, so the columns come from another format
        meta = json.loads(session.execute(query.text, "JSONCompact").bytes() or b'{"meta": []}')["meta"]
        blocks = [Block(tuple(BlockColumn(column["name"], column["type"]) for column in meta), 0, b"")]
    yield from blocks


def _at_once(
    session: Session, query: Query, format: str, params: Mapping[str, str] | None
) -> Generator[bytes, None, None]:
    result = session.execute(query.text, format, params)
    data = result.bytes()
    if data:
        yield data


def _block_by_block(
    session: Session, query: Query, format: str, params: Mapping[str, str] | None
) -> Generator[memoryview, None, None]:
    with contextlib.closing(session.blocks(query, format, params)) as blocks:
        for _, data in blocks:
            yield data


def _through_pipe(
    session: Session, query: Query, format: str, params: Mapping[str, str] | None
) -> Generator[bytes | pipes.Piece, None, None]:
    """Let the engine write a well-formed file into a pipe, and yield its data.

    Unlike a server, a failing engine still ends its file properly (Arrow's end mark, Parquet's footer). The last piece
    is therefore held back until the outcome is known, and dropped on failure, unless the format has no such end.
    """
    read_end, write_end = pipes.open_pipe()
    failures: list[ClickHouseError] = []

    def write() -> None:
        target = f"INTO OUTFILE '/dev/fd/{write_end}' TRUNCATE COMPRESSION 'none' FORMAT {format}"
        try:
            session.execute(f"{query.body}\n{target}", params=params)  # the line break ends a trailing comment
        except ClickHouseError as error:
            failures.append(error)
        finally:
            os.close(write_end)

    writer = threading.Thread(target=write, name="clickhouse-pipe", daemon=True)
    try:
        writer.start()
        last = b""
        if format.lower() in _WITHOUT_END_MARK:
            yield from pipes.pieces(read_end)
        else:
            last = yield from _all_but_last(read_end)
        writer.join()
        if failures:
            raise failures[0]
        if last:
            yield last
    finally:
        os.close(read_end)  # a writer that still works gets EPIPE
        _cancel(session, writer)
        writer.join()


def _all_but_last(pipe: int) -> Generator[bytes, None, bytes]:
    """Yield a pipe's data except the last piece, which is the return value."""
    last = b""
    while data := os.read(pipe, pipes.PIPE_BYTES):
        if last:
            yield last
        last = data
    return last


def _cancel(session: Session, worker: threading.Thread) -> None:
    """Stop a session's query that runs in another thread, even if it has only just begun."""
    while worker.is_alive() and not session.stop():
        time.sleep(_RETRY_SECONDS)
