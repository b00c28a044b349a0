"""Settings of Postgres that are parameters of a case, and what a write has left.

`synchronous_commit` (on, off): whether a commit waits until its log is on the disk; of a session, by the options of its
address (https://www.postgresql.org/docs/current/runtime-config-wal.html). `indexes`: how many further ones the table
has while it is written, each on the next column behind the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from harness.datasets.specification import Specification
from harness.model import NAMESPACE, LabError, Value
from harness.systems.postgres.client import query
from harness.transports.postgres.sql import identifier, literal

NAMES = frozenset({"synchronous_commit", "indexes"})


def address(uri: str, parameters: Mapping[str, Value]) -> str:
    """Return the address of sessions with these settings."""
    if "synchronous_commit" not in parameters:
        return uri
    value = str(parameters["synchronous_commit"])
    if value not in ("on", "off"):
        raise LabError(f"expected synchronous_commit to be on or off, found {value}")
    parts = urlsplit(uri)
    asked = dict(parse_qsl(parts.query))
    asked["options"] = f"{asked.get('options', '')} -csynchronous_commit={value}".strip()
    return urlunsplit(parts._replace(query=urlencode(asked, quote_via=quote)))


def statements(spec: Specification, table: str, parameters: Mapping[str, Value]) -> list[str]:
    """Return what is said to the server once an empty table is made."""
    number, columns = int(parameters.get("indexes", 0)), list(spec.kinds)[1:]
    if number > len(columns):
        raise LabError(f"expected at most {len(columns)} indexes of {spec.name}, found {number}")
    return [f"CREATE INDEX ON {identifier(table)} ({identifier(name)})" for name in columns[:number]]


def left(connection: Any, table: str) -> dict[str, int]:
    """Return `table_bytes`: what a table takes on disk with its indexes."""
    full = literal(f"{identifier(NAMESPACE)}.{identifier(table)}")
    return {"table_bytes": int(query(connection, f"SELECT pg_total_relation_size({full})")[0][0])}
