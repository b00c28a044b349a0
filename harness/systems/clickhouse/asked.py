"""A person's query as its rows are brought as they are: Arrow has no type for some of ClickHouse, and takes numbers.

https://clickhouse.com/docs/interfaces/formats/Arrow
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.model import LabError
from harness.transports.clickhouse.sql import identifier

if TYPE_CHECKING:
    import pyarrow as pa

# Types that come as numbers, and what to ask for instead.
_FORMS = (
    (re.compile(r"DateTime(\('[^']*'\))?"), "toDateTime64({0}, 0)"),
    (re.compile(r"Enum(8|16)\(.*\)", re.DOTALL), "toString({0})"),
    (re.compile(r"IPv[46]"), "toString({0})"),
)
_NO_FORM = re.compile(r"\b(U?Int(?:128|256)|Interval\w+|DateTime(?!64)|Enum(?:8|16)|IPv[46])\b")
_TEXTS = re.compile(r"'(?:[^'\\]|\\.)*'")


def as_brought(query: str, columns: Iterable[tuple[str, str]]) -> str:
    """Return a query whose answer has these columns (names and types) as one whose rows come with their own types.

    Raises LabError for a column of a type that has no such form.
    """
    query = query.strip().removesuffix(";")
    forms = {name: form for name, of in columns if (form := _form(name, of))}
    if not forms:
        return query
    replaced = ", ".join(f"{form.format(identifier(name))} AS {identifier(name)}" for name, form in forms.items())
    return f"SELECT * REPLACE ({replaced}) FROM ({query}\n)"


def _form(name: str, of: str) -> str:
    """Return what brings a column of a type; empty where it comes as it is."""
    plain = of
    for around in ("LowCardinality", "Nullable"):
        plain = plain[len(around) + 1 : -1] if plain.startswith(f"{around}(") else plain
    if form := next((form for known, form in _FORMS if known.fullmatch(plain)), ""):
        return form
    if found := _NO_FORM.search(_TEXTS.sub("''", of)):
        raise LabError(
            f'column "{name}": a query brings {found[1]} as another type; ask for toString of it, or give a file'
        )
    return ""


def with_bytes(answer: pa.Table) -> pa.Table:
    """Return rows with columns of String that are no UTF-8 as bytes: a String may be either."""
    import pyarrow as pa

    for place, column in enumerate(answer.columns):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            answer = answer.set_column(place, answer.field(place).name, column.cast(pa.binary()))
    return answer
