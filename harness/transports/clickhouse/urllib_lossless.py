"""urllib of the standard library, with Parquet that keeps a NaN: https://docs.python.org/3/library/urllib.request.html"""

import base64
import io
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from urllib.request import Request, urlopen

from harness.registry import phase, transport
from harness.transports.clickhouse.sql import identifier, identifiers

CLIENT = "urllib"
ENDPOINT = "clickhouse_http"

# A socket that is silent for so long is broken (the native clients have the same default).
TIMEOUT_SECONDS = 300

# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them: that wait is not the transport's.
INSERT_SETTINGS = {"async_insert": "0"}


@contextmanager
def connect(uri):
    """Yield address, parameters and headers for the requests to come, after one query has proved that they work.

    There is no connection to keep: urllib opens a new TCP connection for every request and closes it after the answer.
    """
    parts = urlsplit(uri)
    credentials = f"{unquote(parts.username or 'default')}:{unquote(parts.password or '')}"
    headers = {
        "Authorization": "Basic " + base64.b64encode(credentials.encode()).decode(),
        "Content-Type": "application/octet-stream",
    }
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/"
    connection = (address, dict(parse_qsl(parts.query)), headers)
    _send(connection, "SELECT 1")
    yield connection


def _send(connection, query, settings=None, body=b""):
    """Run one query in one request; a refusal raises RuntimeError with its text."""
    address, parameters, headers = connection
    url = address + "?" + urlencode({**parameters, **(settings or {}), "query": query})
    try:
        with urlopen(Request(url, data=body, method="POST", headers=headers), timeout=TIMEOUT_SECONDS) as response:
            response.read()
    except HTTPError as error:
        raise RuntimeError(f"ClickHouse answered {error.code}: {error.read().decode(errors='replace')}") from error


def _insert_parquet(connection, table, columns, parquet):
    names = identifiers(columns)
    _send(connection, f"INSERT INTO {identifier(table)} ({names}) FORMAT Parquet", INSERT_SETTINGS, parquet)


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT Parquet, lossless",
    payload="Parquet",
    requires=["pandas", "pyarrow.parquet"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32 dates_beyond",
    },
)
def write_pandas_parquet_lossless(connection, frame, table):
    """Send the frame as one snappy Parquet file that keeps a NaN, in the body of a POST request.

    The published way through pyarrow: pandas' own to_parquet writes a NaN as a null. All else is the same.
    A new TCP connection is part of the time.
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
        _insert_parquet(connection, table, frame.columns, buffer.getvalue())
