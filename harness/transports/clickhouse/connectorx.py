"""connectorx, a reader in Rust, which speaks HTTP to ClickHouse: https://sfu-db.github.io/connector-x/databases/clickhouse.html

Of types that it does not know it loses values and whole rows without a word: decimals, arrays, tuples, JSON. That was
seen on a server of 26.9 whose user compresses with LZ4, as all servers before do; the embedded lab's cannot show it.
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
    """Yield the address for the calls to come, after one query has proved that the server's answers can be read.

    There is no connection to keep: connectorx makes one in every call. Raises Unsupported for a server whose answers
    it cannot read: it asks for frames of the native protocol (compress=1) and knows only LZ4 in them (0.4.6), and since
    26.9 a server uses ZSTD unless the user's profile says network_compression_method=LZ4. There is no way to say so in
    the address: connectorx ignores its parameters.
    """
    parts = urlsplit(uri)
    if parts.scheme != "http":
        raise Unsupported(f"connectorx is used with an http address here, found {parts.scheme}")
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
    # To connectorx a ? is a parameter, also within a name.
    return f"SELECT * FROM {identifier(table)}".replace("?", r"\x3F")


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT RowBinary",
    payload="binary rows",
    requires=["connectorx", "polars", "pyarrow"],
    lossy={"changed": "decimals arrays nested json"},
)
def read_polars_sql(connection, table):
    """Let connectorx read the table with one query and return it as a polars frame.

    connectorx asks for the columns first, then reads RowBinary in LZ4 frames while it arrives and makes Arrow of it in
    Rust. UUIDs come as text.
    """
    import connectorx

    return connectorx.read_sql(connection, _select(table), return_type="polars")


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT RowBinary",
    payload="binary rows",
    requires=["connectorx", "pandas"],
    lossy={"changed": "decimals arrays nested uint64 json"},
)
def read_pandas_sql(connection, table):
    """Let connectorx read the table with one query and return it as a pandas frame.

    connectorx asks for the columns and the number of rows first, then reads RowBinary in LZ4 frames and writes it into
    numpy arrays. Texts and UUIDs are Python objects (str), integers become int64, with nulls Int64.
    """
    import connectorx

    return connectorx.read_sql(connection, _select(table))


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT RowBinary",
    payload="binary rows",
    requires=["connectorx", "pandas", "pyarrow"],
    lossy={"changed": "decimals arrays nested json"},
)
def read_pandas_sql_arrow(connection, table):
    """Let connectorx read the table with one query and keep its Arrow columns in pandas.

    connectorx asks for the columns first, then reads RowBinary in LZ4 frames while it arrives and makes Arrow of it in
    Rust. UUIDs come as text. The columns stay what they are in Arrow (pandas.ArrowDtype).
    """
    import connectorx
    import pandas as pd

    return connectorx.read_sql(connection, _select(table), return_type="arrow").to_pandas(types_mapper=pd.ArrowDtype)


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT RowBinary",
    payload="binary rows",
    requires=["connectorx", "polars", "pyarrow"],
    lossy={"changed": "decimals arrays nested json"},
)
def read_polars_sql_partitioned(connection, table):
    """Let connectorx read the table in two parts side by side and return it as a polars frame.

    The parts are two equal ranges of the first integer column, whose least and greatest value are asked for first. The
    two queries are no snapshot: rows inserted meanwhile can be in one part and not in the other. UUIDs come as text.
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


@transport("call", path="SELECT 1", payload="one value", requires=["connectorx", "pyarrow"], origin="limit")
def call_select_1(connection):
    """Ask for the number 1, over a connection of its own: what this client takes for every call."""
    import connectorx

    return connectorx.read_sql(connection, "SELECT 1 AS one", return_type="arrow")["one"][0].as_py()
