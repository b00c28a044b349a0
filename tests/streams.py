"""Streams of one process, and tables on real servers that tests give them."""

import datetime as dt
import math
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from harness import registry
from harness.check import sums, unloaded
from harness.datasets import store
from harness.lab.embedded import EmbeddedLab
from harness.model import Operation, Transport
from harness.systems import SYSTEMS
from harness.transports.clickhouse import partitions as clickhouse
from harness.transports.parts import row_groups
from harness.transports.postgres import partitions as postgres
from tests.calls import call

# Those of Daft have their own tests.
_OURS = [entry for entry in registry.select("*.*load_*") if not entry.engine and entry.client != "daft"]
LOADS = [entry for entry in _OURS if entry.operation is Operation.LOAD]
UNLOADS = [entry for entry in _OURS if entry.operation is Operation.UNLOAD]
SPEC = store.specification("analytics_metrics")
PROFILES = {"postgres": "heap", "clickhouse": "keyed"}
UUIDS = [None, *(str(uuid.UUID(int=number)) for number in (0, 7, 2**128 - 1))]
TEXTS = [
    None, "", r"\N", "NULL", "NaN", 'say "x"', '"', '""', "a,b", ",", "l\nm", "l\r\nm", "\n", "\r", r"\.", "\\.\n",
    "\t", " x ", "'", "é😀", "\\", "%s", "true", "2025-01-01", "x" * 70_000,
]  # fmt: skip
FLOATS = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e-310, 1.7976931348623157e308, 0.1, 2.0**53 + 2]
DATES = [None, dt.date(1900, 1, 1), dt.date(1969, 12, 31), dt.date(2299, 12, 31)]
TIMES = [None, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2025, 3, 30, 2, 30)]
# Column -> its logical type, its type in Arrow, in Postgres and in ClickHouse, and values.
HOSTILE = {
    "select": ("uuid", pa.string(), "uuid", "UUID", UUIDS),
    "text, mostly": ("text", pa.string(), "text", "String", TEXTS),
    "größe": ("float64", pa.float64(), "double precision", "Float64", FLOATS),
    "Day": ("date", pa.date32(), "date", "Date32", DATES),
    "sure": ("boolean", pa.bool_(), "boolean", "Bool", [None, True, False]),
    "small": ("int16", pa.int16(), "smallint", "Int16", [None, 0, -(2**15), 2**15 - 1]),
    "number of": ("int32", pa.int32(), "integer", "Int32", [None, 0, -(2**31), 2**31 - 1]),
    "large": ("int64", pa.int64(), "bigint", "Int64", [None, 0, -(2**63), 2**63 - 1, 2**53 + 1]),
    "at": ("timestamp", pa.timestamp("us"), "timestamp", "DateTime64(6)", TIMES),
    "then": ("timestamp_tz", pa.timestamp("us", "UTC"), "timestamptz", "DateTime64(6, 'UTC')", TIMES),
}
LOGICAL_TYPES = {name: logical for name, (logical, *_) in HOSTILE.items()}


def hostile(rows: int = 400) -> pa.Table:
    """Each column repeats its values at its own period, so that rows have many combinations."""
    columns = {
        name: pa.array([values[row % len(values)] for row in range(rows)], of)
        for name, (_, of, _, _, values) in HOSTILE.items()
    }
    return pa.table(columns)


class Server:
    """A system's reference client, and tables that it has made."""

    def __init__(self, system: str, lab: EmbeddedLab) -> None:
        self._system, self.lab, self._made = SYSTEMS[system], lab, list[str]()
        self.connection = self._system.client.open_connection(lab.endpoints)
        self._system.client.ensure_namespace(self.connection)
        self._quote = {"postgres": '"', "clickhouse": "`"}[system]

    def make(self, name: str, definition: str) -> str:
        self._system.client.create(self.connection, name, definition)
        self._made.append(name)
        return name

    def of_dataset(self, name: str = "of streams", profile: str = "keyed") -> str:
        return self.make(name, self._system.tables.definition(SPEC, profile))

    def of_hostile(self, name: str = "of hostile streams") -> str:
        columns = []
        for column, (_, _, in_postgres, in_clickhouse, _) in HOSTILE.items():
            of = in_postgres if self._quote == '"' else f"Nullable({in_clickhouse})"
            columns.append(f"{self._quote}{column}{self._quote} {of}")
        engine = "" if self._quote == '"' else " ENGINE = MergeTree ORDER BY tuple()"
        return self.make(name, f"CREATE TABLE {{table}} ({', '.join(columns)}){engine}")

    def fill(self, table: str, source: Path) -> None:
        """Load a Parquet file by the way that is tested most."""
        name = "postgres.pgpq.load_copy_binary_stream" if self._quote == '"' else "clickhouse.httpx.load_parquet_file"
        call(registry.one(name), self.lab, str(source), table)

    def sums(self, table: str, logical_types: dict[str, str] = SPEC.logical_types) -> sums.Sums:
        return self._system.sums.sums(self.connection, table, logical_types)

    def discard(self) -> None:
        for name in self._made:
            self._system.client.drop(self.connection, name)
        self.connection.close()


class Table:
    """A table of the dataset on the server of a system, its address, and what an engine does with it."""

    def __init__(
        self, system: str, endpoint: str, lab: EmbeddedLab, profile: str = "", name: str = "of streams"
    ) -> None:
        self._server = Server(system, lab)
        self.system, self.name = system, self._server.of_dataset(name, profile or PROFILES[system])
        self.uri = SYSTEMS[system].client.transport_uri(endpoint, lab.endpoints[endpoint])
        self.discard = self._server.discard

    def fill(self, source: str) -> None:
        """Write the rows of a Parquet file, row group by row group."""
        for group in row_groups(source):
            PLAIN_AND_ONCE[self.system][0](self.uri, self.name, source, group)

    def moved(self, entry: Transport, connection: Any, source: str, folder: Path) -> sums.Sums:
        """Call a transport on the table and return the sums of the rows it loaded or unloaded."""
        if entry.operation is Operation.LOAD:
            entry.function(connection, source, self.name)
            return self.sums()
        self.fill(source)
        folder.mkdir()
        entry.function(connection, self.name, str(folder))
        return unloaded.summed(folder, SPEC.logical_types)[0]

    def killed_in_a_part(self, source: str, folder: Path, done: Callable[[Callable[[int], int]], object]) -> None:
        """Have workers write all parts, of which one dies when its part is there: it is there twice, or once."""
        plain, once, keeping = PLAIN_AND_ONCE[self.system]
        at, total = (self.uri, self.name), parquet.read_metadata(source).num_rows
        done(partial(once_killed, str(folder / "plain"), partial(plain, *at, source)))
        rows = self.sums().rows
        assert rows > total
        with keeping(*at) as kept:
            more = (kept,) if self.system == "postgres" else ()
            done(partial(once_killed, str(folder / "once"), partial(once, *at, *more, source)))
        assert {path.name for path in folder.iterdir()} >= {"plain", "once"}
        assert self.sums().rows == rows + total

    def sums(self) -> sums.Sums:
        return self._server.sums(self.name)


# System -> the functions that write a part of rows, plainly and once, and their setup.
PLAIN_AND_ONCE: dict[str, tuple[Any, Any, Any]] = {
    "postgres": (postgres.copy_part, postgres.copy_part_once, postgres.ledger_of),
    "clickhouse": (clickhouse.insert_part, clickhouse.insert_part_once, clickhouse.remembering),
}


def once_killed(flag: str, call: Callable[[int], int], group: int) -> int:
    """Do it, and for the second part die of it the first time, when it is done."""
    rows = call(group)
    if group == 1 and not os.path.exists(flag):
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


@contextmanager
def opened(system: str, lab: EmbeddedLab) -> Iterator[Server]:
    """Yield a server; its tables are dropped at the end."""
    made = Server(system, lab)
    try:
        yield made
    finally:
        made.discard()
