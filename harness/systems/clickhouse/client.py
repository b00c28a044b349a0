"""ClickHouse through clickhouse-connect, the reference client: https://clickhouse.com/docs/integrations/python

No published transport uses clickhouse-connect. It speaks HTTP; clickhouse-driver checks the native address.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import SplitResult, unquote, urlencode, urlunsplit
from urllib.request import urlopen

import clickhouse_connect
import pyarrow as pa
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import Error
from clickhouse_driver import Client as NativeClient
from clickhouse_driver.errors import Error as NativeError
from pyarrow import parquet

from harness import address
from harness.address import Address
from harness.machine.variables import namespace
from harness.model import MARK, LabError, Server
from harness.systems.clickhouse import SYSTEM
from harness.systems.clickhouse.asked import with_bytes
from harness.systems.clickhouse.tables import require_even
from harness.transports.clickhouse.sql import identifier, literal

_HTTP, _NATIVE = SYSTEM.addresses
# The formats that the lab's transports use; a server without one of them is not supported.
_FORMATS = ("ArrowStream", "CSV", "Native", "Parquet", "TabSeparated")
_PATIENCE_SECONDS = 24 * 3600  # the client's own limit; callers limit their calls (lab/reference.py)
_PIECE_BYTES = 1 << 28  # loaded at once from a Parquet file
_EXCEPTION = "DB::Exception: "
_MERGE_SECONDS = 20  # limit for background merges, less than the limit of a call


def transport_uri(endpoint: str, uri: str) -> str:
    """Return the URI for transports, with the lab's database as default."""
    parts = address.split(uri, _HTTP if endpoint == _HTTP.name else _NATIVE)
    if endpoint == _HTTP.name:
        return urlunsplit(parts._replace(path="/", query=f"database={namespace()}"))
    return urlunsplit(parts._replace(path=f"/{namespace()}"))


def open_connection(endpoints: dict[str, str]) -> Client:
    """Open the reference client over HTTP. Raises LabError: unreachable server, wrong user or password."""
    return connected(endpoints["clickhouse_http"], settings={"async_insert": 0})


def connected(uri: str, **options: Any) -> Client:
    """Open a client over HTTP at a URI, with client options. Raises LabError."""
    parts = address.split(uri, _HTTP)
    address.reach(parts, _HTTP)
    _ping(parts)
    try:
        return clickhouse_connect.get_client(
            host=parts.hostname,
            port=parts.port or _HTTP.port,
            secure=parts.scheme == "https",
            username=unquote(parts.username or "default"),
            password=unquote(parts.password or ""),
            connect_timeout=_PATIENCE_SECONDS,  # also the limit for the server to accept data of a large table
            send_receive_timeout=_PATIENCE_SECONDS,
            autogenerate_session_id=False,
            dedicated_pool=True,  # in a shared pool, other clients' connections would stay open while this one waits
            **options,
        )
    except Error as error:
        raise LabError(_refused(parts, _HTTP, error, uri)) from None


def check(endpoints: dict[str, str]) -> Server:
    """Return the server's version and changed settings; both addresses must answer. Raises LabError."""
    _check_native(endpoints["clickhouse_native"])
    with open_connection(endpoints) as client:
        changed = client.query("SELECT name, value FROM system.settings WHERE changed ORDER BY name").result_rows
        return Server(
            str(client.server_version), frozenset({"clickhouse"}), {name: str(value) for name, value in changed}
        )


def offers(server: Server, endpoints: dict[str, str]) -> str:
    """Name the server's formats, of those that transports use."""
    with open_connection(endpoints) as client:
        rows = client.query("SELECT name FROM system.formats WHERE is_input AND is_output").result_rows
    offered = {row[0] for row in rows}
    missing = [name for name in _FORMATS if name not in offered]
    return "formats: " + ", ".join(sorted(offered & set(_FORMATS))) + (f"; missing: {missing}" if missing else "")


def hold(client: Client, run_id: str) -> str:
    """Do nothing: ClickHouse has no lock that ends with its connection."""
    return ""


def ensure_namespace(client: Client) -> None:
    """Create the lab's database, or accept one that the lab made. Raises LabError: not ours, not allowed."""
    try:
        found = client.query(f"SELECT comment FROM system.databases WHERE name = '{namespace()}'").result_rows
        if not found:
            client.command(f"CREATE DATABASE {namespace()} COMMENT '{MARK}'")
    except Error as error:
        raise LabError(f'clickhouse: cannot make the database "{namespace()}": {said(error)}') from None
    if found and found[0][0] != MARK:
        raise LabError(_not_ours("database", namespace()))


def create(client: Client, table: str, definition: str) -> None:
    """Create an empty table of the lab, replacing an earlier one. Raises LabError if the lab did not make that."""
    drop(client, table)
    client.command(f"{definition.replace('{table}', _full(table), 1)} COMMENT {literal(MARK)}")


def drop(client: Client, table: str) -> None:
    """Drop a table of the lab if it exists. Raises LabError if the lab did not make the table of this name."""
    found = client.query(
        f"SELECT comment FROM system.tables WHERE database = '{namespace()}' AND name = {literal(table)}"
    ).result_rows
    if found and found[0][0] != MARK:
        raise LabError(_not_ours("table", f"{namespace()}.{table}"))
    if found:
        client.command(f"DROP TABLE {_full(table)} SYNC")


def discard(client: Client, table: str) -> None:
    """Drop a table, if it exists, that a transport made next to one of the lab's."""
    client.command(f"DROP TABLE IF EXISTS {_full(table)} SYNC")


def load(
    client: Client, table: str, parquet: str | Path, logical_types: dict[str, str], order: Sequence[str] = ()
) -> None:
    """Fill a table from a dataset's Parquet file and merge each partition, if any, into one part.

    Raises ValueError for an `order`, because ClickHouse tables have their own.
    """
    if order:
        raise ValueError(f"order {order}: a ClickHouse table has its own order; pass none")
    # clickhouse-connect keeps a quoted name; it would read the name "a" (with quotes) as already quoted.
    columns = list(map(identifier, logical_types))
    with open(parquet, "rb") as file:
        for piece in _pieces(file):
            client.raw_insert(_full(table), columns, insert_block=piece, fmt="Parquet")
    where = f"database = '{namespace()}' AND name = {literal(table)}"
    if client.command(f"SELECT engine FROM system.tables WHERE {where}") != "Memory":
        client.command(f"OPTIMIZE TABLE {_full(table)} FINAL")


def _pieces(file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a Parquet file, or several with its rows if it is large: a server may hold in memory all that it parses."""
    if os.fstat(file.fileno()).st_size <= _PIECE_BYTES:
        yield file
        return
    whole = parquet.ParquetFile(file)
    groups = [whole.metadata.row_group(number) for number in range(whole.num_row_groups)]
    sizes = [sum(group.column(at).total_compressed_size for at in range(group.num_columns)) for group in groups]
    ends = [end // _PIECE_BYTES for end in accumulate(sizes)]
    for _, numbers in groupby(range(len(groups)), key=ends.__getitem__):
        piece = io.BytesIO()
        parquet.write_table(whole.read_row_groups(list(numbers)), piece, compression="lz4")
        yield io.BytesIO(piece.getbuffer())


def require_held(client: Client, parquet: str | Path, logical_types: Mapping[str, str]) -> None:
    """Raise LabError, with column and row, for lists of one Nested whose lengths differ."""
    require_even(parquet, logical_types)


def fill(client: Client, table: str, insertion: str) -> None:
    """Fill a table with one INSERT (`{table}` for its name)."""
    client.command(insertion.replace("{table}", _full(table), 1))


def fetch(client: Client, table: str, selection: str = "*") -> pa.Table:
    """Return the whole table as Arrow: all columns, or only the selected expressions."""
    selected = _with_labels(client, table) if selection == "*" else selection
    return with_bytes(client.query_arrow(f"SELECT {selected} FROM {_full(table)}"))


def _with_labels(client: Client, table: str) -> str:
    """Select all columns, and an Enum's label instead of its number, which Arrow would return."""
    of_table = f"database = '{namespace()}' AND table = {literal(table)}"
    enums = "(type LIKE 'Enum%' OR type LIKE 'Nullable(Enum%')"
    found = client.query(f"SELECT name FROM system.columns WHERE {of_table} AND {enums}").result_rows
    labels = ", ".join(f"toString({name}) AS {name}" for name in (identifier(row[0]) for row in found))
    return f"* REPLACE ({labels})" if labels else "*"


def _full(table: str) -> str:
    return f"{namespace()}.{identifier(table)}"


def end_sessions(client: Client) -> None:
    """End the queries of dead workers in the lab's database."""
    client.command(f"KILL QUERY WHERE current_database = '{namespace()}' ASYNC")


def settle(client: Client) -> None:
    """Bring the server to rest between runs: end queries of dead workers, wait until background merges are done."""
    end_sessions(client)
    _merged(client)


def say(client: Client, statement: str) -> None:
    """Have the server execute a statement."""
    client.command(statement)


def empty(client: Client, table: str) -> None:
    """Delete all rows of a table that sessions have open, and wait until background merges are done."""
    client.command(f"TRUNCATE TABLE {_full(table)}")
    _merged(client)


def _merged(client: Client) -> None:
    deadline = time.monotonic() + _MERGE_SECONDS
    running = f"SELECT count() FROM system.merges WHERE database = '{namespace()}'"
    while client.command(running) and time.monotonic() < deadline:
        time.sleep(0.05)


def said(error: Exception) -> str:
    """Return the server's message in one line, without version, stack trace and the client's additions."""
    lines = str(error).splitlines() or [""]
    line = next((line.strip() for line in lines if _EXCEPTION in line), lines[0])
    return line.rpartition(_EXCEPTION)[2].partition(" (version ")[0]


def _ping(parts: SplitResult) -> None:
    """Request /ping, which needs no password. Raises LabError if no ClickHouse answers within 5 s.

    clickhouse-connect has one timeout for all answers, which must allow for long queries.
    """
    port = parts.port or _HTTP.port
    try:
        url = f"{parts.scheme}://{parts.hostname}:{port}/ping"
        with urlopen(url, timeout=address.CONNECT_SECONDS) as answer:
            answer.read()
    except (OSError, HTTPException) as error:
        raise LabError(f"clickhouse_http at {parts.hostname}:{port}: no ClickHouse answers /ping: {error}") from None


def _check_native(uri: str) -> None:
    parts = address.split(uri, _NATIVE)
    address.reach(parts, _NATIVE)
    patience = urlencode(dict.fromkeys(("connect_timeout", "send_receive_timeout"), address.CONNECT_SECONDS))
    client = NativeClient.from_url(urlunsplit(parts._replace(path="", query=patience)))
    try:
        client.execute("SELECT 1")
    except (NativeError, EOFError, OSError) as error:
        raise LabError(_refused(parts, _NATIVE, error, uri)) from None
    finally:
        client.disconnect()


def _refused(parts: SplitResult, where: Address, error: Exception, uri: str) -> str:
    reason = address.redact(said(error), [uri]) or repr(error)
    return f"{where.name} at {parts.hostname}:{parts.port or where.port}: {reason}"


def _not_ours(what: str, name: str) -> str:
    return f'clickhouse: {what} "{name}" exists and was not made by the lab; rename or drop it, the lab will not'
