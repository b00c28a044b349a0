"""A ClickHouse over HTTP for the tests of the compiled library: Native in and out, and the server's answers."""

import os
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np
import pyarrow as pa
from arrow_wire import clickhouse_native as clickhouse

DATABASE = f"arrow_wire_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
SETTINGS = {
    "async_insert": "0",
    "output_format_native_write_json_as_string": "1",
    "allow_suspicious_low_cardinality_types": "1",
    "enable_time_time64_type": "1",
    "allow_experimental_bfloat16_type": "1",
    "flatten_nested": "0",
    "session_timezone": "UTC",
    "print_pretty_type_names": "0",
    "mutations_sync": "1",
}


@dataclass
class Server:
    url: str
    headers: dict[str, str]

    def ask(self, query: str, body: bytes = b"", **settings: str) -> bytes:
        address = f"{self.url}/?{urlencode({**SETTINGS, **settings, 'query': query})}"
        try:
            with urlopen(Request(address, body, self.headers)) as answer:
                return answer.read()
        except HTTPError as error:
            raise RuntimeError(error.read().decode(errors="replace")) from None

    def table(self, name: str, sql_type: str) -> None:
        self.ask(f"CREATE OR REPLACE TABLE {name} (n UInt32, v {sql_type}) ENGINE = Memory")

    def write(self, name: str, array: pa.Array, sql_type: str, rows: Any = None) -> None:
        """Insert an array as the column v, with row numbers as n."""
        numbers = pa.array(range(len(array)), pa.uint32())
        columns = clickhouse.Columns([("n", numbers, "UInt32"), ("v", array, sql_type)])
        rows = range(len(array)) if rows is None else np.array(rows, np.uint64)
        self.ask(f"INSERT INTO {name} FORMAT Native", bytes(columns.block(clickhouse.Room(), rows)))

    def read(self, query: str, text: pa.DataType, piece: int = 1 << 19) -> pa.Table:
        """Return the rows of a query, decoded from pieces of so many bytes."""
        described = self.ask(f"DESCRIBE ({query}) FORMAT TSVRaw").decode().splitlines()
        names = [tuple(line.split("\t")[:2]) for line in described]
        return read_bytes(self.ask(f"{query} FORMAT Native"), names, text, piece)


def read_bytes(data: bytes, names: list, text: pa.DataType, piece: int = 1 << 19) -> pa.Table:
    """Decode a stream from pieces of so many bytes."""
    view, place = memoryview(data), 0

    def readinto(room: memoryview) -> int:
        nonlocal place
        size = min(len(room), piece, len(view) - place)
        room[:size] = view[place : place + size]
        place += size
        return size

    result = clickhouse.Result(names, text)
    return pa.Table.from_batches(list(clickhouse.batches(result, readinto)), result.schema)
