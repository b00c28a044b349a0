"""Casts that Arrow does before the encoding: between strings and numbers, which is rare."""

from functools import lru_cache

import pyarrow as pa
from pyarrow import types

from arrow_wire.arrays import Values
from arrow_wire.clickhouse_types import Type


def converted(array: Values, target: Type) -> Values:
    """Return a column's array in a type that its encoder takes, which is mostly the same type. Raises ValueError, or
    Arrow's errors, if a value would change.
    """
    made, through = array, steps(array.type, target)
    for arrow_type in through:
        made = made.cast(arrow_type)
    numbers = types.is_floating(array.type) or types.is_decimal(array.type)
    if through and numbers and not types.is_string(made.type) and not made.cast(array.type).equals(array):
        raise ValueError(f"{made.type} does not hold every value of {array.type} exactly")
    return made


@lru_cache(1024)
def steps(arrow_type: pa.DataType, target: Type) -> tuple[pa.DataType, ...]:
    """Return the types to which Arrow casts a column, one after the other; mostly empty."""
    while target.family in ("Nullable", "LowCardinality"):
        (target,) = target.inner
    family = target.family
    if family == "String" and (
        types.is_integer(arrow_type) or types.is_date(arrow_type) or types.is_decimal(arrow_type)
    ):
        return (pa.string(),)
    if family.startswith("Decimal") and types.is_floating(arrow_type):
        return (pa.decimal256(*map(int, target.literals)),)
    if family in ("Float32", "Float64") and types.is_decimal(arrow_type):
        return (pa.float64(),)
    if not (types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type)):
        return ()
    if family in ("Date", "Date32"):
        return (pa.string(), pa.date32())
    if family in ("DateTime", "DateTime64"):
        return (pa.string(), pa.timestamp("us"))
    if family.startswith("Decimal"):
        return (pa.string(), pa.decimal256(*map(int, target.literals)))
    return (pa.string(), pa.float64()) if family in ("Float32", "Float64", "BFloat16") else ()
