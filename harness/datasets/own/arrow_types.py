"""Types of Arrow of which polars makes no column, or one of other values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from harness.model import LabError

_DIGITS = 38  # of a decimal, at most
_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# Types of Arrow that polars ends at, and what to do with them.
_NOT_IN_POLARS: dict[Callable[[Any], bool], str] = {
    pa.types.is_union: "make a column of each of its types",
    pa.types.is_run_end_encoded: "decode it (pyarrow.compute.run_end_decode)",
    pa.types.is_list_view: "cast it to a list",
    pa.types.is_large_list_view: "cast it to a list",
}


def _is_offset(zone: object) -> bool:
    return bool(re.fullmatch(r"(UTC)?[+-]\d\d(:?\d\d)?", str(zone)))


def with_offsets(schema: Any) -> list[str]:
    """Return the columns whose zone is no name but an offset, as +05:30."""
    return [field.name for field in schema if _is_offset(getattr(field.type, "tz", None))]


def require_known(schema: Any) -> None:
    """Raise LabError for a column of a type that polars ends at, without naming the column."""
    for field in schema:
        for of in _parts(field.type):
            if found := _unknown(of) or _offset_inside(of, field.type):
                raise LabError(f'column "{field.name}": {found}')


def _unknown(of: Any) -> str:
    """Say what is wrong with a type of Arrow of which polars makes no column, and what to do; empty where it does."""
    if pa.types.is_decimal(of) and of.precision > _DIGITS:
        return f"expected decimals of {_DIGITS} digits at most, found {of}; cast it to one of these, or to text"
    if pa.types.is_interval(of):
        return f"expected a type that a frame has, found {of}; cast it to a duration, or to text"
    if found := next((cast for known, cast in _NOT_IN_POLARS.items() if known(of)), ""):
        return f"expected a type that polars reads, found {str(of).partition('<')[0]}; {found}"
    if pa.types.is_struct(of):
        names = [of.field(place).name for place in range(of.num_fields)]
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), ""):
            return f'expected fields of different names, found "{twice}" twice; rename one'
    return ""


def _offset_inside(of: Any, column: Any) -> str:
    found = of != column and _is_offset(getattr(of, "tz", None))
    return f"expected the name of a zone, found {of}; cast it to UTC" if found else ""


def with_times(schema: Any) -> list[str]:
    """Return the columns with times of day in them."""
    return [field.name for field in schema if any(map(pa.types.is_time, _parts(field.type)))]


def require_times(table: Any) -> None:
    """Raise LabError for a time of day that polars would take for a null: 24:00 or later, or before 0:00."""
    for name in with_times(table.schema):
        for part in (part for chunk in table[name].chunks for part in _leaves(chunk) if pa.types.is_time(part.type)):
            ends = pc.min_max(part.cast(pa.int32() if pa.types.is_time32(part.type) else pa.int64())).as_py()
            if part.null_count < len(part) and not 0 <= ends["min"] <= ends["max"] < _A_DAY[part.type.unit]:
                raise LabError(f'column "{name}": expected times of day before 24:00, found others; leave them out')


def _leaves(values: Any) -> Iterator[Any]:
    """Yield the arrays of Arrow that are in one of lists, maps or structs and are none themselves."""
    if pa.types.is_map(values.type):
        inside = [values.keys, values.items]
    elif pa.types.is_struct(values.type) or pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        inside = values.flatten() if pa.types.is_struct(values.type) else [values.flatten()]
    else:
        yield values
        return
    for part in inside:
        yield from _leaves(part)


def _parts(of: Any) -> list[Any]:
    """Return a type of Arrow and all that are in it."""
    inside = [of.field(number).type for number in range(of.num_fields)]
    return [of, *(part for one in inside for part in _parts(one))]
