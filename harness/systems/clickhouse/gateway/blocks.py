"""Native blocks: find where one ends without decoding its values, and read its columns' names and types.

The layout is that of the Native format at protocol revision 54429: no custom serialization, no sparse columns.
"""

import re
import struct
from dataclasses import dataclass

from .wire import ProtocolError, Reader, receiver, string, varint

MAX_COLUMNS = 100_000
MAX_ROWS = 1 << 31
MAX_NAME_BYTES = 1 << 20
_MAX_NESTING = 64
NOT_HERE = (
    "cannot be sent as native blocks to this gateway"  # a server accepts it, so this is not the transport's fault
)

_WIDTHS = {
    "Bool": 1, "Date": 2, "Date32": 4, "DateTime": 4, "DateTime64": 8, "Decimal128": 16, "Decimal256": 32,
    "Decimal32": 4, "Decimal64": 8, "Enum16": 2, "Enum8": 1, "Float32": 4, "Float64": 8, "BFloat16": 2,
    "IPv4": 4, "IPv6": 16, "Int128": 16, "Int16": 2, "Int256": 32, "Int32": 4, "Int64": 8, "Int8": 1, "Nothing": 1,
    "Time": 4, "Time64": 8, "UInt128": 16, "UInt16": 2, "UInt256": 32, "UInt32": 4, "UInt64": 8, "UInt8": 1, "UUID": 16,
    "IntervalNanosecond": 8, "IntervalMicrosecond": 8, "IntervalMillisecond": 8, "IntervalSecond": 8,
    "IntervalMinute": 8, "IntervalHour": 8, "IntervalDay": 8, "IntervalWeek": 8, "IntervalMonth": 8,
    "IntervalQuarter": 8, "IntervalYear": 8,
}  # fmt: skip
_ALIASES = {
    "Point": "Tuple(Float64, Float64)",
    "Ring": "Array(Point)",
    "LineString": "Array(Point)",
    "MultiLineString": "Array(Array(Point))",
    "Polygon": "Array(Ring)",
    "MultiPolygon": "Array(Polygon)",
}
# A name before an element's type, as in Tuple(a Int32, `b c` String).
_ELEMENT_NAME = re.compile(r"\s*(?:\w+|`(?:[^`\\]|\\.)*`)\s+(?=\w)")
_LOW_CARDINALITY_INDEX_WIDTH = {0: 1, 1: 2, 2: 4, 3: 8}


class UnknownTypeError(ProtocolError):
    """A column type whose layout is not known here, so the block's end cannot be found."""

    def __init__(self, type_name: str) -> None:
        super().__init__(f"type {type_name!r} {NOT_HERE}; insert it with FORMAT ...")


@dataclass(frozen=True, slots=True)
class BlockColumn:
    """A column of a block."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block as bytes of the Native format, with its columns and number of rows."""

    columns: tuple[BlockColumn, ...]
    rows: int
    data: bytes | memoryview


def header_block(columns: tuple[BlockColumn, ...]) -> bytes:
    """Encode a block with these columns and no rows."""
    return varint(len(columns)) + b"\x00" + b"".join(string(column.name) + string(column.type) for column in columns)


def read_block(reader: Reader) -> Block:
    """Read one block. Raises UnknownTypeError, or ProtocolError if it is not a block."""
    reader.mark()
    column_count, rows = reader.varint(), reader.varint()
    if column_count > MAX_COLUMNS or rows > MAX_ROWS:
        raise ProtocolError(f"expected a block, found one of {column_count} columns and {rows} rows")
    columns = []
    for _ in range(column_count):
        column = BlockColumn(reader.text(MAX_NAME_BYTES), reader.text(MAX_NAME_BYTES))
        columns.append(column)
        if rows:
            _skip_prefix(reader, column.type, 0)
            _skip_values(reader, column.type, rows, 0)
    return Block(tuple(columns), rows, reader.taken())


def read_blocks(data: bytes) -> list[Block]:
    """Split a whole result in the Native format into its blocks."""
    reader = Reader(receiver((data,)))
    blocks = []
    while reader.more():
        blocks.append(read_block(reader))
    return blocks


def _split(type_name: str) -> tuple[str, list[str]]:
    """Split ``Map(String, Array(Int8))`` into ``Map`` and its arguments."""
    name, bracket, rest = type_name.strip().partition("(")
    if not bracket:
        return name, []
    arguments, depth, start, quoted = [], 0, 0, ""
    inner = rest.rstrip()[:-1]
    for place, mark in enumerate(inner):
        if quoted:
            quoted = "" if mark == quoted and inner[place - 1] != "\\" else quoted
        elif mark in "'`":
            quoted = mark
        elif mark == "," and depth == 0:
            arguments.append(inner[start:place].strip())
            start = place + 1
        else:
            depth += (mark == "(") - (mark == ")")
    return name, [*arguments, inner[start:].strip()]


def _elements(name: str, arguments: list[str]) -> list[str]:
    """Return a compound type's element types, without the names of a Tuple's or Nested's elements."""
    if name in ("Tuple", "Nested"):
        return [_ELEMENT_NAME.sub("", argument, count=1) for argument in arguments]
    return arguments[1:] if name == "SimpleAggregateFunction" else arguments


def _skip_prefix(reader: Reader, type_name: str, depth: int) -> None:
    """Skip the data before a column's values: the version of each LowCardinality dictionary."""
    _check_depth(type_name, depth)
    name, arguments = _split(_ALIASES.get(type_name, type_name))
    if name == "LowCardinality":
        reader.skip(8)
    elif name in ("Array", "Map", "Nested", "Nullable", "SimpleAggregateFunction", "Tuple"):
        for element in _elements(name, arguments):
            _skip_prefix(reader, element, depth + 1)


def _skip_values(reader: Reader, type_name: str, rows: int, depth: int) -> None:
    """Skip a column's values."""
    _check_depth(type_name, depth)
    name, arguments = _split(_ALIASES.get(type_name, type_name))
    width = _WIDTHS.get(name) or _argument_width(name, arguments)
    if width:
        reader.skip(width * rows)
    elif name == "String":
        reader.skip_strings(rows)
    elif name == "Nullable" and len(arguments) == 1:
        reader.skip(rows)
        _skip_values(reader, arguments[0], rows, depth + 1)
    elif name == "LowCardinality" and len(arguments) == 1:
        _skip_low_cardinality(reader, arguments[0], rows, depth)
    elif name in ("Array", "Map", "Nested"):
        _skip_array(reader, _elements(name, arguments), rows, depth)
    elif name in ("Tuple", "SimpleAggregateFunction") and arguments:
        for element in _elements(name, arguments):
            _skip_values(reader, element, rows, depth + 1)
    else:
        raise UnknownTypeError(type_name)


def _argument_width(name: str, arguments: list[str]) -> int:
    """Return the width of a value that depends on the type's argument, or 0."""
    if name == "FixedString" and len(arguments) == 1 and arguments[0].isdecimal():
        return int(arguments[0])
    if name == "Decimal" and arguments and arguments[0].isdecimal():
        digits = int(arguments[0])
        return next(width for most, width in ((9, 4), (18, 8), (38, 16), (10**9, 32)) if digits <= most)
    return 0


def _skip_low_cardinality(reader: Reader, inner: str, rows: int, depth: int) -> None:
    if not rows:
        return
    flags, keys = struct.unpack("<QQ", reader.exact(16))
    _check_rows(keys)
    name, arguments = _split(inner)
    _skip_values(reader, arguments[0] if name == "Nullable" and arguments else inner, keys, depth + 1)
    found = reader.uint64()
    _check_rows(found)
    reader.skip(found * _LOW_CARDINALITY_INDEX_WIDTH[flags & 3])


def _skip_array(reader: Reader, elements: list[str], rows: int, depth: int) -> None:
    if not rows:
        return
    reader.skip(8 * (rows - 1))
    total = reader.uint64()  # the last offset
    _check_rows(total)
    for element in elements:
        _skip_values(reader, element, total, depth + 1)


def _check_rows(count: int) -> None:
    if count > MAX_ROWS:
        raise ProtocolError(f"expected at most {MAX_ROWS} values in a column, found {count}")


def _check_depth(type_name: str, depth: int) -> None:
    if depth > _MAX_NESTING:
        raise ProtocolError(f"expected a type nested at most {_MAX_NESTING} deep, found {type_name[:80]!r}")
