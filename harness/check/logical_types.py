"""The logical types of columns, and the canonical dtype of each in polars and pandas.

A type may have parameters: `decimal(12, 2)` has 12 digits, 2 of them after the point (`decimal` is `decimal(38, 10)`).
`array(text)` is a list of strings (`array` is `array(int32)`), `array(array(text))` a list of lists. `nested({"a":
"int32"})` is a struct of these fields, and `map(["text", "int32"])` maps strings to numbers. A decimal of more than 38
digits is a string in polars, which has no such type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

Dtype = Any  # of polars, whose base class has no types of items and fields
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # by the unit of timestamps and times
# Logical type -> canonical dtype as each library prints it.
POLARS_DTYPES = {
    "uuid": "String",
    "date": "Date",
    "int8": "Int8",
    "int16": "Int16",
    "int32": "Int32",
    "int64": "Int64",
    "text": "String",
    "float64": "Float64",
    "boolean": "Boolean",
    "timestamp": "Datetime(time_unit='us', time_zone=None)",
    "timestamp_tz": "Datetime(time_unit='us', time_zone='UTC')",
    "timestamp_ns": "Datetime(time_unit='ns', time_zone=None)",
    "timestamp_tz_ns": "Datetime(time_unit='ns', time_zone='UTC')",
    "duration": "Duration(time_unit='us')",
    "time": "Time",
    "decimal": "Decimal(precision=38, scale=10)",
    "array": "List(Int32)",
    "nested": "Struct({'a': Int32, 'b': String})",
    "map": "Map(String, Int32)",
    "uint8": "UInt8",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "float32": "Float32",
    "json": "String",
    "category": "Categorical",
    "binary": "Binary",
}
PANDAS_DTYPES = {
    "uuid": "str",
    "date": "datetime64[us]",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "text": "str",
    "float64": "float64",
    "boolean": "bool",
    "timestamp": "datetime64[us]",
    "timestamp_tz": "datetime64[us, UTC]",
    "timestamp_ns": "datetime64[ns]",
    "timestamp_tz_ns": "datetime64[ns, UTC]",
    "duration": "timedelta64[us]",
    "time": "object",
    "decimal": "object",
    "array": "object",
    "nested": "object",
    "map": "object",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "float32": "float32",
    "json": "str",
    "category": "category",
    "binary": "object",
}
INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = frozenset({"float32", "float64"})
NANOSECONDS = frozenset({"timestamp_ns", "timestamp_tz_ns"})  # timestamps finer than microseconds
MOST_DIGITS = 38  # of a polars decimal
OF_BENCHMARKS = frozenset({"uuid", "date", "int32", "int64", "text", "float64"})
_PANDAS_WITH_NULLS = {"boolean": "boolean"} | {
    name: name.replace("i", "I", 1).replace("u", "U", 1) for name in INTEGERS
}
_FORM = re.compile(r"(\w+)\((.+)\)")


def plain(logical: str) -> str:
    """Return a logical type without its parameters: `decimal` for `decimal(12, 2)`."""
    return logical.partition("(")[0]


def digits(logical: str) -> tuple[int, int]:
    """Return the digits of a decimal type, and how many of them are after the point."""
    if form := _FORM.fullmatch(logical):
        precision, scale = form[2].split(",")
        return int(precision), int(scale)
    return 38, 10


def fields(logical: str) -> dict[str, str]:
    """Return the fields of a struct of this logical type: names and logical types."""
    form = _FORM.fullmatch(logical)
    found: dict[str, str] = json.loads(form[2]) if form else {"a": "int32", "b": "text"}
    return found


def mapped(logical: str) -> tuple[str, str]:
    """Return the logical types of a map's keys and values."""
    form = _FORM.fullmatch(logical)
    keys, values = json.loads(form[2]) if form else ("text", "int32")
    return keys, values


def map_of(keys: str, values: str) -> str:
    """Return the logical type of maps with these keys and values."""
    return f"map({json.dumps([keys, values], ensure_ascii=False)})"


def is_wide(logical: str) -> bool:
    """Return whether a logical type is a decimal with more digits than polars has."""
    return plain(logical) == "decimal" and digits(logical)[0] > MOST_DIGITS


def nested(of: Mapping[str, str]) -> str:
    """Return the logical type of structs with these fields."""
    return f"nested({json.dumps(of, ensure_ascii=False)})"


def stored(logical: str, instead: Mapping[str, str]) -> str:
    """Return the type in a database's tables, which have other types `instead` of some, also within lists."""
    if depth(logical) and "(" in logical:
        return f"array({stored(items(logical), instead)})"
    return instead.get(logical, logical)


def without_fields(logical: str) -> str:
    """Return a logical type whose struct fields are renamed field_1 and so on, at any depth."""
    if plain(logical) == "array":
        return f"array({without_fields(items(logical))})"
    if plain(logical) == "map":
        return map_of(*map(without_fields, mapped(logical)))
    if plain(logical) == "nested":
        return nested(
            {f"field_{place}": without_fields(of) for place, of in enumerate(fields(logical).values(), start=1)}
        )
    return logical


def depth(logical: str) -> int:
    """Return the depth of a type's lists: 2 for lists of lists, 0 for other types."""
    return 1 + depth(items(logical)) if plain(logical) == "array" else 0


def items(logical: str) -> str:
    """Return the logical type of the items of an array."""
    form = _FORM.fullmatch(logical)
    return form[2] if form else "int32"


def pandas_dtype(logical: str, nulls: bool) -> str:
    """Return the canonical pandas dtype of a column, which depends on whether it has nulls."""
    default = PANDAS_DTYPES[plain(logical)]
    return _PANDAS_WITH_NULLS.get(logical, default) if nulls else default


def polars_dtype(logical: str) -> Dtype:
    """Return the canonical polars dtype of a logical type."""
    import polars as pl

    if plain(logical) == "decimal":
        return pl.String() if is_wide(logical) else pl.Decimal(*digits(logical))
    if plain(logical) == "map":
        return pl.Map(*map(polars_dtype, mapped(logical)))
    if plain(logical) == "array":
        return pl.List(polars_dtype(items(logical)))
    if plain(logical) == "nested":
        return pl.Struct({name: polars_dtype(of) for name, of in fields(logical).items()})
    others = {
        "timestamp": pl.Datetime("us"),
        "timestamp_tz": pl.Datetime("us", "UTC"),
        "timestamp_ns": pl.Datetime("ns"),
        "timestamp_tz_ns": pl.Datetime("ns", "UTC"),
        "duration": pl.Duration("us"),
        "category": pl.Categorical(),
    }
    return others[logical] if logical in others else getattr(pl, POLARS_DTYPES[logical])


def polars_name(logical: str) -> str:
    """Return the canonical polars dtype of a logical type as polars prints it."""
    return POLARS_DTYPES[logical] if logical in POLARS_DTYPES else str(polars_dtype(logical))
