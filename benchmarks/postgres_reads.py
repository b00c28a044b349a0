"""The cost of a read for the Postgres server, by how the client asks for the rows.

    .venv/bin/python -m benchmarks.postgres_reads [rows] [passes] [dataset]

Each way twice: by a process of the server as it is, and by one that has freed a large piece of memory before.

Prints the CPU seconds of the server process that answers, as medians with minimum and maximum. It also prints the bytes
of the answer, which the client drops as it comes. Other work meanwhile matters little. Findings: arrow-wire/NOTES.md.
"""

import os
import select
import socket
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

import psycopg
from arrow_wire.postgres_read import _FREE_A_LARGE_PIECE, _request
from arrow_wire.postgres_reader import VIEWS, reading
from arrow_wire.postgres_server import columns_of

from harness.datasets import store
from harness.lab.embedded import EmbeddedLab
from harness.systems import SYSTEMS
from harness.worker.meters import tree_cpu_seconds

SEED, SELECT = 1, "SELECT * FROM asked"
SENDS = {"uuid": "uuid_send", "date": "date_send", "text": "textsend"}
SENDS |= {
    f"{family}{size}": f"{family}{size}send" for family, size in (("int", 2), ("int", 4), ("int", 8), ("float", 8))
}


def simple(query: str) -> bytes:
    """Return the message of a query that is answered as text, or as COPY says."""
    return b"Q" + (5 + len(query)).to_bytes(4, "big") + query.encode() + b"\0"


def messages(connection: psycopg.Connection) -> dict[str, bytes]:
    """Return the messages of each request, by its name."""
    names, types = columns_of(connection, SELECT)
    mixed = [reading(one, VIEWS) for one in types]
    integers = [replace(one, as_text=one.as_text or one.decoder == "number4") for one in mixed]
    columns = [
        f"string_agg({SENDS[server_type.name]}({name}), '')" for name, server_type in zip(names, types, strict=True)
    ]
    return {
        "nothing: the rows are counted": simple("SELECT count(*) FROM asked"),
        "SELECT, strings as text and all else in binary (the tuned read)": _request(SELECT, mixed, alone=False),
        "SELECT, integers as text too": _request(SELECT, integers, alone=False),
        "SELECT, all in binary": _request(SELECT, [replace(one, as_text=False) for one in mixed], alone=False),
        "SELECT, all as text": simple(SELECT),
        "COPY (FORMAT binary)": simple("COPY asked TO STDOUT (FORMAT binary)"),
        "COPY (FORMAT text)": simple("COPY asked TO STDOUT"),
        "one bytea a column: string_agg of its binary form": simple(f"SELECT {', '.join(columns)} FROM asked"),
    }


def dropped(connection: psycopg.Connection, message: bytes) -> int:
    """Send a message, drop the answer, and return how many bytes it had."""
    buffer, tail, total = memoryview(bytearray(1 << 20)), b"", 0
    with socket.socket(fileno=os.dup(connection.fileno())) as wire:
        wire.sendall(message)
        while tail[-6:-1] != b"Z\0\0\0\x05":  # ReadyForQuery
            select.select([wire], [], [])
            with suppress(BlockingIOError):
                size = wire.recv_into(buffer)
                tail, total = (tail + bytes(buffer[max(size - 6, 0) : size]))[-6:], total + size
    return total


def took(address: str, what: str, before: str, passes: int) -> None:
    """Ask one process of the server in one way, once more than is counted, and print its figures."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
        connection.execute(before)
        message, pid, seconds, size = messages(connection)[what], connection.info.backend_pid, list[float](), 0
        for _ in range(passes + 1):
            start = tree_cpu_seconds(pid) or 0.0
            size = dropped(connection, message)
            seconds.append((tree_cpu_seconds(pid) or 0.0) - start)
    counted = seconds[1:]
    spread = f"{min(counted):.3f} to {max(counted):.3f}"
    print(f"{what:<64} {median(counted):6.3f} s   {spread}   {size / 1e6:6.1f} MB")


def main(rows: int = 1_000_000, passes: int = 5, name: str = "analytics_metrics") -> None:
    """Ask a separate server for a dataset."""
    spec, client = store.specification(name), SYSTEMS["postgres"].client
    with tempfile.TemporaryDirectory() as scratch, EmbeddedLab(Path(scratch) / "lab", services=("postgres",)) as lab:
        dataset, opened = store.ensure(Path(scratch), name, rows, SEED), client.open_connection(lab.endpoints)
        client.ensure_namespace(opened)
        client.create(opened, "asked", SYSTEMS["postgres"].tables.definition(spec, "heap"))
        client.load(opened, "asked", dataset.path, spec.logical_types)
        address = client.transport_uri("postgres", lab.endpoints["postgres"])
        with psycopg.connect(address, autocommit=True) as connection:
            ways = list(messages(connection))
        for before in ("SELECT 1", _FREE_A_LARGE_PIECE):
            print(f"after {before}")
            for what in ways:
                took(address, what, before, passes)
        with psycopg.connect(address, autocommit=True) as connection:
            for form in ("NONE", "BINARY", "TEXT"):
                plan = connection.execute(f"EXPLAIN (ANALYZE, SERIALIZE {form}, TIMING OFF, BUFFERS OFF) {SELECT}")
                print(f"SERIALIZE {form}: {'; '.join(line.strip() for (line,) in plan.fetchall())}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
