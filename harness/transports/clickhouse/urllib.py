"""urllib.request of the standard library, the smallest HTTP client: https://docs.python.org/3/library/urllib.request.html"""

import base64
import io
import json
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from urllib.request import Request, urlopen

from harness.registry import phase, transport
from harness.transports.clickhouse.columns import arrow_parquet, pandas_parquet, polars_parquet
from harness.transports.clickhouse.server import INSERT_SETTINGS, PARQUET_SETTINGS, TIMEOUT_SECONDS, raise_if_broken_off
from harness.transports.clickhouse.sql import identifier, insert_into

ENDPOINT = "clickhouse_http"


@contextmanager
def connect(uri):
    """Yield the address, parameters and headers for later requests, after one query has proved that they work.

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
    """Run one query in one request and return the bytes of the answer. A refusal raises RuntimeError."""
    address, parameters, headers = connection
    url = address + "?" + urlencode({**parameters, **(settings or {}), "query": query})
    try:
        with urlopen(Request(url, data=body, method="POST", headers=headers), timeout=TIMEOUT_SECONDS) as response:
            answer = response.read()
            tag = response.headers.get("X-ClickHouse-Exception-Tag")
    except HTTPError as error:
        raise RuntimeError(f"ClickHouse answered {error.code}: {error.read().decode(errors='replace')}") from error
    raise_if_broken_off(answer, tag)
    return answer


def _insert_parquet(connection, frame, table, encode):
    with phase("encode"):
        parquet = encode(frame)
    with phase("send"):
        _send(connection, f"{insert_into(table, frame.columns)} FORMAT Parquet", INSERT_SETTINGS, parquet)


def _column_names(connection, table):
    answer = _send(connection, f"DESCRIBE (SELECT * FROM {identifier(table)}) FORMAT JSONCompact")
    return [row[0] for row in json.loads(answer)["data"]]


@transport(
    "HTTP INSERT FORMAT Parquet",
    "Parquet",
    settings=INSERT_SETTINGS,
    published="urllib HTTP INSERT FORMAT Parquet from Polars dataframe",
)
def write_polars_parquet(connection, frame, table):
    """Send the frame as one zstd Parquet file in the body of a POST request.

    The client sends typed columns. Only UUIDs travel as strings, which the server parses. zstd is polars' default
    codec, set explicitly here. The time includes a new TCP connection.
    """
    _insert_parquet(connection, frame, table, polars_parquet)


@transport(
    "HTTP INSERT FORMAT Parquet",
    "Parquet",
    requires=["pyarrow.parquet"],
    settings=INSERT_SETTINGS,
    published="urllib HTTP INSERT FORMAT Parquet from Pandas dataframe",
)
def write_pandas_parquet(connection, frame, table):
    """Send the frame as one snappy Parquet file in the body of a POST request.

    The client sends typed columns. UUIDs travel as strings and dates as timestamps, and the server converts both.
    snappy is pandas' default codec, set explicitly here. pandas writes a NaN as a null, which arrives as 0. The time
    includes a new TCP connection.
    """
    _insert_parquet(connection, frame, table, pandas_parquet)


@transport(
    "HTTP SELECT FORMAT Parquet",
    "Parquet",
    settings=PARQUET_SETTINGS,
    published="urllib HTTP SELECT ... FORMAT Parquet -> Polars dataframe",
    control=True,
)
def read_polars_parquet(connection, table):
    """Fetch the table as one zstd Parquet file and let polars decode it.

    polars has no UUID type: a UUID arrives as 16 bytes (Binary), in the order of its string form.
    """
    import polars as pl

    with phase("receive"):
        answer = _send(connection, f"SELECT * FROM {identifier(table)} FORMAT Parquet", PARQUET_SETTINGS)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(answer))


@transport(
    "HTTP SELECT FORMAT Parquet",
    "Parquet",
    requires=["pyarrow.parquet"],
    settings=PARQUET_SETTINGS,
    published="urllib HTTP SELECT ... FORMAT Parquet -> Pandas dataframe",
)
def read_pandas_parquet(connection, table):
    """Fetch the table as one zstd Parquet file and let pandas (pyarrow) decode it.

    UUIDs and dates become one Python object per value (uuid.UUID, datetime.date), which takes most of the time.
    """
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        answer = _send(connection, f"SELECT * FROM {identifier(table)} FORMAT Parquet", PARQUET_SETTINGS)
    with phase("decode"):
        return pd.read_parquet(pa.BufferReader(answer))


@transport(
    "HTTP SELECT FORMAT CSV", "delimited text", published="urllib HTTP SELECT ... FORMAT CSV -> Polars dataframe"
)
def read_polars_csv(connection, table):
    """Fetch the table as CSV without a header and let polars guess the types.

    The column names come from a DESCRIBE round trip first. UUIDs and dates stay strings, and integers become Int64. A
    string column of digits becomes numbers, and a NaN turns its float column into strings.
    """
    import polars as pl

    with phase("receive"):
        names = _column_names(connection, table)
        answer = _send(connection, f"SELECT * FROM {identifier(table)} FORMAT CSV")
    with phase("decode"):
        return pl.read_csv(io.BytesIO(answer), has_header=False, new_columns=names)


@transport(
    "HTTP SELECT FORMAT CSV", "delimited text", published="urllib HTTP SELECT ... FORMAT CSV -> Pandas dataframe"
)
def read_pandas_csv(connection, table):
    """Fetch the table as CSV without a header and let pandas guess the types.

    The column names come from a DESCRIBE round trip first. UUIDs and dates stay strings, and integers become int64. A
    string column of digits becomes numbers. keep_default_na=False keeps an empty string, NA and null from becoming
    missing values, but a NaN then turns its float column into strings.
    """
    import pandas as pd

    with phase("receive"):
        names = _column_names(connection, table)
        answer = _send(connection, f"SELECT * FROM {identifier(table)} FORMAT CSV")
    with phase("decode"):
        return pd.read_csv(io.BytesIO(answer), header=None, names=names, keep_default_na=False)


@transport("SELECT 1", "one value", origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    return int(_send(connection, "SELECT 1"))


@transport("HTTP INSERT FORMAT Parquet, lossless", "Parquet", settings=INSERT_SETTINGS)
def write_pandas_parquet_lossless(connection, frame, table):
    """Send the frame as one snappy Parquet file that keeps a NaN, in the body of a POST request.

    The published transport, but pyarrow writes the file: pandas' to_parquet writes a NaN as a null. The time includes a
    new TCP connection.
    """
    _insert_parquet(connection, frame, table, arrow_parquet)
