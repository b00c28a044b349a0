"""httpx for asyncio, with Parquet that keeps a NaN: https://www.python-httpx.org/async/"""

import io
from contextlib import asynccontextmanager

from harness.registry import phase, transport
from harness.transports.clickhouse.sql import identifier, identifiers

CLIENT = "httpx"
ENDPOINT = "clickhouse_http"

# A socket that is silent for so long is broken (the native clients have the same default).
TIMEOUT_SECONDS = 300

# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them: that wait is not the transport's.
INSERT_SETTINGS = {"async_insert": "0"}


@asynccontextmanager
async def connect(uri):
    """Yield a client that holds one open connection.

    The published code made a client inside every call; that alone costs 20-90 ms, so here the client is the connection.
    """
    import httpx

    url = httpx.URL(uri)
    async with httpx.AsyncClient(
        base_url=url.copy_with(userinfo=b"", query=None),
        params=url.params,
        auth=(url.username, url.password),
        headers={"Content-Type": "application/octet-stream"},
        timeout=TIMEOUT_SECONDS,
    ) as client:
        await _send(client, "SELECT 1")
        yield client


async def _send(client, query, settings=None, body=b""):
    """Run one query in one request; a refusal raises RuntimeError with its text."""
    response = await client.post("/", params={**(settings or {}), "query": query}, content=body)
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")


async def _insert_parquet(client, table, columns, parquet):
    names = identifiers(columns)
    await _send(client, f"INSERT INTO {identifier(table)} ({names}) FORMAT Parquet", INSERT_SETTINGS, parquet)


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT Parquet, lossless",
    payload="Parquet",
    requires=["httpx", "pandas", "pyarrow.parquet"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32 dates_beyond",
    },
)
async def write_pandas_parquet_lossless(connection, frame, table):
    """Send the frame as one snappy Parquet file that keeps a NaN, in the body of a POST request.

    The published way through pyarrow: pandas' own to_parquet writes a NaN as a null. All else is the same.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with phase("encode"):
        arrow = pa.table(
            {
                name: pa.array(values.to_numpy() if values.dtype in ("float64", "float32") else values)
                for name, values in frame.items()
            }
        )
        buffer = io.BytesIO()
        pq.write_table(arrow, buffer, compression="snappy")
    with phase("send"):
        await _insert_parquet(connection, table, frame.columns, buffer.getvalue())
