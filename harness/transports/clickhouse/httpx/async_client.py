"""httpx.AsyncClient, for asyncio: https://www.python-httpx.org/async/"""

import io
import json
from contextlib import asynccontextmanager

from harness.registry import phase, transport
from harness.transports.clickhouse.columns import arrow_parquet, pandas_parquet, polars_parquet
from harness.transports.clickhouse.httpx.client import BINARY, PLAIN, accepted, server_at
from harness.transports.clickhouse.server import INSERT_SETTINGS, PARQUET_SETTINGS, raise_if_broken_off
from harness.transports.clickhouse.sql import identifier, insert_into

PARQUET_READ_SETTINGS = {**PLAIN, **PARQUET_SETTINGS}


@asynccontextmanager
async def connect(uri):
    """Yield a client with one open connection.

    The published code created a client in every call, which alone takes 20–90 ms. Here the client is the connection.
    """
    import httpx

    async with httpx.AsyncClient(**server_at(uri), headers=BINARY) as client:
        await _send(client, "SELECT 1")
        yield client


async def _send(client, query, settings=None, body=b""):
    """Run one query in one request and return the bytes of the answer. A refusal raises RuntimeError."""
    response = accepted(await client.post("/", params={**(settings or {}), "query": query}, content=body))
    answer = response.content
    raise_if_broken_off(answer, response.headers.get("X-ClickHouse-Exception-Tag"))
    return answer


async def _insert_parquet(client, frame, table, encode):
    with phase("encode"):
        parquet = encode(frame)
    with phase("send"):
        await _send(client, f"{insert_into(table, frame.columns)} FORMAT Parquet", INSERT_SETTINGS, parquet)


async def _column_names(client, table):
    answer = await _send(client, f"DESCRIBE (SELECT * FROM {identifier(table)}) FORMAT JSONCompact", PLAIN)
    return [row[0] for row in json.loads(answer)["data"]]


@transport(
    "HTTP INSERT FORMAT Parquet",
    "Parquet",
    settings=INSERT_SETTINGS,
    published="httpx async HTTP INSERT FORMAT Parquet from Polars dataframe",
)
async def write_polars_parquet(connection, frame, table):
    """Send the frame as one zstd Parquet file in the body of a POST request.

    The client sends typed columns. Only UUIDs travel as strings, which the server parses. zstd is polars' default
    codec, set explicitly here.
    """
    await _insert_parquet(connection, frame, table, polars_parquet)


@transport(
    "HTTP INSERT FORMAT Parquet",
    "Parquet",
    requires=["pyarrow.parquet"],
    settings=INSERT_SETTINGS,
    published="httpx async HTTP INSERT FORMAT Parquet from Pandas dataframe",
)
async def write_pandas_parquet(connection, frame, table):
    """Send the frame as one snappy Parquet file in the body of a POST request.

    The client sends typed columns. UUIDs travel as strings and dates as timestamps, and the server converts both.
    snappy is pandas' default codec, set explicitly here. pandas writes a NaN as a null, which arrives as 0.
    """
    await _insert_parquet(connection, frame, table, pandas_parquet)


@transport(
    "HTTP SELECT FORMAT Parquet",
    "Parquet",
    settings=PARQUET_READ_SETTINGS,
    published="httpx async HTTP SELECT ... FORMAT Parquet -> Polars dataframe",
)
async def read_polars_parquet(connection, table):
    """Fetch the table as one zstd Parquet file and let polars decode it.

    polars has no UUID type: a UUID arrives as 16 bytes (Binary), in the order of its string form.
    """
    import polars as pl

    with phase("receive"):
        answer = await _send(connection, f"SELECT * FROM {identifier(table)} FORMAT Parquet", PARQUET_READ_SETTINGS)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(answer))


@transport(
    "HTTP SELECT FORMAT Parquet",
    "Parquet",
    requires=["pyarrow.parquet"],
    settings=PARQUET_READ_SETTINGS,
    published="httpx async HTTP SELECT ... FORMAT Parquet -> Pandas dataframe",
)
async def read_pandas_parquet(connection, table):
    """Fetch the table as one zstd Parquet file and let pandas (pyarrow) decode it.

    UUIDs and dates become one Python object per value (uuid.UUID, datetime.date), which takes most of the time.
    """
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        answer = await _send(connection, f"SELECT * FROM {identifier(table)} FORMAT Parquet", PARQUET_READ_SETTINGS)
    with phase("decode"):
        return pd.read_parquet(pa.BufferReader(answer))


@transport(
    "HTTP SELECT FORMAT CSV",
    "delimited text",
    settings=PLAIN,
    published="httpx async HTTP SELECT ... FORMAT CSV -> Polars dataframe",
)
async def read_polars_csv(connection, table):
    """Fetch the table as CSV without a header and let polars guess the types.

    The column names come from a DESCRIBE round trip first. UUIDs and dates stay strings, and integers become Int64. A
    string column of digits becomes numbers, and a NaN turns its float column into strings.
    """
    import polars as pl

    with phase("receive"):
        names = await _column_names(connection, table)
        answer = await _send(connection, f"SELECT * FROM {identifier(table)} FORMAT CSV", PLAIN)
    with phase("decode"):
        return pl.read_csv(io.BytesIO(answer), has_header=False, new_columns=names)


@transport(
    "HTTP SELECT FORMAT CSV",
    "delimited text",
    settings=PLAIN,
    published="httpx async HTTP SELECT ... FORMAT CSV -> Pandas dataframe",
)
async def read_pandas_csv(connection, table):
    """Fetch the table as CSV without a header and let pandas guess the types.

    The column names come from a DESCRIBE round trip first. UUIDs and dates stay strings, and integers become int64. A
    string column of digits becomes numbers. keep_default_na=False keeps an empty string, NA and null from becoming
    missing values, but a NaN then turns its float column into strings.
    """
    import pandas as pd

    with phase("receive"):
        names = await _column_names(connection, table)
        answer = await _send(connection, f"SELECT * FROM {identifier(table)} FORMAT CSV", PLAIN)
    with phase("decode"):
        return pd.read_csv(io.BytesIO(answer), header=None, names=names, keep_default_na=False)


@transport("SELECT 1", "one value", origin="limit")
async def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    return int(await _send(connection, "SELECT 1"))


@transport("HTTP INSERT FORMAT Parquet, lossless", "Parquet", settings=INSERT_SETTINGS)
async def write_pandas_parquet_lossless(connection, frame, table):
    """Send the frame as one snappy Parquet file that keeps a NaN, in the body of a POST request.

    The published transport, but pyarrow writes the file: pandas' to_parquet writes a NaN as a null.
    """
    await _insert_parquet(connection, frame, table, arrow_parquet)
