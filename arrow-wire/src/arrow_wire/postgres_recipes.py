"""The encoder for arrays of a type into a column of the server, and its parameters."""

from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
from pyarrow import types as of

from arrow_wire.postgres_types import (
    ALL,
    DATES,
    EPOCH_DAYS,
    EPOCH_MICROSECONDS,
    MICROSECONDS_A_DAY,
    TEXTS,
    TIMES,
    TIMESTAMPS,
    TO_MICROSECONDS,
    ServerType,
    is_binary,
    is_text,
)


@dataclass(frozen=True)
class Recipe:
    """An encoder by its name, its settings (see `zig/postgres_column.zig`) and the recipe of a list's items.

    `cast` is the Arrow type to which the array must be cast first, or None.
    """

    encoder: str
    multiply: int = 1
    divide: int = 1
    shift: int = 0
    limits: tuple[int, int] = ALL
    digits: int = 0
    scale: int = 0
    array_scale: int = 0
    oid: int = 0
    item: "Recipe | None" = None
    cast: pa.DataType | None = None


@lru_cache(1024)
def recipe(arrow_type: pa.DataType, into: ServerType) -> Recipe | None:
    """Return how arrays of an Arrow type become values of a column's type; None if they cannot."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return recipe(arrow_type.storage_type, into)
    if of.is_null(arrow_type):
        return Recipe("bool")
    if of.is_dictionary(arrow_type):
        return _of_labels(arrow_type, into)
    if into.name == "array":
        return _of_lists(arrow_type, into)
    if (found := _direct(arrow_type, into)) is not None:
        return found
    cast = _castable(arrow_type, into.name)
    made = _direct(cast, into) if cast is not None else None
    return replace(made, cast=cast) if made else None


def _of_labels(arrow_type: pa.DictionaryType, into: ServerType) -> Recipe | None:
    """Return the recipe of a dictionary: strings stay in it as labels; other values are taken out."""
    layout = _text_layout(arrow_type.value_type)
    if layout and into.name in TEXTS:
        return Recipe(f"label_{layout}")
    if layout and into.name == "jsonb":
        return Recipe(f"jsonb_label_{layout}")
    found = recipe(arrow_type.value_type, into)
    return replace(found, cast=found.cast or arrow_type.value_type) if found else None


def _of_lists(arrow_type: pa.DataType, into: ServerType) -> Recipe | None:
    if (
        not (of.is_list(arrow_type) or of.is_large_list(arrow_type) or of.is_fixed_size_list(arrow_type))
        or into.item is None
    ):
        return None
    nested = (
        of.is_nested(arrow_type.value_type)
        and not of.is_struct(arrow_type.value_type)
        and not of.is_map(arrow_type.value_type)
    )
    item = recipe(arrow_type.value_type, into if nested else into.item)
    if item is None:
        return None
    cast = pa.large_list(item.cast) if item.cast is not None else None
    return Recipe("array", oid=into.item.oid, item=replace(item, cast=None), cast=cast)


def _direct(arrow_type: pa.DataType, into: ServerType) -> Recipe | None:
    """Return the recipe without a cast."""
    name, text, octets = into.name, _text_layout(arrow_type), _binary_layout(arrow_type)
    if name in TEXTS:
        return Recipe(f"bytes_{text}") if text else None
    if name == "jsonb":
        return Recipe(f"jsonb_{text}") if text else None
    if name in ("inet", "cidr", "macaddr", "macaddr8"):
        return Recipe(f"{name}_{text}") if text else None
    if name == "bytea":
        return Recipe(f"bytes_{octets}") if octets else None
    if name == "uuid":
        return Recipe(f"uuid_{text}") if text else Recipe(f"uuid16_{octets}") if octets else None
    if name in ("int2", "int4", "int8"):
        return Recipe(f"{name}_{_number(arrow_type)}") if of.is_integer(arrow_type) else None
    if name in ("float4", "float8"):
        return Recipe(f"{name}_{_number(arrow_type)}") if arrow_type in (pa.float32(), pa.float64()) else None
    if name == "bool":
        return Recipe("bool") if of.is_boolean(arrow_type) else None
    if name == "numeric":
        return _numeric(arrow_type, into)
    return _moment(arrow_type, name) if of.is_temporal(arrow_type) else None


def _numeric(arrow_type: pa.DataType, into: ServerType) -> Recipe | None:
    digits, scale = into.digits or (0, 0)
    if of.is_decimal(arrow_type):
        if arrow_type.scale < 0:
            return None
        return Recipe(f"numeric_d{arrow_type.bit_width}", digits=digits, scale=scale, array_scale=arrow_type.scale)
    if of.is_integer(arrow_type) or arrow_type in (pa.float32(), pa.float64()):
        return Recipe(f"numeric_{_number(arrow_type)}", digits=digits, scale=scale)
    return None


def _moment(arrow_type: pa.DataType, name: str) -> Recipe | None:
    """Return the recipe of a time; instants with a zone are not mixed with those without."""
    bits = arrow_type.bit_width
    if name == "date" and of.is_date32(arrow_type):
        return Recipe("moment4_i32", shift=EPOCH_DAYS, limits=DATES)
    if name == "date" and (of.is_date64(arrow_type) or (of.is_timestamp(arrow_type) and arrow_type.tz is None)):
        a_day = {"s": 86_400, "ms": 86_400_000, "us": MICROSECONDS_A_DAY, "ns": 86_400_000_000_000}
        divide = a_day["ms" if of.is_date64(arrow_type) else arrow_type.unit]
        return Recipe("moment4_i64", divide=divide, shift=EPOCH_DAYS, limits=DATES)
    if name == "timestamp" and of.is_date(arrow_type):
        multiply = MICROSECONDS_A_DAY if of.is_date32(arrow_type) else 1000
        return Recipe(f"moment8_i{bits}", multiply=multiply, shift=EPOCH_MICROSECONDS, limits=TIMESTAMPS)
    if of.is_timestamp(arrow_type) and name == ("timestamp" if arrow_type.tz is None else "timestamptz"):
        multiply, divide = TO_MICROSECONDS[arrow_type.unit]
        return Recipe("moment8_i64", multiply, divide, EPOCH_MICROSECONDS, TIMESTAMPS)
    if name == "time" and of.is_time(arrow_type):
        multiply, divide = TO_MICROSECONDS[arrow_type.unit]
        return Recipe(f"moment8_i{bits}", multiply, divide, limits=TIMES)
    if name == "interval" and of.is_duration(arrow_type):
        multiply, divide = TO_MICROSECONDS[arrow_type.unit]
        return Recipe("interval_duration", multiply, divide)
    return Recipe("interval_interval") if name == "interval" and of.is_interval(arrow_type) else None


def _castable(arrow_type: pa.DataType, name: str) -> pa.DataType | None:
    """Return the type to which pyarrow casts such arrays as the server would, without changing a value."""
    number = (
        of.is_integer(arrow_type)
        or of.is_floating(arrow_type)
        or of.is_decimal(arrow_type)
        or of.is_boolean(arrow_type)
    )
    text = _text_layout(arrow_type) is not None
    if name in ("text", "varchar", "bpchar", "name"):
        return pa.large_string() if number else None
    if number and name == "numeric" and not of.is_boolean(arrow_type):
        return pa.decimal256(76, 0) if of.is_decimal(arrow_type) else pa.float32()
    numbers = {"int2": pa.int16(), "int4": pa.int32(), "int8": pa.int64(), "float4": pa.float32()}
    numbers |= {"float8": pa.float64(), "bool": pa.bool_()}
    if name in numbers:
        return numbers[name] if number or text else None
    return {"date": pa.date32(), "timestamp": pa.timestamp("us")}.get(name) if text else None


def _number(arrow_type: pa.DataType) -> str:
    """Return i16, u8, f64 and so on."""
    letter = "f" if of.is_floating(arrow_type) else "u" if of.is_unsigned_integer(arrow_type) else "i"
    return f"{letter}{arrow_type.bit_width}"


def _text_layout(arrow_type: pa.DataType) -> str | None:
    return next((name for is_one, name in zip(is_text, _LAYOUTS, strict=True) if is_one(arrow_type)), None)


def _binary_layout(arrow_type: pa.DataType) -> str | None:
    if of.is_fixed_size_binary(arrow_type):
        return "fixed"
    return next((name for is_one, name in zip(is_binary, _LAYOUTS, strict=True) if is_one(arrow_type)), None)


_LAYOUTS = ("text32", "text64", "view")
