"""Rewrite a user's query so that every value arrives unchanged: Arrow lacks some ClickHouse types and uses numbers.

https://clickhouse.com/docs/interfaces/formats/Arrow
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from harness.model import LabError
from harness.transports.clickhouse.sql import identifier

# Types that arrive as numbers or bytes -> expression to select instead.
_FORMS = (
    (re.compile(r"DateTime(\('[^']*'\))?"), "toDateTime64({0}, 0)"),
    (re.compile(r"Enum(8|16)\(.*\)", re.DOTALL), "toString({0})"),
    (re.compile(r"IPv[46]"), "toString({0})"),
    (re.compile(r"BFloat16"), "toFloat32({0})"),
)
_OTHER = r"\b(U?Int(?:128|256)|Interval\w+|DateTime(?!64)|Enum(?:8|16)|IPv[46]|BFloat16|Variant|Dynamic|QBit)\b"
_STATE = r"\b(AggregateFunction)\b"
# Types without such an expression -> suggestion for the user.
_NO_FORM = ((re.compile(_OTHER), "toString({0})"), (re.compile(_STATE), "finalizeAggregation({0})"))
_STRINGS = re.compile(r"'(?:[^'\\]|\\.)*'")


def as_brought(query: str, columns: Iterable[tuple[str, str]]) -> str:
    """Return a query with these result columns (names and types) rewritten so that rows keep their types.

    Raises LabError for a column whose type has no suitable expression.
    """
    forms = {name: form for name, of in columns if (form := _form(name, of))}
    if not forms:
        return query
    replaced = ", ".join(f"{form.format(identifier(name))} AS {identifier(name)}" for name, form in forms.items())
    return f"SELECT * REPLACE ({replaced}) FROM ({query})"


def _form(name: str, of: str) -> str:
    """Return the expression that fetches a column of a type; empty if the column arrives unchanged."""
    if form := _of_type(of):
        return form
    for unlike, instead in _NO_FORM:
        if found := unlike.search(_STRINGS.sub("''", of)):
            raise LabError(
                f'column "{name}": a query returns {found[1]} as another type; select '
                f"{instead.format(identifier(name))}, or give the data as a file"
            )
    return ""


def _of_type(of: str, depth: int = 0) -> str:
    """Return the expression for a value of a type, for a list for all its items; empty without one."""
    plain = of
    for around in ("LowCardinality", "Nullable"):
        plain = plain[len(around) + 1 : -1] if plain.startswith(f"{around}(") else plain
    if plain.startswith("Array("):
        item = f"x{depth}"
        form = _of_type(plain[6:-1], depth + 1)
        return form and f"arrayMap({item} -> {form.format(item)}, {{0}})"
    return next((form for known, form in _FORMS if known.fullmatch(plain)), "")


def with_bytes(answer: pa.Table) -> pa.Table:
    """Return rows with non-UTF-8 Strings as bytes, at any depth of a column: a String may hold text or bytes."""
    for place, column in enumerate(answer.columns):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            whole = column.combine_chunks()
            answer = answer.set_column(place, answer.field(place).name, whole.cast(_with_bytes(whole)))
    return answer


def _with_bytes(values: pa.Array) -> pa.DataType:
    """Return the type of the values if non-UTF-8 Strings are bytes."""
    of = values.type
    if pa.types.is_map(of):
        return pa.map_(_with_bytes(values.keys), _with_bytes(values.items))
    if pa.types.is_list(of):
        return pa.list_(_with_bytes(values.flatten()))
    if pa.types.is_struct(of):
        inside = zip(of, values.flatten(), strict=True)
        return pa.struct([field.with_type(_with_bytes(part)) for field, part in inside])
    if not pa.types.is_string(of):
        return of
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return pa.binary()
    return of
