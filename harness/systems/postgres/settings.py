"""Postgres settings that are parameters of a case, and the state that a write leaves.

`synchronous_commit` (on, off): whether a commit waits until its log is on disk. It is set per session, in the options
of its address (https://www.postgresql.org/docs/current/runtime-config-wal.html). `indexes`: the number of additional
indexes on the table during the write, each on the next column after the first. `rows_before`: the number of rows that
the table has before the write, with other keys; they are removed again before the written rows are compared.

ALTER SYSTEM sets these for the whole server; later users get the defaults again. `wal_level` (minimal, replica,
logical): how much the log records. The server restarts for it; `minimal` also turns off log senders. `max_wal_mb`: the
log size before a checkpoint (max_wal_size; default 1,024, minimum 32). A write of more than half of that meets
checkpoints. `max_prepared_transactions` (default 0): how many connections but one may commit together, in two phases.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from harness.datasets.specification import Specification
from harness.machine.variables import namespace
from harness.model import Connection, LabError, Value
from harness.systems.postgres.client import query, say
from harness.transports.postgres.sql import identifier, literal

OF_WHOLE_SERVER = frozenset({"wal_level", "max_wal_mb", "max_prepared_transactions"})
NAMES = frozenset({"synchronous_commit", "indexes", "rows_before"}) | OF_WHOLE_SERVER
_AT_START = ("wal_level", "max_prepared_transactions")  # the server restarts for these
_LEVELS = ("minimal", "replica", "logical")
_RELOAD_SECONDS = 10.0
# Stored in settings of the reference connection for `left`; other users' tables and statistics stay untouched.
_WAL = ("lab.wal_began", "pg_current_wal_insert_lsn()")
_LAST_BEFORE = "lab.last_before"  # the place of the last row of `filled`
# Since Postgres 17.
_CHECKPOINTS = ("lab.checkpoints_began", "(SELECT num_timed + num_requested FROM pg_stat_checkpointer)")


def configure(connection: Connection, parameters: Mapping[str, Value]) -> bool:
    """Set the whole server as these parameters require, and reset the settings they do not name.

    Returns whether the server must restart for that. Raises LabError for an unknown level, and if the server does not
    apply a setting in time.
    """
    defaults: dict[str, str] = dict(query(connection, "SELECT name, boot_val FROM pg_settings"))
    wanted = {name: defaults[name] for name in (*_AT_START, "max_wal_senders", "max_wal_size")} | _asked(parameters)
    for name, value in wanted.items():
        asked = f"RESET {name}" if value == defaults[name] else f"SET {name} = {literal(value)}"
        say(connection, f"ALTER SYSTEM {asked}")
    if any(_is(connection, name) != wanted[name] for name in _AT_START):
        return True
    say(connection, "SELECT pg_reload_conf()")
    deadline = time.monotonic() + _RELOAD_SECONDS
    while (found := _is(connection, "max_wal_size")) != wanted["max_wal_size"]:
        if time.monotonic() > deadline:
            raise LabError(f"postgres: max_wal_size is still {found} MB instead of {wanted['max_wal_size']} MB")
        time.sleep(0.01)
    return False


def _asked(parameters: Mapping[str, Value]) -> dict[str, str]:
    """Return the settings that these parameters require, as pg_settings shows them."""
    asked = {}
    if "max_wal_mb" in parameters:
        asked["max_wal_size"] = str(parameters["max_wal_mb"])  # pg_settings counts it in MB
    if "max_prepared_transactions" in parameters:
        asked["max_prepared_transactions"] = str(parameters["max_prepared_transactions"])
    if "wal_level" in parameters:
        asked["wal_level"] = level = str(parameters["wal_level"])
        if level not in _LEVELS:
            raise LabError(f"wal_level {level}: choose from {', '.join(_LEVELS)}")
        if level == "minimal":
            asked["max_wal_senders"] = "0"
    return asked


def _is(connection: Connection, name: str) -> str:
    return str(query(connection, f"SELECT setting FROM pg_settings WHERE name = {literal(name)}")[0][0])


def address(uri: str, parameters: Mapping[str, Value]) -> str:
    """Return the address of sessions with these settings."""
    if "synchronous_commit" not in parameters:
        return uri
    value = str(parameters["synchronous_commit"])
    if value not in ("on", "off"):
        raise LabError(f"synchronous_commit {value}: choose on or off")
    parts = urlsplit(uri)
    asked = dict(parse_qsl(parts.query))
    asked["options"] = f"{asked.get('options', '')} -csynchronous_commit={value}".strip()
    return urlunsplit(parts._replace(query=urlencode(asked, quote_via=quote)))


def statements(spec: Specification, table: str, parameters: Mapping[str, Value]) -> list[str]:
    """Return the statements to run after an empty table is created."""
    number, columns = int(parameters.get("indexes", 0)), list(spec.logical_types)[1:]
    if number > len(columns):
        raise LabError(f"indexes {number}: choose at most {len(columns)} for {spec.name}")
    made = [f"CREATE INDEX ON {identifier(table)} ({identifier(name)})" for name in columns[:number]]
    if OF_WHOLE_SERVER & parameters.keys():
        kept = ", ".join(f"set_config({literal(name)}, {now}::text, false)" for name, now in (_WAL, _CHECKPOINTS))
        made.append(f"SELECT {kept}")
    return made


def filled(spec: Specification, table: str, source: str, rows: int) -> list[str]:
    """Return the statements that put this many rows of another table into an empty one, with other keys.

    Raises LabError for a dataset whose rows have no key that can be made another one.
    """
    (key, *more) = spec.row_key or ("",)
    if more or spec.logical_types.get(key) != "uuid":
        raise LabError(f"rows_before: the key of {spec.name} is not a uuid; remove the parameter")
    names = {name: identifier(name) for name in spec.logical_types}
    values = [f"md5({of}::text || 'before')::uuid" if name == key else of for name, of in names.items()]
    into = identifier(table)
    return [
        f"INSERT INTO {into} ({', '.join(names.values())}) "
        f"SELECT {', '.join(values)} FROM {identifier(source)} LIMIT {rows}",
        f"VACUUM (ANALYZE) {into}",
        "CHECKPOINT",
        f"SELECT set_config({literal(_LAST_BEFORE)}, max(ctid)::text, false) FROM {into}",
    ]


def remove_rows_before(connection: Connection, table: str) -> int:
    """Remove the rows that `filled` put into a table, which come first in it; return how many were still there."""
    gone = f"DELETE FROM {identifier(table)} WHERE ctid <= current_setting({literal(_LAST_BEFORE)})::tid RETURNING 1"
    return int(query(connection, f"WITH gone AS ({gone}) SELECT count(*) FROM gone")[0][0])


def left(connection: Connection, table: str, parameters: Mapping[str, Value]) -> dict[str, int]:
    """Return `table_bytes`, a table's size on disk with its indexes.

    With a parameter of the whole server, also return `wal_bytes` and `checkpoints`. They are the log written and the
    checkpoints begun since the empty table was created, including the warm-up.
    """
    full = literal(f"{identifier(namespace())}.{identifier(table)}")
    found = {"table_bytes": int(query(connection, f"SELECT pg_total_relation_size({full})")[0][0])}
    if not OF_WHOLE_SERVER & parameters.keys():
        return found
    (wal, wal_now), (checkpoints, checkpoints_now) = _WAL, _CHECKPOINTS
    since = f"{wal_now} - current_setting({literal(wal)})::pg_lsn"
    begun = f"{checkpoints_now} - current_setting({literal(checkpoints)})::bigint"
    ((wal_bytes, count),) = query(connection, f"SELECT ({since})::bigint, ({begun})::bigint")
    return found | {"wal_bytes": int(wal_bytes), "checkpoints": int(count)}
