"""Our own way into ClickHouse: https://clickhouse.com/docs/interfaces/formats/Native"""

import json
import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from harness.registry import Unsupported, transport
from harness.transports.clickhouse.http_client.blocks import blocks_of, slices
from harness.transports.clickhouse.http_client.client import (
    FOR_PANDAS,
    FOR_POLARS,
    PAYLOAD,
    described,
    send,
    server_at,
)
from harness.transports.clickhouse.http_client.frames import check_names, table_of_pandas, table_of_polars
from harness.transports.clickhouse.sql import identifier, identifiers, literal

# Blocks become parts as they come. By default the server first joins them to a million rows, and splits those again.
PINNED = {"async_insert": "0", "min_insert_block_size_rows": "0", "min_insert_block_size_bytes": "0"}
PATH = "HTTP INSERT FORMAT Native"
SLICE_ROWS = 1_048_449  # cut into blocks at a time; the server's own default, so that it gets no more parts than usual


@contextmanager
def connect(uri):
    """Yield an open connection for each core (2 to 8)."""
    opened, user, parameters = server_at(uri)
    clients = [opened() for _ in range(min(max(os.cpu_count() or 2, 2), 8))]
    try:
        for client in clients:
            send(client, user, parameters, "SELECT 1").read()
        yield clients, user, parameters
    finally:
        for client in clients:
            client.close()


def _ask(connection, query):
    clients, user, parameters = connection
    return send(clients[0], user, parameters, query).read().decode()


class _Blocks:
    """Hands out the blocks of a reader to several threads, one after the other, until one of them fails."""

    def __init__(self, reader, types, partition_key, parts):
        self._lock, self.failure = threading.Lock(), None
        self._blocks = self._all(reader, types, partition_key, parts)

    def next(self):
        """Return columns and the rows of a block, or None at the end."""
        with self._lock:
            if self.failure:
                raise RuntimeError("broken off, because another connection failed")
            return next(self._blocks, None)

    def _all(self, reader, types, partition_key, parts):
        from arrow_wire import clickhouse

        for batch in slices(reader, SLICE_ROWS):
            named = zip(batch.schema.names, batch.columns, strict=True)
            try:
                columns = clickhouse.Columns([(name, array, types[name]) for name, array in named])
            except TypeError as error:
                raise Unsupported(str(error)) from None
            for rows in blocks_of(batch, partition_key, parts):
                yield columns, rows


def _chunks(blocks, first):
    """Yield blocks as chunks of a request's body: each is encoded into the same memory when the one before is sent."""
    from arrow_wire import clickhouse

    block, room = first, clickhouse.Room()
    while block is not None:
        columns, rows = block
        data = columns.block(room, rows)
        yield b"%x\r\n" % len(data)
        yield data
        yield b"\r\n"
        block = blocks.next()
    yield b"0\r\n\r\n"


def _insert(connection, table, names, blocks):
    """Insert blocks over all connections, each with an INSERT of its own; a failure breaks all of them off."""
    clients, user, parameters = connection
    query = f"INSERT INTO {identifier(table)} ({identifiers(names)}) FORMAT Native"

    def insert(client):
        try:
            if (first := blocks.next()) is not None:
                send(client, user, parameters | PINNED, query, _chunks(blocks, first)).read()
        except BaseException as error:
            blocks.failure = blocks.failure or error
            client.close()

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(insert, clients))
    if blocks.failure:
        raise blocks.failure


def write_stream(connection, reader, table):
    """Insert all rows of a record batch reader, of which about a million are in memory at a time: all, or none.

    Raises Unsupported for a column that the table does not have, or of a type that has no way into it, ValueError for a
    value that its column does not hold; column and row are named.
    """
    names = list(reader.schema.names)
    check_names(names)
    clients, user, parameters = connection
    types = {name: kind for name, kind, _ in described(clients[0], user, parameters, f"TABLE {identifier(table)}")}
    for name in names:
        if name not in types:
            raise Unsupported(
                f'column "{name}": expected a column of the table, found none of this name; rename or drop it'
            )
    kinds = {name: types[name] for name in names}
    with _staged(connection, table, names) as (staging, partition_key):
        _insert(connection, staging, names, _Blocks(reader, kinds, partition_key, len(clients)))


@contextmanager
def _staged(connection, table, names):
    """Yield an empty table like another, and its partition key; what is in it then goes into the other at once.

    The parts of a table of the MergeTree family are linked into it, which costs no copy; into any other, or one that
    feeds materialized views, the rows go by one INSERT SELECT.
    """
    what = "engine, partition_key, length(dependencies_table)"
    where = f"database = currentDatabase() AND name = {literal(table)}"
    answer = _ask(connection, f"SELECT {what} FROM system.tables WHERE {where} FORMAT JSONCompact")
    engine, partition_key, views = json.loads(answer)["data"][0]
    linked = engine.endswith("MergeTree") and not int(views)
    staging = f"{table}_staging_{uuid.uuid4().hex}"
    like = "" if engine.endswith("MergeTree") else " ENGINE = Memory"
    _ask(connection, f"CREATE TABLE {identifier(staging)} AS {identifier(table)}{like}")
    try:
        yield staging, partition_key
        if linked:
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
    partition key. All or nothing: the rows go into a table of their own, whose parts are then linked into the other at
    once (ATTACH PARTITION ALL FROM). What the column cannot hold is refused with its row.
    """
    check_names(frame.columns)
    write_stream(connection, table_of_polars(frame).to_reader(), table)


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
    check_names(list(frame.columns))
    write_stream(connection, table_of_pandas(frame).to_reader(), table)
