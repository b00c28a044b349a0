"""Postgres through the ADBC driver, the reference client: https://arrow.apache.org/adbc/current/driver/postgresql.html

No published transport uses ADBC. It returns exact Arrow types and moves a million rows in about a second.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlunsplit

import polars as pl
import pyarrow as pa
from adbc_driver_manager import Error
from adbc_driver_manager.dbapi import Connection
from adbc_driver_postgresql import dbapi
from pyarrow.parquet import ParquetFile

from harness import address
from harness.check.canonical import NotConvertible, load_frame
from harness.check.logical_types import depth, digits, is_wide, items, plain, polars_dtype, stored
from harness.machine.variables import namespace
from harness.model import MARK, LabError, Scalar, Server
from harness.systems.postgres import SYSTEM
from harness.systems.postgres.tables import STORED, column_type
from harness.transports.postgres.sql import identifier, identifiers, literal

# Rows in the forms in which ADBC carries them into Postgres and back.
#
# A type that ADBC lacks goes as the next larger one. ADBC would silently change or refuse columns of two types:
#
# - It turns an interval into months, days and nanoseconds, which end at 292 years and are not a duration. The lab
#   selects its microseconds instead, with `extract`, which is exact since Postgres 14. A day counts 24 hours, as
#   clients write a duration of a day. An interval with months has no fixed length and arrives as a null, which no
#   client wrote.
#   https://www.postgresql.org/docs/current/functions-datetime.html
# - It flattens an array of several dimensions into a list of all items. It does not ingest lists of lists, of decimals
#   or of timestamps. They go as array literals through a temporary table, whose rows the server casts. Arrays of
#   several dimensions and of decimals come back as JSON.
#   https://www.postgresql.org/docs/current/arrays.html
#
# It assumes UTF-8 for all strings. Strings of a database in another encoding arrive as the server's bytes, whatever the
# connection's encoding. In SQL_ASCII these are the bytes that a client wrote.
# https://www.postgresql.org/docs/current/functions-binarystring.html

Columns = Sequence[tuple[Scalar, ...]]  # name, type and declared dimensions of each, and the database's encoding
_MICROSECONDS = (
    "CASE WHEN extract(year FROM {0}) = 0 AND extract(month FROM {0}) = 0 "
    "THEN (extract(epoch FROM {0}) * 1000000)::bigint END"
)
_JSON = "array_to_json({0})::text"
_BYTES = "convert_to({0}::text, '{1}')"
_STRINGS = {"text", "character varying", "json", "jsonb"}
# Array type -> conversion of a JSON item to Python; NaN and infinity are strings in JSON.
_ITEMS: dict[str, Callable[[Scalar], Scalar]] = {
    "real[]": float,
    "double precision[]": float,
    "date[]": dt.date.fromisoformat,
    "numeric[]": str,
    "timestamp without time zone[]": dt.datetime.fromisoformat,
    "timestamp with time zone[]": dt.datetime.fromisoformat,
    "time without time zone[]": dt.time.fromisoformat,
    "bytea[]": lambda found: bytes.fromhex(found.removeprefix("\\x")),
}
_AS_STRINGS = {"decimal", "timestamp", "timestamp_tz"}  # list items that ADBC does not ingest


def in_order(parquet: str | Path, logical_types: dict[str, str], order: Sequence[str]) -> pa.Table:
    """Return the rows of a file sorted, as ADBC ingests them."""
    frame = load_frame(parquet, "polars", logical_types)
    made = frame.with_columns([_ingestible(frame[name], logical) for name, logical in logical_types.items()])
    return _with_wide(made.sort(order).to_arrow(), logical_types)


def streamed(parquet: str | Path, logical_types: dict[str, str]) -> pa.RecordBatchReader:
    """Return the rows of a file as ADBC ingests them, in pieces: the file may be larger than memory."""

    def made(batch: pa.RecordBatch) -> pa.Table:
        frame = pl.DataFrame(pl.from_arrow(batch))
        made = frame.select([_ingestible(frame[name], logical) for name, logical in logical_types.items()])
        return _with_wide(made.to_arrow(), logical_types)

    file = ParquetFile(parquet)
    first = made(pa.RecordBatch.from_pylist([], file.schema_arrow))
    pieces = (batch for piece in file.iter_batches() for batch in made(piece).cast(first.schema).to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, pieces)


def _ingestible(series: pl.Series, logical: str) -> pl.Series:
    """Return a column as ADBC ingests it: a UUID as 16 bytes, and a type that Postgres lacks as the next larger one."""
    if logical == "uuid":  # a string is refused (SQLSTATE 22P03)
        return series.str.replace_all("-", "", literal=True).str.decode("hex")
    if logical == "array(uuid)":
        return series.list.eval(pl.element().str.replace_all("-", "", literal=True).str.decode("hex"))
    if _goes_as_text(logical):
        strings = [None if lists is None else _array(lists) for lists in series.to_list()]
        return pl.Series(series.name, strings, pl.String)
    in_table = stored(logical, STORED)
    return series if in_table == logical else series.cast(polars_dtype(in_table))


def _with_wide(rows: pa.Table, logical_types: dict[str, str]) -> pa.Table:
    """Return rows in which decimals that polars holds as strings are Arrow decimals."""
    for place, (name, logical) in enumerate(logical_types.items()):
        if is_wide(logical):
            rows = rows.set_column(place, name, rows.column(place).cast(pa.decimal256(*digits(logical))))
    return rows


def _goes_as_text(logical: str) -> bool:
    return depth(logical) > 1 or (depth(logical) == 1 and plain(items(stored(logical, STORED))) in _AS_STRINGS)


def _array(value: Scalar) -> str:
    """Return lists as an array literal, with every item in quotes."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"{{{','.join(map(_array, value))}}}"
    text = f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def by_strings(table: str, logical_types: dict[str, str]) -> tuple[str, list[str], list[str]]:
    """Return a temporary table for columns that ADBC ingests as strings, and the statements before and after.

    Returns an empty name and no statements if ADBC ingests all columns directly. The table is in the schema `pg_temp`.
    """
    strings = [name for name, logical in logical_types.items() if _goes_as_text(logical)]
    if not strings:
        return "", [], []
    beside = f"{table}_strings"[-60:]
    full, into = f"pg_temp.{identifier(beside)}", identifier(table)
    cast = (
        f"{identifier(name)}::{column_type(logical_types[name])}" if name in strings else identifier(name)
        for name in logical_types
    )
    before = [
        f"DROP TABLE IF EXISTS {full}",
        f"CREATE TEMPORARY TABLE {identifier(beside)} (LIKE {into})",
        f"ALTER TABLE {full} {', '.join(f'ALTER {identifier(name)} TYPE text' for name in strings)}",
    ]
    insertion = f"INSERT INTO {into} ({identifiers(logical_types)}) SELECT {', '.join(cast)} FROM {full}"
    return beside, before, [insertion, f"DROP TABLE {full}"]


def question(table: str) -> str:
    """Return the query for `Columns` of a table."""
    return (
        "SELECT attname, format_type(atttypid, NULL), attndims, getdatabaseencoding() FROM pg_attribute "
        f"WHERE attrelid = {literal(identifier(table))}::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )


def select_list(columns: Columns) -> str:
    """Return the select list with which ADBC fetches every value; `columns` answer its `question`."""
    forms = [_form(*column) for column in columns]
    if not any(forms):
        return "*"
    names = [identifier(name) for name, *_ in columns]
    return ", ".join(f"{form} AS {name}" if form else name for name, form in zip(names, forms, strict=True))


def _form(name: str, of: str, dimensions: int, encoding: str) -> str:
    """Return the expression that fetches a column; empty if the column arrives unchanged."""
    quoted = identifier(name)
    if of == "interval":
        return _MICROSECONDS.format(quoted)
    as_json = _as_json(of, dimensions, encoding)
    form = _JSON.format(quoted) if as_json else quoted
    if _as_bytes(of, encoding):
        return _BYTES.format(form, "SQL_ASCII" if encoding == "SQL_ASCII" else "UTF8")
    return form if as_json else ""


def _as_json(of: str, dimensions: int, encoding: str) -> bool:
    return dimensions > 1 or of == "numeric[]" or (of.endswith("[]") and _as_bytes(of, encoding))


def _as_bytes(of: str, encoding: str) -> bool:
    return encoding != "UTF8" and of.removesuffix("[]") in _STRINGS


def brought(rows: pa.Table, columns: Columns) -> pa.Table:
    """Return rows of such a select list with strings instead of bytes, and lists instead of JSON.

    Raises NotConvertible for bytes that are not UTF-8, and if a value lacks the column's number of dimensions.
    """
    for place, (name, of, dimensions, encoding) in enumerate(columns):
        if _as_bytes(of, encoding):
            rows = rows.set_column(place, name, _strings(name, rows.column(place), of))
        if _as_json(of, dimensions, encoding):
            rows = rows.set_column(place, name, _lists(name, rows.column(place), of, max(dimensions, 1)))
    return rows


def _strings(name: str, found: pa.ChunkedArray, of: str) -> pa.ChunkedArray:
    try:
        return found.cast(pa.large_string())
    except pa.ArrowInvalid:
        raise NotConvertible(f"{name}: {of} does not convert to strings, its bytes are not UTF-8") from None


def _lists(name: str, strings: pa.ChunkedArray, of: str, dimensions: int) -> pa.Array:
    item = _ITEMS.get(of, lambda found: found)
    # -0 is not an integer, and a float lacks some digits of a decimal.
    decoder = json.JSONDecoder(
        parse_int=item if item in (float, str) else int, parse_float=item if item is str else None
    )

    def made(value: Scalar) -> Scalar:
        if value is None:
            return None
        return [made(one) for one in value] if isinstance(value, list) else item(value)

    arrow_type = _arrow_type(of)
    for _ in range(dimensions):
        arrow_type = pa.large_list(arrow_type)
    try:
        return pa.array(
            [None if text is None else made(decoder.decode(text)) for text in strings.to_pylist()], arrow_type
        )
    except (TypeError, ValueError):
        raise NotConvertible(f"{name}: {of} does not convert to lists of {dimensions} levels") from None


def _arrow_type(of: str) -> pa.DataType:
    known = {"boolean": pa.bool_(), "smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64()}
    known |= {"timestamp without time zone": pa.timestamp("us"), "timestamp with time zone": pa.timestamp("us", "UTC")}
    known |= {"bytea": pa.large_binary(), "time without time zone": pa.time64("us")}
    known |= {"real": pa.float32(), "double precision": pa.float64(), "date": pa.date32()}
    return known.get(of.removesuffix("[]"), pa.large_string())


# Characters that a database in an encoding other than UTF-8 lacks; the server itself is asked.
#
# https://www.postgresql.org/docs/current/multibyte.html

_HOLD_ALL = {"UTF8", "SQL_ASCII"}
_BEYOND_ASCII = r"[^\x00-\x7f]"
_UNTRANSLATABLE = "22P05"  # https://www.postgresql.org/docs/current/errcodes-appendix.html
_Ask = Callable[[str], Sequence[tuple[Scalar, ...]]]


def require_characters(ask: _Ask, parquet: str | Path, logical_types: Mapping[str, str]) -> None:
    """Raise LabError, with column and row, for a string of a Parquet file that the database cannot hold.

    `ask` returns the rows of a statement.
    """
    ((encoding,),) = ask("SELECT getdatabaseencoding()")
    if encoding in _HOLD_ALL:
        return
    for place, name in enumerate(logical_types):
        strings = _strings_of(pl.read_parquet(parquet, columns=[place], memory_map=False).to_series())
        if strings is None:
            continue
        there = strings["string"].str.extract_all(_BEYOND_ASCII).explode().drop_nulls().unique().sort().to_list()
        if missing := _first_missing(ask, there):
            row = strings.filter(pl.col("string").str.contains(missing, literal=True))["row"][0]
            raise LabError(
                f'column "{name}", row {row}: the database is in {encoding}, which does not have all of these '
                "characters; use a database in UTF8, or replace them"
            )


def _strings_of(series: pl.Series) -> pl.DataFrame | None:
    """Return the strings of a column, alone or in lists, with their row numbers; None for other columns."""
    found = pl.DataFrame({"row": pl.int_range(len(series), eager=True), "string": series})
    while isinstance(found.schema["string"], pl.List):
        found = found.explode("string")
    is_string = found.schema["string"] in (pl.String, pl.Categorical, pl.Enum)
    return found.cast({"string": pl.String}) if is_string else None


def _first_missing(ask: _Ask, characters: Sequence[str]) -> str:
    """Return the first of these characters that the database lacks; empty if it has all."""
    if not characters or _has(ask, characters):
        return ""
    if len(characters) == 1:
        return characters[0]
    middle = len(characters) // 2
    return _first_missing(ask, characters[:middle]) or _first_missing(ask, characters[middle:])


def _has(ask: _Ask, characters: Sequence[str]) -> bool:
    try:
        ask(f"SELECT length(convert_from('\\x{''.join(characters).encode().hex()}', 'UTF8'))")
    except Error as error:
        if error.sqlstate != _UNTRANSLATABLE:
            raise
        return False
    return True


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
        rows = in_order(parquet, logical_types, order) if order else streamed(parquet, logical_types)
        beside, before, after = by_strings(table, logical_types)
        _execute(connection, *before)
        cursor.adbc_ingest(beside or table, rows, mode="append", db_schema_name="pg_temp" if beside else namespace())
    _execute(connection, *after, f"VACUUM (FREEZE, ANALYZE) {identifier(table)}")


def require_held(connection: Connection, parquet: str | Path, logical_types: Mapping[str, str]) -> None:
    """Raise LabError, with column and row, for a character that the database's encoding lacks."""
    require_characters(partial(query, connection), parquet, logical_types)


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
    columns = query(connection, question(table)) if selection == "*" else []
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {select_list(columns) if columns else selection} FROM {identifier(table)}")
        return brought(cursor.fetch_arrow_table(), columns)


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
    return of_server.partition("\n")[0]


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
