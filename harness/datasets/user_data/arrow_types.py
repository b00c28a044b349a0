"""Arrow types that polars cannot read, or reads with changed values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from harness.check.canonical import strings_of
from harness.check.logical_types import MOST_DIGITS, PER_SECOND
from harness.model import LabError

UUID, JSON = "extension<arrow.uuid>", "extension<arrow.json>"
# Arrow types on which polars aborts -> advice.
_NOT_IN_POLARS: dict[Callable[[pa.DataType], bool], str] = {
    pa.types.is_union: "make a column of each of its types",
    pa.types.is_run_end_encoded: "decode it (pyarrow.compute.run_end_decode)",
    pa.types.is_list_view: "cast it to a list",
    pa.types.is_large_list_view: "cast it to a list",
}


_PLAIN = [pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.float32(), pa.float64(), pa.date32()]
_PLAIN += [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_PLAIN_IDS = {of.id for of in _PLAIN}


def odd(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a schema whose types readers may not know, or read differently."""
    return pa.schema([one for one in zip(schema.names, schema.types, strict=True) if one[1].id not in _PLAIN_IDS])


def is_offset(zone: object) -> bool:
    """Return whether a time zone is an offset, such as +05:30."""
    return bool(re.fullmatch(r"(UTC)?[+-]\d\d(:?\d\d)?", str(zone)))


def columns(schema: pa.Schema, known: Callable[[pa.DataType], bool]) -> list[str]:
    """Return the columns of a schema whose types are known."""
    return [field.name for field in schema if known(field.type)]


def has_offset(of: pa.DataType) -> bool:
    """Return whether a type has an offset such as +05:30 instead of the name of a zone; polars panics at it."""
    return is_offset(getattr(of, "tz", None))


def for_polars(schema: pa.Schema) -> bool:
    """Return whether polars reads all columns of a schema unchanged, whatever their values.

    It keeps one entry per key of a map, turns times of 24:00 into nulls, and JSON into bytes.
    """
    odd = (pa.types.is_time, pa.types.is_decimal256, pa.types.is_map)
    found = [part for field in schema for part in parts(field.type)]
    json = any(str(part) == JSON for part in found)
    return not json and not columns(schema, has_offset) and not any(is_odd(part) for part in found for is_odd in odd)


def require_known(schema: pa.Schema) -> None:
    """Raise LabError for a column of a type on which polars aborts, without naming the column."""
    for field in schema:
        for of in parts(field.type):
            if found := _unknown(of) or _inside(of, field.type):
                raise LabError(f'column "{field.name}": {found}')


def _unknown(of: pa.DataType) -> str:
    """Describe the fault of an Arrow type that polars cannot read, with advice; empty for other types."""
    if pa.types.is_interval(of):
        return f"a dataframe has no {of}; cast it to a duration or a string"
    if str(of).startswith("extension<pandas.period"):  # polars reads its number
        return "a database has no periods; make it a timestamp or a string"
    if found := next((cast for known, cast in _NOT_IN_POLARS.items() if known(of)), ""):
        return f"polars cannot read {str(of).partition('<')[0]}; {found}"
    if pa.types.is_struct(of):
        names = [of.field(place).name for place in range(of.num_fields)]
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), ""):
            return f'two fields are named "{twice}"; rename one'
    return ""


def _inside(of: pa.DataType, column: pa.ChunkedArray) -> str:
    """Describe the fault of a type within a column's type that is fine for a whole column."""
    if of == column:
        return ""
    if has_offset(of):
        return f"{of} names no time zone; cast it to UTC"
    around = str(column).partition("<")[0]
    if pa.types.is_decimal256(of):
        return f"{of} in a {around}: at most {MOST_DIGITS} digits fit there; cast it, or make it a string"
    if pa.types.is_decimal32(of) or pa.types.is_decimal64(of):  # polars reads other numbers there
        return f"{of} in a {around}: cast it to 128 bits, or make it a string"
    if str(of) == UUID and not of_uuids(column):
        return f"a UUID in a {around}: make it a string; UUIDs are taken alone or in lists"
    return ""


def of_uuids(column: pa.DataType) -> bool:
    """Return whether a type is UUID, or a list of such: polars reads bytes."""
    while pa.types.is_list(column) or pa.types.is_large_list(column):
        column = column.value_type
    return str(column) == UUID


def narrowed(table: pa.Table) -> pa.Table:
    """Return a table whose wide decimals have 38 digits if that is enough, and are strings otherwise.

    The strings have the opaque type of Postgres's numbers.
    """
    for name in columns(table.schema, pa.types.is_decimal256):  # polars aborts on so many digits
        place, column = table.schema.get_field_index(name), table[name]
        table = table.set_column(place, name, _narrow(column, column.type.scale))
    return table


def _narrow(column: pa.ChunkedArray, scale: int) -> pa.ChunkedArray:
    if scale <= MOST_DIGITS:
        with suppress(pa.ArrowInvalid):
            return column.cast(pa.decimal128(MOST_DIGITS, scale))
    return pa.ExtensionArray.from_storage(pa.opaque(pa.large_string(), "numeric", "Arrow"), strings_of(column))


def require_times(table: pa.Table) -> None:
    """Raise LabError for a time of day that polars would read as a null: 24:00 or later, or before 0:00."""
    for name in columns(table.schema, lambda of: any(map(pa.types.is_time, parts(of)))):
        for part in (part for chunk in table[name].chunks for part in leaves(chunk) if pa.types.is_time(part.type)):
            ends = pc.min_max(part.cast(pa.int32() if pa.types.is_time32(part.type) else pa.int64())).as_py()
            if (
                part.null_count < len(part)
                and not 0 <= ends["min"] <= ends["max"] < 86_400 * PER_SECOND[part.type.unit]
            ):
                raise LabError(f'column "{name}": a time of day is not between 0:00 and 24:00; remove its rows')


def require_digits(table: pa.Table) -> None:
    """Raise LabError for a decimal with more digits than its type has, as DuckDB makes of a HUGEINT."""
    for field in table.schema:
        for chunk in table[field.name].chunks if any(map(pa.types.is_decimal, parts(field.type))) else ():
            for part in leaves(chunk):
                try:
                    part.validate(full=pa.types.is_decimal(part.type))
                except pa.ArrowInvalid:
                    raise LabError(
                        f'column "{field.name}": found a number with more digits than {part.type} has; make it text'
                    ) from None


def leaves(values: pa.Array) -> Iterator[pa.Array]:
    """Yield the non-nested arrays within an Arrow array of lists, maps or structs."""
    if pa.types.is_nested(values.type):
        for part in _inner(values):
            yield from leaves(part)
    else:
        yield values


def _inner(values: pa.Array) -> list[pa.Array]:
    """Return the child arrays of an Arrow array of lists, maps or structs; empty for other arrays."""
    if pa.types.is_map(values.type):
        return [values.keys, values.items]
    if pa.types.is_struct(values.type):
        return list(values.flatten())
    return [values.flatten()] if pa.types.is_nested(values.type) else []


def parts(of: pa.DataType) -> list[pa.DataType]:
    """Return an Arrow type and all types within it."""
    inside = [of.field(number).type for number in range(of.num_fields)]
    return [of, *(part for one in inside for part in parts(one))]
