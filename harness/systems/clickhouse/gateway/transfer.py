"""Data in and out of the engine, piece by piece: an INSERT from a stream, a result as a stream."""

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

# Formats whose blocks may simply stand one behind the other: send_query makes each block a text of its own.
# Every other format (a header, a footer, totals) runs through a pipe, which costs one thread per query; so does Native,
# whose blocks the engine then makes while the ones before are sent.
_BLOCKWISE_FORMATS = frozenset({"rowbinary", "jsoneachrow", "jsonlines", "ndjson", "jsoncompacteachrow"})
# The text formats are blockwise too, unless the query asks for totals or extremes behind an empty line.
_BLOCKWISE_WITHOUT_TOTALS = frozenset({"tabseparated", "tsv", "tabseparatedraw", "tsvraw", "csv"})
_TOTALS = re.compile(r"\bTOTALS\b|\bextremes\b", re.IGNORECASE)
# Formats through the pipe that end without a mark: nothing has to be held back until the query's outcome is known.
_WITHOUT_END_MARK = frozenset({"native"})
_RETRY_SECONDS = 0.005


def insert(session: Session, insert: InsertHead, format: str, pour: Callable[[int], None]) -> Written:
    """Insert what `pour` writes into a pipe, in a format; an error, also of the source, cancels the whole INSERT.

    As on a server, blocks of a MergeTree insert that were already committed stay: about a million rows each.
    The engine reads from a pipe. chdb's own send_insert would need no second thread, but in 4.4.0 it reports
    success when the table refuses the rows (a CHECK constraint, too many partitions) and drops them.
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
        # Killed first: an end of the pipe alone would be the end of the data, and the part of it would stay.
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

    A piece is gone once the next one is asked for.
    """
    if not query.streams:
        return _at_once(session, query, format, params)
    name = format.lower()
    if name in _BLOCKWISE_FORMATS or (name in _BLOCKWISE_WITHOUT_TOTALS and not _TOTALS.search(query.text)):
        return _block_by_block(session, query, format, params)
    return _through_pipe(session, query, format, params)


def stream_blocks(session: Session, query: Query) -> Generator[Block, None, None]:
    """Yield a query's result as native blocks; an empty result is one block without rows.

    The data of a block are gone once the next one is asked for.
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
    # A type this gateway cannot walk over: its name comes from the engine, and the query starts again.
    columns = session.describe(query.body)
    with contextlib.closing(session.blocks(query, "Native")) as again:
        for rows, data in again:
            yield Block(columns, rows, data)


def _blocks_at_once(session: Session, query: Query) -> Iterator[Block]:
    blocks = read_blocks(session.execute(query.text, "Native").bytes())
    if not blocks:  # an empty result in the Native format is empty: the columns stand in another format
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
    """Let the engine write a well-formed file into a pipe, and yield what comes out of it.

    An engine that fails still ends its file (Arrow's end mark, Parquet's footer), which a server does not: so the last
    piece waits for the outcome, and is dropped with it, unless the format has no such end.
    """
    read_end, write_end = pipes.open_pipe()
    failures: list[ClickHouseError] = []

    def write() -> None:
        target = f"INTO OUTFILE '/dev/fd/{write_end}' TRUNCATE COMPRESSION 'none' FORMAT {format}"
        try:
            session.execute(f"{query.body}\n{target}", params=params)  # the break ends a closing comment
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
        os.close(read_end)  # a writer that is still at work gets EPIPE
        _cancel(session, writer)
        writer.join()


def _all_but_last(pipe: int) -> Generator[bytes, None, bytes]:
    """Yield what is written into a pipe, and return the last piece of it."""
    last = b""
    while data := os.read(pipe, pipes.PIPE_BYTES):
        if last:
            yield last
        last = data
    return last


def _cancel(session: Session, worker: threading.Thread) -> None:
    """Stop a session's query that runs in another thread, however short a time ago it began."""
    while worker.is_alive() and not session.stop():
        time.sleep(_RETRY_SECONDS)
