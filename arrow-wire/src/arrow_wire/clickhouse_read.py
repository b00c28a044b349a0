"""Rows out of ClickHouse as Native blocks: https://clickhouse.com/docs/interfaces/formats/Native"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from arrow_wire.clickhouse_http import AnswerBytes, Server, identifiers, parts_of
from arrow_wire.clickhouse_native import Result, batches
from arrow_wire.errors import UnsupportedType

# Nothing is compressed; JSON comes as text.
PINNED = {"enable_http_compression": "0", "output_format_native_write_json_as_string": "1"}
BATCH_ROWS = 1 << 17  # of a stream, or a block of the server, which mostly has half as many


def query_of(query: Any) -> str:
    """Return the SELECT of a whole table that is given by its name, or a query as it is, without its end."""
    parts = parts_of(query)
    if parts:
        return f"SELECT * FROM {'.'.join(identifiers([part]) for part in parts)}"
    return str(query).strip().rstrip(";")


def blocks(server: Server, query: str, text: pa.DataType, enough: int) -> Iterator[Any]:
    """Yield the rows as record batches; a failure on the way, or leaving early, closes the connection they come on.

    The first thing it yields is their schema. Raises UnsupportedType for a column that cannot be read, before any row.
    """
    server = server.with_settings(PINNED)
    done = False
    server.client(1)  # both are there before two threads ask for them
    try:
        # The names of the types are asked for while the server finds the first rows. Should the table change between
        # the two, its blocks say so.
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(_described, server, query)
            answer = AnswerBytes(server.send(f"{query}\nFORMAT Native"))
            columns = asked.result()
        try:
            result = Result(columns, text)
        except TypeError as error:
            raise UnsupportedType(str(error)) from None
        yield result.schema
        yield from batches(result, answer.readinto, enough)
        done = True
    finally:
        if not done:
            server.client(0).close()


def _described(server: Server, query: str) -> list[tuple[str, str]]:
    return [(name, sql_type) for name, sql_type, _ in server.described(f"({query}\n)", 1)]
