"""connectorx, a Rust reader, over HTTP to ClickHouse: https://sfu-db.github.io/connector-x/databases/clickhouse.html

For types that it does not support (decimals, arrays, tuples, JSON) it silently loses values and whole rows. That was
observed on a 26.9 server whose user compresses with LZ4, as all older servers do. The embedded lab's server cannot show
it.
"""

import json
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit

from harness.registry import Unsupported, transport
from harness.transports.clickhouse.sql import identifier, literal

ENDPOINT = "clickhouse_http"

PARTITIONS = 2


@contextmanager
def connect(uri):
    """Yield the address for later calls, after one query has proved that connectorx can read the server's answers.

    There is no connection to keep, because connectorx opens one in every call. Raises Unsupported for a server whose
    answers it cannot read. connectorx 0.4.6 requests native protocol frames (compress=1) and decodes only LZ4 in them.
    Since 26.9 a server uses ZSTD unless the user's profile sets network_compression_method=LZ4. The address cannot set
    it, because connectorx ignores URL parameters.
    """
    parts = urlsplit(uri)
    if parts.scheme != "http":
        raise Unsupported(f"connectorx is used with an http address here, not {parts.scheme}")
    address = f"clickhouse://{parts.netloc}/{dict(parse_qsl(parts.query)).get('database', 'default')}"
    (method,) = _column(address, "SELECT getSetting('network_compression_method')")
    if str(method).upper() != "LZ4":
        raise Unsupported(
            f"connectorx reads no answers compressed with {method}, the default since ClickHouse 26.9; "
            "set network_compression_method to LZ4 in the user's profile"
        )
    yield address


def _column(address, query):
    """Run a small query without connectorx and return the first column of its answer."""
    import base64
    from urllib.parse import unquote, urlencode
    from urllib.request import Request, urlopen

    parts = urlsplit(address)
    credentials = f"{unquote(parts.username or 'default')}:{unquote(parts.password or '')}".encode()
    headers = {"Authorization": "Basic " + base64.b64encode(credentials).decode()}
    parameters = urlencode({"database": parts.path[1:], "query": f"{query} FORMAT JSONCompact"})
    url = f"http://{parts.netloc.rpartition('@')[2]}/?{parameters}"
    with urlopen(Request(url, headers=headers), timeout=300) as response:
        return [row[0] for row in json.load(response)["data"]]


def _select(table):
    # connectorx reads a ? as a parameter, even within a name.
    return f"SELECT * FROM {identifier(table)}".replace("?", r"\x3F")


@transport("HTTP SELECT FORMAT RowBinary", "binary rows", requires=["pyarrow"])
def read_polars_sql(connection, table):
    """Let connectorx read the table with one query and return it as a polars frame.

    connectorx first asks for the columns. It then reads RowBinary in LZ4 frames as they arrive and builds Arrow in
    Rust. UUIDs arrive as strings.
    """
    import connectorx

    return connectorx.read_sql(connection, _select(table), return_type="polars")


@transport("HTTP SELECT FORMAT RowBinary", "binary rows")
def read_pandas_sql(connection, table):
    """Let connectorx read the table with one query and return it as a pandas frame.

    connectorx first asks for the columns and the number of rows. It then reads RowBinary in LZ4 frames and writes it
    into numpy arrays. Strings and UUIDs are Python objects (str). Integers become int64, or Int64 with nulls.
    """
    import connectorx

    return connectorx.read_sql(connection, _select(table))


@transport("HTTP SELECT FORMAT RowBinary", "binary rows", requires=["pyarrow"])
def read_pandas_sql_arrow(connection, table):
    """Let connectorx read the table with one query and keep its Arrow columns in pandas.

    connectorx first asks for the columns. It then reads RowBinary in LZ4 frames as they arrive and builds Arrow in
    Rust. UUIDs arrive as strings. The columns keep their Arrow types (pandas.ArrowDtype).
    """
    import connectorx
    import pandas as pd

    return connectorx.read_sql(connection, _select(table), return_type="arrow").to_pandas(types_mapper=pd.ArrowDtype)


@transport("HTTP SELECT FORMAT RowBinary", "binary rows", requires=["pyarrow"])
def read_polars_sql_partitioned(connection, table):
    """Let connectorx read the table in two parts in parallel and return it as a polars frame.

    connectorx asks for the minimum and maximum of the first integer column and splits that range into two equal halves.
    The two queries share no snapshot: rows inserted meanwhile can be in one part and missing in the other. UUIDs arrive
    as strings.
    """
    import connectorx

    integers = (
        f"SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {literal(table)} "
        "AND type LIKE 'Int%'"
    )
    names = _column(connection, integers)
    if not names:
        raise Unsupported(f"{table} has no integer column to divide it by")
    return connectorx.read_sql(
        connection, _select(table), return_type="polars", partition_on=identifier(names[0]), partition_num=PARTITIONS
    )


@transport("SELECT 1", "one value", requires=["pyarrow"], origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` over a new connection to time what every call of this client includes."""
    import connectorx

    return connectorx.read_sql(connection, "SELECT 1 AS one", return_type="arrow")["one"][0].as_py()
