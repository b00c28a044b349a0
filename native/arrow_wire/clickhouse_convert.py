"""Casts that Arrow does before anything is encoded: those between texts and numbers, which are rare."""

import pyarrow as pa
from pyarrow import types

from arrow_wire.arrays import Values
from arrow_wire.clickhouse_types import Type


def converted(array: Values, target: Type) -> Values:
    """Return a column's array in a type that its encoder takes; mostly it is the same one.

    Raises ValueError, or Arrow's, where a value would not come out as it is.
    """
    while target.family in ("Nullable", "LowCardinality"):
        (target,) = target.inner
    arrow_type, family = array.type, target.family
    if family == "String" and (
        types.is_integer(arrow_type) or types.is_date(arrow_type) or types.is_decimal(arrow_type)
    ):
        return array.cast(pa.string())
    if family.startswith("Decimal") and types.is_floating(arrow_type):
        return _exactly(array, pa.decimal256(*map(int, target.literals)))
    if family in ("Float32", "Float64") and types.is_decimal(arrow_type):
        return _exactly(array, pa.float64())
    if not (types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type)):
        return array
    return _of_texts(array, target)


def _exactly(array: Values, arrow_type: pa.DataType) -> Values:
    """Cast to a type from which every value comes back as it was."""
    made = array.cast(arrow_type)
    if not made.cast(array.type).equals(array):
        raise ValueError(f"{array.type}, of which {arrow_type} has no exact value")
    return made


def _of_texts(array: Values, target: Type) -> Values:
    family = target.family
    if family in ("Date", "Date32"):
        return array.cast(pa.string()).cast(pa.date32())
    if family in ("DateTime", "DateTime64"):
        return array.cast(pa.string()).cast(pa.timestamp("us"))
    if family.startswith("Decimal"):
        return array.cast(pa.string()).cast(pa.decimal256(*map(int, target.literals)))
    if family in ("Float32", "Float64", "BFloat16"):
        return array.cast(pa.string()).cast(pa.float64())
    return array
