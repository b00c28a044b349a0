"""Native blocks: find where one ends without decoding its values, and read its columns' names and types.

The engine reads and writes the layout of protocol revision 0. At ``WITH_CUSTOM_SERIALIZATION`` and later, a byte before
each column's values says whether it has its own layout. The gateway sends none, and makes sparse columns full.
"""

import functools
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from clickhouse_driver.bufferedreader import BufferedReader

from .wire import ProtocolError, Reader, receiver, string, varint

WITH_ZONES = 54337  # the type of a DateTime column names its time zone
WITH_CUSTOM_SERIALIZATION = 54454
BLOCK_INFO = b"\x01\x00\x02\xff\xff\xff\xff\x00"  # field 1: no overflow; field 2: bucket -1; end

MAX_COLUMNS = 100_000
MAX_ROWS = 1 << 31
MAX_NAME_BYTES = 1 << 20
_MAX_FULL_BYTES = 1 << 30  # of a block whose sparse columns have become full
_MAX_NESTING = 64

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
# A path of a type in a JSON's arguments, as in JSON(max_dynamic_paths=8, a.b UInt32, SKIP c).
_TYPED_PATH = re.compile(r"(?!SKIP\s)((?:[\w.]|`(?:[^`\\]|\\.)*`)+)\s+(.+)", re.DOTALL)
_SIZE = re.compile(r"[0-9]{1,9}")
_DYNAMIC_V1, _DYNAMIC_VERSIONS = 1, (1, 2)
_JSON_V1, _JSON_AS_STRINGS, _JSON_VERSIONS = 0, 1, (0, 2)
_FULL, _SPARSE = 0, 1  # layouts of a column
_END_OF_SPARSE = 1 << 62  # of the gaps between its values
_LOW_CARDINALITY_INDEX_WIDTH = {0: 1, 1: 2, 2: 4, 3: 8}
# Skips the data before a column's values, and returns a function that skips a number of its values.
_Begin = Callable[[], Callable[[int], None]]


class UnknownTypeError(ProtocolError):
    """A column type whose layout is not known here, so the block's end cannot be found."""

    def __init__(self, type_name: str) -> None:
        super().__init__(f"type {type_name!r} cannot come here as native blocks; insert it with FORMAT ...")


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


def header_block(columns: tuple[BlockColumn, ...], revision: int = 0) -> bytes:
    """Encode a block with these columns and no rows."""
    return varint(len(columns)) + b"\x00" + b"".join(_column_head(column, revision) for column in columns)


def _column_head(column: BlockColumn, revision: int) -> bytes:
    custom = b"\x00" if revision >= WITH_CUSTOM_SERIALIZATION else b""
    return string(column.name) + string(column.type) + custom


def read_block(reader: Reader, revision: int = 0) -> Block:
    """Read one block; its data are laid out as for revision 0.

    Raises UnknownTypeError, or ProtocolError if it is not a block.
    """
    reader.mark()
    column_count, rows = reader.varint(), reader.varint()
    if column_count > MAX_COLUMNS or rows > MAX_ROWS:
        raise ProtocolError(f"a block of {column_count} columns and {rows} rows is too large")
    columns, full = [], bytearray()
    for _ in range(column_count):
        column = BlockColumn(reader.text(MAX_NAME_BYTES), reader.text(MAX_NAME_BYTES))
        columns.append(column)
        begin: _Begin = partial(_column, reader, column.type, 0)
        if revision >= WITH_CUSTOM_SERIALIZATION:
            full += reader.taken()
            if reader.byte():
                begin = _layout(reader, column.type, full, 0)
            reader.mark()
        if rows:
            begin()(rows)
    return Block(tuple(columns), rows, b"".join((full, reader.taken())))


def _layout(reader: Reader, type_name: str, full: bytearray, depth: int) -> _Begin:
    """Read how a column is laid out; ``full`` receives its values if it is sparse."""
    _check_depth(type_name, depth)
    name, arguments = _split(_ALIASES.get(type_name, type_name))
    layout = reader.byte()
    if layout == _SPARSE:
        return lambda: partial(_fill, reader, type_name, full)
    if layout != _FULL:
        raise UnknownTypeError(f"{type_name} in its own layout")
    if name != "Tuple":
        return partial(_column, reader, type_name, depth)
    elements = [_layout(reader, element, full, depth + 1) for element in _elements(name, arguments)]
    return lambda: partial(_skip_each, [begin() for begin in elements])


def _fill(reader: Reader, type_name: str, full: bytearray, rows: int) -> None:
    """Read a sparse column, which has only the values that are not 0 or empty, and add all of them to ``full``."""
    full += reader.taken()
    name, arguments = _split(type_name)
    if name == "SimpleAggregateFunction" and arguments:
        name, arguments = _split(arguments[-1])
    gaps, last = list[int](), 0
    width = _width(name, arguments)
    if not width and name != "String":
        raise UnknownTypeError(f"sparse {type_name}")
    while len(gaps) <= rows and not (last := reader.varint()) & _END_OF_SPARSE:
        gaps.append(last)
    if sum(gaps) + len(gaps) + (last & ~_END_OF_SPARSE) != rows or not last & _END_OF_SPARSE:
        raise ProtocolError(f"a sparse column of {rows} rows has values at other places")
    if len(full) + rows * (width or 1) > _MAX_FULL_BYTES:
        raise ProtocolError(f"a block with sparse columns is longer than {_MAX_FULL_BYTES} bytes")
    default = bytes(width or 1)  # the length of an empty String is 0
    for gap in gaps:
        full += default * gap
        full += reader.exact(width) if width else string(reader.data(_MAX_FULL_BYTES))
    full += default * (last & ~_END_OF_SPARSE)
    reader.mark()


def read_blocks(data: bytes) -> list[Block]:
    """Split a whole result in the Native format into its blocks."""
    reader = Reader(receiver((data,)))
    blocks = []
    while reader.more():
        blocks.append(read_block(reader))
    return blocks


class _WholeBlock(Reader):
    """A block of the engine. A client's block may lie about its sizes, which this loop in C does not survive."""

    def __init__(self, data: bytes | memoryview) -> None:
        super().__init__(receiver(()))
        self._data = bytearray(data)
        self.whole = memoryview(self._data)
        self._strings = BufferedReader(0)
        self._strings.buffer = self._data
        self._strings.current_buffer_size = len(self._data)

    def mark(self) -> None:
        """Do nothing: the whole block is kept."""

    def taken(self) -> bytes:
        """Return nothing: the whole block is known."""
        return b""

    def skip_strings(self, count: int) -> None:
        """Skip strings."""
        self._strings.position = self._position
        self._strings.read_strings_arrow(count)
        self._position = self._strings.position


def with_columns(block: Block, columns: tuple[BlockColumn, ...], revision: int) -> Block:
    """Return an engine's block as a revision has it, with these columns' types.

    Raises UnknownTypeError if a column's end must be found and cannot.
    """
    if not block.rows or (revision < WITH_CUSTOM_SERIALIZATION and columns == block.columns):
        return Block(columns, block.rows, block.data)
    reader = _WholeBlock(block.data)
    reader.varint(), reader.varint()
    pieces: list[bytes | memoryview] = [varint(len(columns)) + varint(block.rows)]
    for place, column in enumerate(columns):
        name, type_name = reader.text(MAX_NAME_BYTES), reader.text(MAX_NAME_BYTES)
        pieces.append(_column_head(BlockColumn(name, column.type), revision))
        start = reader.position
        if place < len(columns) - 1:
            _column(reader, type_name, 0)(block.rows)
        else:
            reader.skip(len(block.data) - start)
        pieces.append(reader.whole[start : reader.position])
    return Block(columns, block.rows, b"".join(pieces))


def first_columns(data: bytes | memoryview) -> tuple[BlockColumn, ...]:
    """Return the columns of an engine's block. Raises UnknownTypeError."""
    return read_block(_WholeBlock(data)).columns


@functools.lru_cache(maxsize=1024)
def _split(type_name: str) -> tuple[str, list[str]]:
    """Split ``Map(String, Array(Int8))`` into ``Map`` and its arguments."""
    name, _, rest = type_name.strip().partition("(")
    inner = rest.rstrip()[:-1]
    return name, split_list(inner) if inner else []


def split_list(inner: str) -> list[str]:
    """Split ``String, Array(Int8)`` at the commas outside parentheses and quotes."""
    parts, depth, start, quoted = [], 0, 0, ""
    for place, mark in enumerate(inner):
        if quoted:
            quoted = "" if mark == quoted and inner[place - 1] != "\\" else quoted
        elif mark in "'`":
            quoted = mark
        elif mark == "," and depth == 0:
            parts.append(inner[start:place].strip())
            start = place + 1
        else:
            depth += (mark == "(") - (mark == ")")
    return [*parts, inner[start:].strip()]


def _elements(name: str, arguments: list[str]) -> list[str]:
    """Return a compound type's element types, without the names of a Tuple's or Nested's elements."""
    if name in ("Tuple", "Nested"):
        return [_ELEMENT_NAME.sub("", argument, count=1) for argument in arguments]
    return arguments[1:] if name == "SimpleAggregateFunction" else arguments


def _column(reader: Reader, type_name: str, depth: int) -> Callable[[int], None]:
    """Skip the data before a column's values; return the function that skips a number of its values."""
    _check_depth(type_name, depth)
    name, arguments = _split(_ALIASES.get(type_name, type_name))
    width = _width(name, arguments)
    if width:
        return lambda rows: reader.skip(width * rows)
    if name == "String":
        return reader.skip_strings
    if name == "LowCardinality" and len(arguments) == 1:
        reader.skip(8)  # the version of its dictionary
        return lambda rows: _skip_low_cardinality(reader, arguments[0], rows, depth)
    if name == "Dynamic":
        return _dynamic(reader, depth)
    if name == "JSON":
        return _json(reader, arguments, depth)
    if name == "Variant" and arguments:
        return _variant(reader, arguments, depth)
    if name == "Tuple" and not arguments:
        return reader.skip
    if name not in ("Array", "Map", "Nested", "Nullable", "SimpleAggregateFunction", "Tuple") or not arguments:
        raise UnknownTypeError(type_name)
    elements = [_column(reader, element, depth + 1) for element in _elements(name, arguments)]
    if name in ("Array", "Map", "Nested"):
        return lambda rows: _skip_array(reader, elements, rows)
    if name == "Nullable":
        elements.insert(0, reader.skip)
    return lambda rows: _skip_each(elements, rows)


def _skip_each(columns: list[Callable[[int], None]], rows: int) -> None:
    for skip in columns:
        skip(rows)


def _variant(reader: Reader, variants: list[str], depth: int) -> Callable[[int], None]:
    if reader.uint():
        raise UnknownTypeError("Variant with compact discriminators")
    columns = [_column(reader, variant, depth + 1) for variant in variants]

    def skip(rows: int) -> None:
        discriminators = reader.exact(rows)
        for number, column in enumerate(columns):
            column(discriminators.count(number))

    return skip


def _dynamic(reader: Reader, depth: int) -> Callable[[int], None]:
    version = reader.uint()
    if version not in _DYNAMIC_VERSIONS:
        raise UnknownTypeError(f"Dynamic of version {version}")
    if version == _DYNAMIC_V1:
        reader.varint()  # the most types
    types = {name: name for name in _names(reader)} | {"SharedVariant": "String"}
    return _variant(reader, [types[name] for name in sorted(types)], depth)


def _json(reader: Reader, arguments: list[str], depth: int) -> Callable[[int], None]:
    version = reader.uint()
    if version == _JSON_AS_STRINGS:
        return reader.skip_strings
    if version not in _JSON_VERSIONS:
        raise UnknownTypeError(f"JSON of version {version}")
    if version == _JSON_V1:
        reader.varint()  # the most paths
    dynamic = _names(reader)
    typed = {found[1]: found[2] for argument in arguments if (found := _TYPED_PATH.fullmatch(argument))}
    columns = [_column(reader, typed[path], depth + 1) for path in sorted(typed, key=lambda path: path.strip("`"))]
    columns += [_column(reader, "Dynamic", depth + 1) for _ in dynamic]
    columns.append(_column(reader, "Array(Tuple(path String, value String))", depth + 1))  # the other paths
    return lambda rows: _skip_each(columns, rows)


def _names(reader: Reader) -> list[str]:
    return [reader.text(MAX_NAME_BYTES) for _ in range(reader.varint())]


def _width(name: str, arguments: list[str]) -> int:
    """Return the width of a type's values, or 0 if they differ in it."""
    if name not in ("FixedString", "Decimal") or not arguments or not _SIZE.fullmatch(arguments[0]):
        return _WIDTHS.get(name, 0)
    size = int(arguments[0])
    if name == "FixedString":
        return size
    return next(width for most, width in ((9, 4), (18, 8), (38, 16), (10**9, 32)) if size <= most)


def _skip_low_cardinality(reader: Reader, inner: str, rows: int, depth: int) -> None:
    if not rows:
        return
    flags, keys = struct.unpack("<QQ", reader.exact(16))
    _check_rows(keys)
    name, arguments = _split(inner)
    _column(reader, arguments[0] if name == "Nullable" and arguments else inner, depth + 1)(keys)
    found = reader.uint()
    _check_rows(found)
    reader.skip(found * _LOW_CARDINALITY_INDEX_WIDTH[flags & 3])


def _skip_array(reader: Reader, elements: list[Callable[[int], None]], rows: int) -> None:
    if not rows:
        return
    reader.skip(8 * (rows - 1))
    total = reader.uint()  # the last offset
    _check_rows(total)
    _skip_each(elements, total)


def _check_rows(count: int) -> None:
    if count > MAX_ROWS:
        raise ProtocolError(f"a column of {count} values has more than {MAX_ROWS}")


def _check_depth(type_name: str, depth: int) -> None:
    if depth > _MAX_NESTING:
        raise ProtocolError(f"{type_name[:80]!r} is nested more than {_MAX_NESTING} deep")
