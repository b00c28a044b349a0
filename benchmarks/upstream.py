"""The cost of a frame in clients other than the tuned transports: `python -m benchmarks.upstream`.

    .venv/bin/python -m benchmarks.upstream [rows] [passes]

Prints CPU seconds of this process, in which the client is: medians, with the least and the most. They count all of its
threads and none of the servers', so that other work meanwhile matters little. Background: docs/upstream/.
"""

import os
import select
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import psycopg
import pyarrow as pa
from arrow_wire.frames import joined
from arrow_wire.postgres_server import columns_of

from harness.check.canonical import load_frame
from harness.datasets import store
from harness.datasets.specification import PLAIN
from harness.lab.embedded import EmbeddedLab
from harness.registry import connect_of, one
from harness.systems import SYSTEMS
from harness.transports.postgres.binary_copy import as_the_table

DATASET, SEED = "analytics_metrics", 1
PROFILES = {"postgres": ("unlogged", "heap"), "clickhouse": (PLAIN, PLAIN)}  # of the rows written, and of those read
CLIENTS = ("pgpq", "adbc-driver-postgresql", "psycopg", "connectorx", "polars", "clickhouse-connect", "pyarrow")
CALLS = (
    "postgres.psycopg.write_polars_tuned",
    "postgres.pgpq.write_polars_copy_binary",
    "postgres.adbc.write_polars_ingest",
    "postgres.psycopg.write_polars_copy_binary",
    "postgres.socket.read_select_binary_thrown_away",
    "postgres.psycopg.read_polars_tuned",
    "postgres.adbc.read_polars_fetch",
    "postgres.connectorx.read_polars_binary",
    "postgres.psycopg.read_polars_copy_binary",
    "clickhouse.http_client.write_polars_tuned",
    "clickhouse.clickhouse_connect.write_polars_df_arrow_uncompressed",
    "clickhouse.http_client.write_pandas_tuned",
    "clickhouse.clickhouse_connect.write_pandas_df_uncompressed",
    "clickhouse.http_client.read_native_thrown_away",
    "clickhouse.http_client.read_polars_tuned",
    "clickhouse.clickhouse_connect.read_polars_query_arrow_uncompressed",
    "clickhouse.http_client.read_pandas_tuned",
    "clickhouse.clickhouse_connect.read_pandas_query_df_uncompressed",
)
Call = Callable[[], object]


def measured(what: str, call: Call, passes: int, before: Call = lambda: None) -> None:
    """Print the CPU time of a call in this process; the first pass, which also imports, is not counted."""
    taken = []
    for _ in range(passes + 1):
        before()
        started = time.process_time()
        call()
        taken.append(time.process_time() - started)
    counted = taken[1:]
    print(f"{what:<72} {median(counted):7.3f}   {min(counted):.3f} to {max(counted):.3f}", flush=True)


class Lab:
    """A table to write and one to read in each database, and the frames."""

    def __init__(self, lab: EmbeddedLab, folder: Path, rows: int) -> None:
        self.spec, self.dataset = store.specification(DATASET), store.ensure(folder, DATASET, rows, SEED)
        self.frames = {
            name: load_frame(self.dataset.path, name, self.spec.logical_types) for name in ("polars", "pandas")
        }
        self.endpoints, self._clients = lab.endpoints, {}
        for name in PROFILES:
            client = SYSTEMS[name].client
            opened = self._clients[name] = client.open_connection(lab.endpoints)
            client.ensure_namespace(opened)
            for table, profile in zip(("written", "read"), PROFILES[name], strict=True):
                client.create(opened, table, SYSTEMS[name].tables.definition(self.spec, profile))
            client.load(opened, "read", self.dataset.path, self.spec.logical_types)

    def empty(self, system: str) -> None:
        SYSTEMS[system].client.empty(self._clients[system], "written")

    def address(self, system: str, endpoint: str) -> str:
        return SYSTEMS[system].client.transport_uri(endpoint, self.endpoints[endpoint])


def whole_call(lab: Lab, name: str, passes: int) -> None:
    """A frame to a table or back, as the transport of this name does it: `lab show` prints it."""
    entry = one(name)
    with connect_of(entry)(lab.address(entry.system, entry.endpoint)) as connection:
        if entry.operation == "read":
            measured(name, partial(entry.function, connection, "read"), passes)
        else:
            frame = lab.frames[entry.frame]
            write = partial(entry.function, connection, frame, "written")
            measured(name, write, passes, partial(lab.empty, entry.system))


def of_polars(frame: pl.DataFrame, passes: int) -> None:
    """The cost of passing between polars and Arrow, and the bytes of uuids."""
    newest = pl.CompatLevel.newest()
    strings, views = frame.to_arrow(), frame.to_arrow(compat_level=newest)
    measured("polars to_arrow(): every text is copied", frame.to_arrow, passes)
    measured("polars to_arrow(compat_level=newest)", lambda: frame.to_arrow(compat_level=newest), passes)
    measured("polars from_arrow, of large_string", lambda: pl.from_arrow(strings), passes)
    measured("polars from_arrow, of string_view", lambda: pl.from_arrow(views), passes)
    digits = pl.col("entity_key").str.replace_all("-", "", literal=True)
    measured("polars, uuids of strings into 16 bytes", lambda: frame.select(digits.str.decode("hex")), passes)


def of_encoders(frame: pl.DataFrame, connection: Any, passes: int) -> list[memoryview]:
    """The same Arrow table into the rows of a binary COPY, by two encoders; return it as those blocks."""
    from arrow_wire.postgres_encoder import Encoder
    from pgpq import ArrowToPostgresBinaryEncoder

    names, types = columns_of(connection, "SELECT * FROM written")
    sql_types = {name: server_type.name for name, server_type in zip(names, types, strict=True)}
    batch = joined(as_the_table(frame.to_arrow(), sql_types))

    def by_pgpq(rows: int = batch.num_rows) -> None:
        encoder = ArrowToPostgresBinaryEncoder(batch.schema)
        encoder.write_header()
        for start in range(0, batch.num_rows, rows):
            encoder.write_batch(batch.slice(start, rows))

    def by_arrow_wire() -> None:
        for _ in Encoder(names, batch.columns, types).blocks(None, 0, batch.num_rows):
            pass

    measured("pgpq write_batch, one batch", by_pgpq, passes)
    measured("pgpq write_batch, batches of 65,536 rows", lambda: by_pgpq(65_536), passes)
    measured("arrow_wire, blocks of 128 kB", by_arrow_wire, passes)
    for what, call in (("pgpq", by_pgpq), ("arrow_wire", by_arrow_wire)):
        waited, took = longest_wait(call)
        print(f"{what}: another thread waited {waited:.3f} s of the {took:.3f} s that it took", flush=True)
    blocks = Encoder(names, batch.columns, types).blocks(None, 0, batch.num_rows)
    return [memoryview(bytes(block)) for block in blocks]


def longest_wait(call: Call) -> tuple[float, float]:
    """Return the longest time that another thread could not run during the call, and the call's seconds."""
    done, longest = threading.Event(), [0.0]

    def look() -> None:
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            longest[0], last = max(longest[0], now - last), now

    looking = threading.Thread(target=look)
    looking.start()
    started = time.perf_counter()
    call()
    took = time.perf_counter() - started
    done.set()
    looking.join()
    return longest[0], took


@contextmanager
def copying(connection: psycopg.Connection) -> Iterator[psycopg.Copy]:
    from arrow_wire.postgres_encoder import HEADER, TRAILER

    with connection.cursor().copy("COPY written FROM STDIN (FORMAT binary)") as copy:
        copy.write(HEADER)
        yield copy
        copy.write(TRAILER)


def of_psycopg(lab: Lab, connection: psycopg.Connection, blocks: list[memoryview], passes: int) -> None:
    """Made rows into a COPY and rows out of one, without a look at them: the cost of passing them on."""

    def by_write() -> None:
        with copying(connection) as copy:
            for block in blocks:
                copy.write(block)

    def by_socket() -> None:
        with copying(connection), socket.socket(fileno=os.dup(connection.fileno())) as wire:
            connection.pgconn.flush()  # the header, which was too short to be sent yet
            for block in blocks:
                left = memoryview(b"d" + (4 + len(block)).to_bytes(4, "big") + block)  # CopyData
                while left:
                    select.select([], [wire], [])
                    with suppress(BlockingIOError):
                        left = left[wire.send(left) :]

    def row_by_row() -> None:
        with connection.cursor().copy("COPY read TO STDOUT (FORMAT binary)") as copy:
            for _ in copy:
                pass

    measured("psycopg Copy.write, blocks of 128 kB", by_write, passes, lambda: lab.empty("postgres"))
    measured("the same blocks, sent by its socket", by_socket, passes, lambda: lab.empty("postgres"))
    measured("psycopg Copy, every row taken and dropped", row_by_row, passes)


def of_clickhouse_connect(frame: pl.DataFrame, passes: int) -> None:
    """The bytes that insert_df_arrow makes before it sends the first one."""
    from clickhouse_connect.driver.query import arrow_buffer

    table: pa.Table = frame.to_arrow()
    measured("clickhouse-connect, arrow_buffer() of insert_arrow", lambda: arrow_buffer(table), passes)
    made, held = len(arrow_buffer(table)[1]) / 1e6, table.nbytes / 1e6
    print(f"  which is a copy of {made:,.0f} MB of a table of {held:,.0f} MB")


def main(rows: int = 1_000_000, passes: int = 3) -> None:
    """Measure all of it in a scratch folder."""
    print(f"{rows:,} rows, {passes} passes; {', '.join(f'{name} {version(name)}' for name in CLIENTS)}")
    print(f"processes that ran meanwhile at the beginning (load of a minute): {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as scratch, EmbeddedLab(Path(scratch) / "lab") as running:
        lab = Lab(running, Path(scratch), rows)
        frame: Any = lab.frames["polars"]
        of_polars(frame, passes)
        with psycopg.connect(lab.address("postgres", "postgres"), autocommit=True) as connection:
            blocks = of_encoders(frame, connection, passes)
            of_psycopg(lab, connection, blocks, passes)
        of_clickhouse_connect(frame, passes)
        for name in CALLS:
            whole_call(lab, name, passes)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
