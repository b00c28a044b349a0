"""Streams through httpx, an HTTP client: bodies and answers of any size, in pieces."""

import io
import os

from harness.registry import transport
from harness.transports.clickhouse.httpx.client import PIECE_BYTES, PLAIN, accepted
from harness.transports.clickhouse.server import INSERT_SETTINGS, PARQUET_SETTINGS, raise_if_broken_off
from harness.transports.clickhouse.sql import identifier, insert_into
from harness.transports.parts import batches

PARQUET = {**PLAIN, **PARQUET_SETTINGS}


def _insert(client, source, table, format_name, body):
    """Insert a body in a format into a Parquet file's columns. A refusal raises RuntimeError."""
    from pyarrow import parquet

    query = f"{insert_into(table, parquet.read_schema(source).names)} FORMAT {format_name}"
    accepted(client.post("/", params={**INSERT_SETTINGS, "query": query}, content=body))


@transport("HTTP INSERT FORMAT Parquet", "Parquet", settings=INSERT_SETTINGS)
def load_parquet_file(connection, source, table):
    """Send an unchanged Parquet file in the body of one INSERT; this process decodes nothing.

    The server does not stream: it holds the whole file in memory, up to twice its size, before it reads the first row.
    If the client stops before the whole file is sent, no row is inserted. After that the server finishes on its own. It
    stores blocks of about a million rows, each partition separately. If it fails later, those blocks stay.
    """
    with open(source, "rb") as file:
        _insert(connection, source, table, "Parquet", file)


def _encoded(source):
    """Yield the rows of a Parquet file as an Arrow stream, in pieces of 1 MiB at most."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, parquet.read_schema(source)) as writer:
        for batch in batches(source):
            writer.write_batch(batch)
            yield from _taken(sink)
    yield from _taken(sink)


def _taken(sink):
    """Yield the bytes written to a buffer in pieces, and empty the buffer."""
    written = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    for start in range(0, len(written), PIECE_BYTES):
        yield written[start : start + PIECE_BYTES]


@transport("HTTP INSERT FORMAT ArrowStream, uncompressed", "Arrow", settings=INSERT_SETTINGS)
def load_arrow_stream(connection, source, table):
    """Send the record batches of a Parquet file as one Arrow stream, in the chunked body of one INSERT.

    The server decodes while the client sends. It stores blocks of about a million rows, each partition separately. If
    the load is interrupted, the stored blocks stay.
    """
    _insert(connection, source, table, "ArrowStream", _encoded(source))


@transport("HTTP SELECT FORMAT Parquet", "Parquet", settings=PARQUET)
def unload_parquet(connection, table, destination):
    """Have the server write the table as one Parquet file, and save its bytes unchanged.

    This process decodes nothing. The server encodes zstd Parquet with a million rows in each row group. A UUID is 16
    bytes, in the order of its string form. The file gets its final name only after the complete answer arrived without
    an error.
    """
    query, path = f"SELECT * FROM {identifier(table)} FORMAT Parquet", os.path.join(destination, "rows.parquet")
    plain = {"Accept-Encoding": "identity"}
    with connection.stream("POST", "/", params=PARQUET, content=query, headers=plain) as response:
        if response.is_error:
            raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.read().decode()}")
        with open(f"{path}.unfinished", "wb") as file:
            for piece in response.iter_raw(PIECE_BYTES):
                file.write(piece)
    with open(f"{path}.unfinished", "rb") as file:
        file.seek(max(0, os.path.getsize(file.name) - 4_096))
        raise_if_broken_off(file.read(), response.headers.get("X-ClickHouse-Exception-Tag"))
    os.replace(f"{path}.unfinished", path)
