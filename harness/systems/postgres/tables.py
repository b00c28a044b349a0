"""Tables of datasets in Postgres."""

from __future__ import annotations

from harness.datasets.specification import PLAIN, Specification
from harness.transports.postgres.sql import identifier, identifiers

TYPES = {"uuid": "uuid", "date": "date", "int32": "integer", "text": "text", "float64": "double precision"}
# Profile -> how the table is made, and whether with its key.
_PROFILES = {
    PLAIN: ("CREATE TABLE", True),
    "heap": ("CREATE TABLE", False),
    "unlogged": ("CREATE UNLOGGED TABLE", False),
}


def definition(spec: Specification, profile: str) -> str | None:
    """Return CREATE TABLE with `{table}` for the name; None where there is no such profile, or no table of it.

    As in the article, no column is nullable and a text has the empty one as its default.
    """
    if profile not in _PROFILES or not spec.in_databases:
        return None
    create, keyed = _PROFILES[profile]
    columns = [
        f"{identifier(name)} {TYPES[kind]} NOT NULL" + (" DEFAULT ''" if kind == "text" else "")
        for name, kind in spec.kinds.items()
    ]
    if keyed:
        columns.append(f"PRIMARY KEY ({identifiers(spec.order)})")
    return f"{create} {{table}} ({', '.join(columns)})"
