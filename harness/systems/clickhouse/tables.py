"""Tables of datasets in ClickHouse."""

from __future__ import annotations

from harness.datasets.specification import PLAIN, Specification
from harness.transports.clickhouse.sql import identifier, identifiers

TYPES = {"uuid": "UUID", "date": "Date", "int32": "Int32", "text": "String", "float64": "Float64"}


def definition(spec: Specification, profile: str) -> str | None:
    """Return CREATE TABLE with `{table}` for the name; None where there is no such profile, or no table of it.

    As in the article, a text has the empty one as its default, and columns of few texts are LowCardinality.
    """
    engines = {PLAIN: _merge_tree(spec), "memory": "Memory"}
    if profile not in engines or not spec.in_databases:
        return None
    columns = ", ".join(f"{identifier(name)} {_type(spec, name)}" for name in spec.kinds)
    return f"CREATE TABLE {{table}} ({columns}) ENGINE = {engines[profile]}"


def _type(spec: Specification, name: str) -> str:
    of_kind = TYPES[spec.kinds[name]]
    if spec.kinds[name] != "text":
        return of_kind
    return (f"LowCardinality({of_kind})" if name in spec.few_texts else of_kind) + " DEFAULT ''"


def _merge_tree(spec: Specification) -> str:
    parted = f"PARTITION BY toYYYYMM({identifier(spec.month)}) " if spec.month else ""
    return f"MergeTree() {parted}ORDER BY ({identifiers(spec.order)})"
