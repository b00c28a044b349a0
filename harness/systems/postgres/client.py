"""Postgres through the ADBC driver, the reference client: https://arrow.apache.org/adbc/current/driver/postgresql.html

No published transport uses ADBC. It returns exact Arrow types and moves a million rows in about a second.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlunsplit

import pyarrow as pa
from adbc_driver_manager import Error
from adbc_driver_manager.dbapi import Connection
from adbc_driver_postgresql import dbapi

from harness import address
from harness.machine.variables import namespace
from harness.model import MARK, LabError, Scalar, Server, first_line
from harness.systems.postgres import SYSTEM, carried, characters
from harness.transports.postgres.sql import identifier, literal

# Detect a pooler in front of Postgres that gives each transaction another session, which loses the lab's settings.
#
# https://www.pgbouncer.org/features.html

FOUND = "a pooler in front of the server, such as PgBouncer in transaction mode, does not keep what a session sets"
INSTEAD = "give the address of the server itself"
_SETTING = "dataframe_io_lab.session"


def require_none(
    connect: Callable[[], Connection], query: Callable[[Connection, str], list[tuple[Scalar, ...]]]
) -> None:
    """Raise LabError if two connections share sessions, or one lacks the search path that it requested.

    `connect` opens a connection of the lab, `query` returns a statement's rows. A setting of the first connection must
    exist only there, even while the second one holds a session in a transaction.
    """
    with connect() as first, connect() as second:
        token = secrets.token_hex(8)
        query(first, f"SELECT set_config('{_SETTING}', '{token}', false)")
        second.adbc_connection.set_autocommit(False)
        asked = f"SELECT current_setting('{_SETTING}', true), current_setting('search_path')"
        of_second, path = query(second, asked)[0]
        of_first = query(first, asked)[0][0]
        second.rollback()
        query(first, f"SELECT set_config('{_SETTING}', '', false)")
    if of_second == token or of_first != token or path.strip('"') != namespace():
        raise LabError(f"postgres: {FOUND}; {INSTEAD}")


(_ADDRESS,) = SYSTEM.addresses
# Any fixed number: with the namespace it identifies the advisory lock that keeps two runs off the same namespace.
_LOCK = 0x6C6162  # "lab"


def transport_uri(endpoint: str, uri: str) -> str:
    """Return the URI for transports, with the lab's schema as search path."""
    parts = address.split(uri, _ADDRESS)
    query = dict(parse_qsl(parts.query))
    query["options"] = f"{query.get('options', '')} -csearch_path={namespace()}".strip()
    return urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))


def open_connection(endpoints: dict[str, str]) -> Connection:
    """Open the reference connection, autocommitting. Raises LabError: unreachable server, wrong user or password."""
    return connected(transport_uri("postgres", endpoints["postgres"]))


def connected(uri: str) -> Connection:
    """Open an autocommitting connection that uses UTF-8, which the driver assumes for all strings. Raises LabError.

    The encoding of the database, an address, a role or the environment does not matter.
    """
    parts = address.split(uri, _ADDRESS)
    query = dict(parse_qsl(parts.query)) | {"client_encoding": "UTF8", "connect_timeout": str(address.CONNECT_SECONDS)}
    address.reach(parts, _ADDRESS)
    try:
        opened: Connection = dbapi.connect(
            urlunsplit(parts._replace(query=urlencode(query, quote_via=quote))), autocommit=True
        )
        return opened
    except Error as error:
        reason = address.redact(said(error), [uri])
        if "unsupported startup parameter" in reason:
            reason = f"{FOUND} ({reason}); {INSTEAD}"
        raise LabError(f"postgres at {parts.hostname}:{parts.port or _ADDRESS.port}: {reason}") from None


def check(endpoints: dict[str, str]) -> Server:
    """Return the server's version, extensions and changed settings. Raises LabError if it cannot be used."""
    require_none(partial(open_connection, endpoints), query)
    with open_connection(endpoints) as connection:
        version = query(connection, "SELECT current_setting('server_version')")[0][0]
        extensions = {row[0] for row in query(connection, "SELECT extname FROM pg_extension")}
        changed = query(
            connection,
            "SELECT name, setting FROM pg_settings WHERE source NOT IN ('default', 'override', 'client', 'session') "
            "AND name NOT IN ('port', 'listen_addresses') AND name NOT LIKE '%file%' AND name NOT LIKE '%director%' "
            "ORDER BY name",
        )
    return Server(version, frozenset({"postgres", *extensions}), dict(changed))


def offers(server: Server, endpoints: dict[str, str]) -> str:
    """Name the extensions."""
    return "extensions: " + ", ".join(sorted(server.offers - {"postgres"}))


def ensure_namespace(connection: Connection) -> None:
    """Create the lab's schema, or accept one that the lab made. Raises LabError: not ours, not allowed."""
    try:
        _ensure_schema(connection)
    except Error as error:
        raise LabError(f'postgres: cannot make the schema "{namespace()}": {said(error)}') from None


def _ensure_schema(connection: Connection) -> None:
    found = query(
        connection, f"SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = '{namespace()}'"
    )
    if not found:
        _make(connection, f"CREATE SCHEMA {namespace()}", f"SCHEMA {namespace()}")
    elif found[0][0] != MARK:
        raise LabError(_not_ours("schema", namespace()))


def create(connection: Connection, table: str, definition: str) -> None:
    """Create an empty table of the lab, replacing an earlier one. Raises LabError if the lab did not make that."""
    drop(connection, table)
    _make(connection, definition.replace("{table}", identifier(table), 1), f"TABLE {identifier(table)}")


def drop(connection: Connection, table: str) -> None:
    """Drop a table of the lab if it exists. Raises LabError if the lab did not make the table of this name."""
    found = query(
        connection,
        "SELECT obj_description(c.oid, 'pg_class') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = '{namespace()}' AND c.relname = {literal(table)}",
    )
    if found and found[0][0] != MARK:
        raise LabError(_not_ours("table", f"{namespace()}.{table}"))
    if found:
        _execute(connection, "SET lock_timeout = '10s'", f"DROP TABLE {identifier(table)}")


def discard(connection: Connection, table: str) -> None:
    """Drop a table, if it exists, that a transport made next to one of the lab's."""
    _execute(connection, "SET lock_timeout = '10s'", f"DROP TABLE IF EXISTS {namespace()}.{identifier(table)}")


def load(
    connection: Connection, table: str, parquet: str | Path, logical_types: dict[str, str], order: Sequence[str] = ()
) -> None:
    """Fill a table from a dataset's Parquet file, sorted if requested, and leave it vacuumed and analysed."""
    with connection.cursor() as cursor:
        rows = carried.in_order(parquet, logical_types, order) if order else carried.streamed(parquet, logical_types)
        beside, before, after = carried.by_strings(table, logical_types)
        _execute(connection, *before)
        cursor.adbc_ingest(beside or table, rows, mode="append", db_schema_name="pg_temp" if beside else namespace())
    _execute(connection, *after, f"VACUUM (FREEZE, ANALYZE) {identifier(table)}")


def require_held(connection: Connection, parquet: str | Path, logical_types: Mapping[str, str]) -> None:
    """Raise LabError, with column and row, for a character that the database's encoding lacks."""
    characters.require_held(partial(query, connection), parquet, logical_types)


def fill(connection: Connection, table: str, insertion: str) -> None:
    """Fill a table with one INSERT (`{table}` for its name) and leave it vacuumed and analysed."""
    full = identifier(table)
    _execute(connection, insertion.replace("{table}", full, 1), f"VACUUM (FREEZE, ANALYZE) {full}")


def create_enum(connection: Connection, name: str, labels: Sequence[str]) -> None:
    """Create an enum of the lab, replacing an earlier one, which no table may use any more."""
    drop_enum(connection, name)
    full, listed = identifier(name), ", ".join(map(literal, labels))
    _make(connection, f"CREATE TYPE {full} AS ENUM ({listed})", f"TYPE {full}")


def drop_enum(connection: Connection, name: str) -> None:
    """Drop an enum of the lab if it exists. Raises LabError if the lab did not make the type of this name."""
    found = query(
        connection,
        "SELECT obj_description(t.oid, 'pg_type') FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace "
        f"WHERE n.nspname = '{namespace()}' AND t.typname = {literal(name)}",
    )
    if found and found[0][0] != MARK:
        raise LabError(_not_ours("type", f"{namespace()}.{name}"))
    if found:
        _execute(connection, f"DROP TYPE {identifier(name)} CASCADE")  # with columns left by a run that was killed


def fetch(connection: Connection, table: str, selection: str = "*") -> pa.Table:
    """Return the whole table as Arrow: all columns, or only the selected expressions."""
    columns = query(connection, carried.question(table)) if selection == "*" else []
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {carried.select_list(columns) if columns else selection} FROM {identifier(table)}")
        return carried.brought(cursor.fetch_arrow_table(), columns)


def end_sessions(connection: Connection) -> None:
    """End the sessions of dead workers that hold tables of the lab."""
    query(
        connection,
        "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation "
        f"JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '{namespace()}' "
        "AND l.pid <> pg_backend_pid() "
        "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )


def settle(connection: Connection) -> None:
    """Bring the server to rest between runs: end sessions of dead workers that hold our tables, write a checkpoint."""
    end_sessions(connection)
    _checkpoint(connection)


def _checkpoint(connection: Connection) -> None:
    # The role is new in Postgres 15; before, only a superuser could do this.
    may_checkpoint = (
        "SELECT rolsuper OR EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'pg_checkpoint' "
        "AND pg_has_role(current_user, r.oid, 'USAGE')) FROM pg_roles WHERE rolname = current_user"
    )
    if query(connection, may_checkpoint)[0][0]:
        _execute(connection, "CHECKPOINT")


def say(connection: Connection, statement: str) -> None:
    """Have the server execute a statement."""
    _execute(connection, statement)


def empty(connection: Connection, table: str) -> None:
    """Delete all rows of a table that sessions have open, and write a checkpoint."""
    _execute(connection, "SET lock_timeout = '10s'", f"TRUNCATE {identifier(table)}")
    _checkpoint(connection)


def hold(connection: Connection, run_id: str) -> str:
    """Lock the namespace for this run while the connection lives; return the id of the run that holds it, if any."""
    _execute(connection, f"SET application_name = 'dataframe-io-lab {run_id}'")
    ours = zlib.crc32(namespace().encode())
    if query(connection, f"SELECT pg_try_advisory_lock({_LOCK}, {ours}::bit(32)::int)")[0][0]:
        return ""
    holders = query(
        connection,
        "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' "
        f"AND l.database = a.datid AND l.classid = {_LOCK} AND l.objid = {ours} AND l.objsubid = 2 AND l.granted",
    )
    return holders[0][0].removeprefix("dataframe-io-lab ") if holders else "unknown"


def said(error: Exception) -> str:
    """Return the server's message, without the driver's additions."""
    text = str(error).strip()
    of_server = next((text.rpartition(mark)[2] for mark in ("FATAL:  ", "ERROR:  ") if mark in text), text)
    return first_line(of_server)


def _make(connection: Connection, creation: str, what: str) -> None:
    """Create an object and mark it as the lab's, both or neither: an unmarked object would belong to no run."""
    connection.adbc_connection.set_autocommit(False)
    try:
        _execute(connection, creation, f"COMMENT ON {what} IS {literal(MARK)}")
        connection.commit()
    except BaseException:
        with suppress(Exception):  # the connection may be gone: only the first error matters
            connection.rollback()
            connection.adbc_connection.set_autocommit(True)
        raise
    connection.adbc_connection.set_autocommit(True)


def _execute(connection: Connection, *statements: str) -> None:
    for statement in statements:
        with connection.cursor() as cursor:
            cursor.execute(statement)


def query(connection: Connection, statement: str) -> list[tuple[Scalar, ...]]:
    """Return the rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def _not_ours(what: str, name: str) -> str:
    return f'postgres: {what} "{name}" exists and was not made by the lab; rename or drop it yourself, the lab will not'
