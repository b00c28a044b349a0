"""What ClickHouse alone can do: bounds for every transport into it and out of it, measured in the same run.

Through httpx (https://www.python-httpx.org/), which asks and throws the answer away as it comes.
"""

import json
import os
from contextlib import contextmanager

from harness.registry import transport
from harness.transports.clickhouse.httpx.client import server_at
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier

READ_SETTINGS = {"wait_end_of_query": "1"}  # or the summary would stand before the rows are read


@contextmanager
def connect(uri):
    """Yield a client that holds one open connection."""
    import httpx

    with httpx.Client(**server_at(uri)) as client:
        client.post("/", content="SELECT 1").raise_for_status()
        yield client


def _rows(response, key):
    """Return a number of rows out of the server's summary of a query. Raises RuntimeError for a refusal."""
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")
    return int(json.loads(response.headers["X-ClickHouse-Summary"])[key])


def _insert_select(connection, source, table, settings):
    query = f"INSERT INTO {identifier(table)} SELECT * FROM {identifier(source)}"
    _rows(connection.post("/", params=settings, content=query), "written_rows")


@transport(
    "read", path="SELECT FORMAT Null", payload="nothing", requires=["httpx"], origin="limit", settings=READ_SETTINGS
)
def read_format_null(connection, table):
    """Let the server read every column of the table and drop the rows instead of writing them in a format."""
    answer = connection.post("/", params=READ_SETTINGS, content=f"SELECT * FROM {identifier(table)} FORMAT Null")
    return _rows(answer, "read_rows")


@transport(
    "write",
    frame="table",
    path="INSERT SELECT",
    payload="nothing",
    requires=["httpx"],
    origin="limit",
    settings=INSERT_SETTINGS,
)
def write_insert_select(connection, source, table):
    """Let the server copy a table in its memory (engine Memory): no client, no wire, nothing to parse."""
    _insert_select(connection, source, table, INSERT_SETTINGS)


@transport(
    "write",
    frame="table",
    path="INSERT SELECT, parallel",
    payload="nothing",
    requires=["httpx"],
    origin="limit",
    settings=INSERT_SETTINGS,
)
def write_insert_select_parallel(connection, source, table):
    """The same with a thread a core, at least two, at most eight, that writes parts of its own."""
    settings = INSERT_SETTINGS | {"max_insert_threads": str(min(max(os.cpu_count() or 2, 2), 8))}
    _insert_select(connection, source, table, settings)
