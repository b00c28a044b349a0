"""The encoder from an Arrow type into a ClickHouse type, with its sizes and limits. Every array in Arrow's tree gets a
node that says how it is encoded. The encoders and their names are in `zig/clickhouse_encode.zig`.
"""

from ctypes import POINTER, cast, pointer
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import types

from arrow_wire import arrays, clickhouse_numbers
from arrow_wire.clickhouse_library import WIDE, Node
from arrow_wire.clickhouse_types import Type, innermost, quoted
from arrow_wire.library import Array, Buffer, number_of

_TEXTS = {
    arrays.TEXT32: "text32",
    arrays.TEXT64: "text64",
    arrays.VIEW: "view",
    arrays.FIXED: "fixed",
    arrays.PIECES: "pieces",
}
_TEXT_TYPES = {"String": "string", "FixedString": "fixed_string", "UUID": "uuid", "IPv4": "ipv4", "IPv6": "ipv6"}
_TEXT_TYPES |= {"Enum8": "enum", "Enum16": "enum", "Enum": "enum"}
_TEXT_TYPES |= {f"{sign}Int{bits}": "digits" for sign in ("", "U") for bits in (8, 16, 32, 64, 128, 256)}
_WIDTHS = {"UUID": 16, "IPv4": 4, "IPv6": 16, "Enum8": 1, "Enum": 1, "Enum16": 2, "String": 1}


@dataclass
class Plan:
    """How an array is encoded: its node, the name of its type on the wire, and the objects that must stay alive."""

    node: Node
    wire: str
    keeps: list[Any] = field(default_factory=list)


def plan(target: Type, array: arrays.Values, exact: bool = False) -> Plan:
    """Return how a column's array is encoded. Raises TypeError if its type cannot be converted to the column's.

    A Nullable column without a null is sent as a column that is not Nullable, unless `exact`. A LowCardinality column
    is sent as its inner type if the frame has no dictionary. The server converts both.
    """
    _check_uuid(target, array.type)
    made = arrays.described(array)
    arrow_type = _storage(array.type)
    if target.family == "Nullable" and not (
        exact or array.null_count or arrow_type == pa.null() or types.is_dictionary(arrow_type)
    ):
        target = target.inner[0]
    found = _nullable(target, arrow_type, made.structure)
    found.keeps.append(made)
    return found


def _storage(arrow_type: pa.DataType) -> pa.DataType:
    return _storage(arrow_type.storage_type) if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type


def _check_uuid(target: Type, arrow_type: pa.DataType) -> None:
    """Raise TypeError for UUIDs that would become the 16 bytes of a string."""
    if isinstance(arrow_type, pa.UuidType) and innermost(target) in ("String", "FixedString"):
        raise TypeError(f"UUIDs do not fit {target.text}; make strings of them with str")


def _nullable(target: Type, arrow_type: pa.DataType, array: Array) -> Plan:
    """Return the plan of a type that may be Nullable or LowCardinality."""
    arrow_type = _storage(arrow_type)
    if target.family == "LowCardinality":
        (inner,) = target.inner
        if types.is_dictionary(arrow_type) and arrays.is_text(_storage(arrow_type.value_type)):
            return _low_cardinality(target, inner, arrow_type, array)
        return _nullable(inner, arrow_type, array)
    if target.family != "Nullable":
        return _plain(target, arrow_type, array)
    found = _plain(target.inner[0], arrow_type, array)
    found.node.nullable = 1
    found.wire = f"Nullable({found.wire})"
    return found


def _plain(target: Type, arrow_type: pa.DataType, array: Array) -> Plan:
    """Return the plan of a type that is not Nullable."""
    if target.family == "SimpleAggregateFunction":
        return _nullable(target.inner[-1], arrow_type, array)
    if types.is_dictionary(arrow_type):
        child = _plain(target, _storage(arrow_type.value_type), array.children[0])
        return _above("dictionary", array, [child], child.wire)
    if target.family in ("Array", "Map", "Nested"):
        return _list(target, arrow_type, array)
    if target.family == "Tuple" and types.is_struct(arrow_type):
        return _tuple(target, arrow_type, array)
    if target.family in ("JSON", "Object") and arrays.is_text(arrow_type):
        child = _plain(Type("String", "String"), arrow_type, array)
        return _above("document", array, [child], target.text)
    if arrow_type == pa.null() and target.family not in ("Tuple", "JSON", "Object"):
        return _leaf(array, "zeros", target.text, width=width_of(target))
    if number := clickhouse_numbers.number(target, arrow_type):
        return _leaf(array, _number_encoder(number, target, arrow_type), target.text, number)
    if target.family in _TEXT_TYPES and (made := _of_text(target, arrow_type, array)):
        return made
    raise TypeError(f"{arrow_type} does not fit {target.text}; cast it first")


def _number_encoder(number: clickhouse_numbers.Number, target: Type, arrow_type: pa.DataType) -> str:
    if number.same:
        return f"copy{number.width}"
    if target.family == "Bool" and types.is_boolean(arrow_type):
        return "bits"
    return "floats" if number.floating else f"integers{number.bits}"


def width_of(target: Type) -> int:
    """Return how many bytes the default value takes."""
    if target.family == "FixedString":
        return int(target.literals[0])
    return _WIDTHS.get(target.family) or clickhouse_numbers.width_of(target)


def _of_text(target: Type, arrow_type: pa.DataType, array: Array) -> Plan | None:
    if not (arrays.is_text(arrow_type) or types.is_fixed_size_binary(arrow_type)):
        return None
    if target.family == "IPv6" and types.is_fixed_size_binary(arrow_type) and arrow_type.byte_width == 16:
        return _leaf(array, "copy16", target.text)
    family = _TEXT_TYPES[target.family]
    if family == "digits" and not (
        types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type)
    ):
        return None
    made = _leaf(array, f"{family}_{_TEXTS[array.layout]}", target.text, width=width_of(target))
    made.node.source = int(target.family.startswith("Int"))
    if target.labels:
        labels = arrays.described(pa.array([label for label, _ in target.labels], pa.string()))
        numbers = pa.py_buffer(b"".join(number.to_bytes(2, "little", signed=True) for _, number in target.labels))
        made.node.labels = pointer(labels.structure)
        made.node.numbers = Buffer(numbers.address, numbers.size)
        made.keeps += [labels, numbers]
    return made


def _list(target: Type, arrow_type: pa.DataType, array: Array) -> Plan:
    if types.is_map(arrow_type):
        items = pa.struct([arrow_type.key_field, arrow_type.item_field])
    elif types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type):
        items = arrow_type.value_type
    else:
        raise TypeError(f"{arrow_type} does not fit {target.text}; make lists of it")
    if target.family == "Array":
        child = _nullable(target.inner[0], items, array.children[0])
        wire = target.text if child.wire == target.inner[0].text else f"Array({child.wire})"
        return _above("list", array, [child], wire)
    pairs = Type("", "Tuple", target.inner, target.names if target.family == "Nested" else ())
    if not types.is_struct(_storage(items)):
        raise TypeError(f"{arrow_type} does not fit {target.text}; make lists of structs of it")
    child = _tuple(pairs, _storage(items), array.children[0])
    return _above("list", array, [child], f"{target.family}({child.wire.removeprefix('Tuple(')}")


def _tuple(target: Type, arrow_type: pa.DataType, array: Array) -> Plan:
    names, found = target.names, [arrow_type.field(i).name for i in range(arrow_type.num_fields)]
    if len(found) != len(target.inner):
        raise TypeError(f"{arrow_type} does not fit {target.text}; make structs of {len(target.inner)} fields of it")
    named = any(names) and sorted(names) == sorted(found)
    if any(names) and not named:
        raise TypeError(f"{arrow_type} does not fit {target.text}; name its fields {', '.join(names)}")
    places = [found.index(name) for name in names] if named else range(len(found))
    children = [
        _nullable(inner, arrow_type.field(place).type, array.children[place])
        for inner, place in zip(target.inner, places, strict=True)
    ]
    prefixes = [f"{quoted(name)} " if name else "" for name in names or [""] * len(children)]
    inside = ", ".join(prefix + child.wire for prefix, child in zip(prefixes, children, strict=True))
    return _above("fields", array, children, f"Tuple({inside})")


def _low_cardinality(target: Type, inner: Type, arrow_type: pa.DataType, array: Array) -> Plan:
    nullable = inner.family == "Nullable"
    child = _plain(inner.inner[0] if nullable else inner, _storage(arrow_type.value_type), array.children[0])
    made = _above("low_cardinality", array, [child], target.text)
    made.node.width = int(nullable)
    return made


def _leaf(array: Array, encoder: str, wire: str, number: clickhouse_numbers.Number | None = None, width: int = 0):
    node = Node(array=pointer(array), encoder=number_of("clickhouse_encoder", encoder), width=width)
    if number:
        node.source, node.width = number.source, number.width
        node.factor, node.divisor = _wide(number.factor), _wide(number.divisor)
        node.low, node.high = _wide(number.low), _wide(number.high)
    return Plan(node, wire, [array])


def _above(encoder: str, array: Array, children: list[Plan], wire: str) -> Plan:
    below = (Node * len(children))(*(child.node for child in children))
    found = number_of("clickhouse_encoder", encoder)
    node = Node(array=pointer(array), encoder=found, child_count=len(children))
    node.children = cast(below, POINTER(Node))
    return Plan(node, wire, [array, below, *children])


def _wide(number: int) -> Any:
    return WIDE.from_buffer_copy(number.to_bytes(32, "little", signed=True))
