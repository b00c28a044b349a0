"""The Arrow type and the decoder for each type of ClickHouse."""

from ctypes import POINTER, cast, pointer
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from arrow_wire import arrays, clickhouse_numbers
from arrow_wire.clickhouse_library import Shape
from arrow_wire.clickhouse_types import Type
from arrow_wire.library import Buffer, number_of

I32, I64, U16, U32 = range(4)
_UNITS = ("ms",) * 4 + ("us",) * 3 + ("ns",) * 3  # by the digits of a second; polars has none of whole seconds
_DIGITS = {"ms": 3, "us": 6, "ns": 9}
_DAYS = {"Date": U16, "Date32": I32}


@dataclass
class Form:
    """How a type is decoded: its Arrow type, its node, and the objects that must stay alive."""

    arrow_type: pa.DataType
    node: Shape
    keeps: list[Any] = field(default_factory=list)


def form(source: Type, text: pa.DataType) -> Form:
    """Return how a type is decoded, with all strings in this Arrow type. Raises TypeError for an unknown type.

    Times of day become durations, which can also be negative or longer than a day.
    """
    family, inner = source.family, source.inner
    if family == "SimpleAggregateFunction":
        return form(inner[-1], text)
    if family == "Nullable":
        return _nullable(source, text)
    if family == "LowCardinality":
        nullable = inner[0].family == "Nullable"
        child = form(inner[0].inner[0] if nullable else inner[0], text)
        if not (pa.types.is_primitive(child.arrow_type) or child.arrow_type == text) or pa.types.is_boolean(
            child.arrow_type
        ):
            raise TypeError(f"{source.text} is not a type that can be read")
        return _above("low_cardinality", child.arrow_type, [child], width=int(nullable), version=1)
    if family == "Array":
        child = form(inner[0], text)
        return _above("list", pa.large_list(child.arrow_type), [child])
    if family == "Map":
        key, value = (form(part, text) for part in inner)
        entries = _above("fields", pa.null(), [key, value])
        return _above("list", pa.map_(key.arrow_type, value.arrow_type), [entries])
    if family == "Tuple" and inner:
        return _tuple(source, text)
    if family == "Nested":
        child = _tuple(source, text)
        return _above("list", pa.large_list(child.arrow_type), [child])
    return _text(source, text) or _number(source)


def _nullable(source: Type, text: pa.DataType) -> Form:
    child = form(source.inner[0], text)
    if source.inner[0].family.startswith("Enum"):
        child.node.source = 1
    return _above("nullable", child.arrow_type, [child])


def _tuple(source: Type, text: pa.DataType) -> Form:
    children = [form(part, text) for part in source.inner]
    names = [name or str(number) for number, name in enumerate(source.names, 1)]
    arrow_type = pa.struct([(name, child.arrow_type) for name, child in zip(names, children, strict=True)])
    return _above("fields", arrow_type, children)


def _text(source: Type, text: pa.DataType) -> Form | None:
    family = source.family
    if family == "String":
        return _leaf(text, "text")
    if family in ("JSON", "Object"):  # a string, by output_format_native_write_json_as_string = 1
        return _leaf(text, "text", version=1)
    if family == "FixedString":
        return _leaf(text, "fixed_text", int(source.literals[0]))
    if family in ("Int128", "Int256", "UInt128", "UInt256"):  # for which Arrow has no type
        return _leaf(text, "digits", int(family.lstrip("UInt")) // 8, int(family.startswith("Int")))
    if source.labels:
        made = _leaf(text, "label", 2 if family == "Enum16" else 1)
        labels = arrays.described(pa.array([label for label, _ in source.labels], pa.string()))
        numbers = pa.py_buffer(b"".join(number.to_bytes(2, "little", signed=True) for _, number in source.labels))
        made.node.labels, made.node.numbers = pointer(labels.structure), Buffer(numbers.address, numbers.size)
        made.keeps += [labels, numbers]
        return made
    fixed = {"UUID": ("uuid", 16), "IPv4": ("ip4", 4), "IPv6": ("ip6", 16)}.get(family)
    return _leaf(text, *fixed) if fixed else None


def _number(source: Type) -> Form:
    family, literals = source.family, source.literals
    zone = next((literal for literal in literals if isinstance(literal, str)), None)
    if family in ("Bool", "BFloat16", "Nothing"):
        arrow_type, decoder, width = {
            "Bool": (pa.bool_(), "bits", 1),
            "BFloat16": (pa.float32(), "bfloat", 2),
            "Nothing": (pa.null(), "nothing", 1),
        }[family]
        return _leaf(arrow_type, decoder, width)
    if family in _DAYS:
        return _leaf(pa.date32(), "whole", 4 if family == "Date32" else 2, _DAYS[family])
    if family in ("DateTime", "Time"):
        arrow_type = pa.timestamp("ms", zone) if family == "DateTime" else pa.duration("ms")
        return _leaf(arrow_type, "whole", 4, U32 if family == "DateTime" else I32, factor=1000)
    if family in ("DateTime64", "Time64"):
        digits = int(literals[0])
        unit = _UNITS[digits]
        arrow_type = pa.timestamp(unit, zone) if family == "DateTime64" else pa.duration(unit)
        return _leaf(arrow_type, "whole", 8, I64, factor=10 ** (_DIGITS[unit] - digits))
    if family == "Decimal":
        digits, scale = (int(literal) for literal in literals)
        width = clickhouse_numbers.width_of(source)
        if width == 32:
            return _leaf(pa.decimal256(digits, scale), "copy", 32)
        narrow = {4: I32, 8: I64}.get(width)
        arrow_type = pa.decimal128(digits, scale)
        return _leaf(arrow_type, "copy", 16) if narrow is None else _leaf(arrow_type, "whole", width, narrow)
    if family in ("Float32", "Float64") or family.removeprefix("U") in ("Int8", "Int16", "Int32", "Int64"):
        arrow_type = {"Float32": pa.float32(), "Float64": pa.float64()}.get(family) or getattr(pa, family.lower())()
        return _leaf(arrow_type, "copy", arrow_type.byte_width)
    raise TypeError(f"{source.text} is not a type that can be read")


def _leaf(
    arrow_type: pa.DataType, decoder: str, width: int = 0, source: int = 0, factor: int = 1, version: int = 0
) -> Form:
    return Form(
        arrow_type,
        Shape(
            decoding=number_of("clickhouse_decoding", decoder),
            width=width,
            source=source,
            version=version,
            factor=factor,
        ),
    )


def _above(decoder: str, arrow_type: pa.DataType, children: list[Form], width: int = 0, version: int = 0) -> Form:
    below = (Shape * len(children))(*(child.node for child in children))
    node = Shape(
        decoding=number_of("clickhouse_decoding", decoder), width=width, version=version, child_count=len(children)
    )
    node.children = cast(below, POINTER(Shape))
    return Form(arrow_type, node, [below, *children])
