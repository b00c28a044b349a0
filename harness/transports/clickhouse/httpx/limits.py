"""Lower bounds for every transport into and out of ClickHouse: the server alone, measured in the same run.

httpx (https://www.python-httpx.org/) sends the queries and discards the answers as they arrive.
"""

import json
import os

from harness.registry import transport
from harness.transports.clickhouse.httpx.client import accepted
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier

READ_SETTINGS = {"wait_end_of_query": "1"}  # otherwise the summary is sent before the rows are read


def _rows(response, key):
    """Return a row count from the server's summary of a query. Raises RuntimeError if the server refuses."""
    return int(json.loads(accepted(response).headers["X-ClickHouse-Summary"])[key])


def _insert_select(connection, source, table, settings):
    query = f"INSERT INTO {identifier(table)} SELECT * FROM {identifier(source)}"
    _rows(connection.post("/", params=settings, content=query), "written_rows")


@transport("SELECT FORMAT Null", "nothing", settings=READ_SETTINGS, origin="limit")
def read_format_null(connection, table):
    """Let the server read every column of the table and drop the rows instead of encoding them."""
    answer = connection.post("/", params=READ_SETTINGS, content=f"SELECT * FROM {identifier(table)} FORMAT Null")
    return _rows(answer, "read_rows")


@transport("INSERT SELECT", "nothing", frame="table", settings=INSERT_SETTINGS, origin="limit")
def write_insert_select(connection, source, table):
    """Let the server copy a table in its memory (engine Memory): no client, no network, nothing to parse."""
    _insert_select(connection, source, table, INSERT_SETTINGS)


@transport("INSERT SELECT, parallel", "nothing", frame="table", settings=INSERT_SETTINGS, origin="limit")
def write_insert_select_parallel(connection, source, table):
    """Like write_insert_select, with one thread per core (2 to 8), each writing separate parts."""
    settings = INSERT_SETTINGS | {"max_insert_threads": str(min(max(os.cpu_count() or 2, 2), 8))}
    _insert_select(connection, source, table, settings)
