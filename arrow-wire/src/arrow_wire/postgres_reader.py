"""Decode rows of Postgres, as they arrive, into Arrow arrays: DataRow messages, or those of a binary COPY."""

from collections.abc import Sequence
from ctypes import byref, c_char, pointer
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from arrow_wire import library
from arrow_wire.columns import Columns
from arrow_wire.errors import DamagedStream, WrongValue
from arrow_wire.postgres_types import EPOCH_DAYS, EPOCH_MICROSECONDS, MICROSECONDS_A_DAY, TEXTS, ServerType

MESSAGES, COPY = 0, 1  # the framing of a row's values
MORE, OTHER, FULL, _WRONG = range(4)  # why decoding ended: `postgres_decode.End`
_DIGITS_128, _DIGITS_256 = 38, 76
# The reasons why Arrow's type cannot hold a value: `postgres_fields.Error`, from 1 on.
_REASONS = (
    "",
    "its bytes do not have the form of {type}",
    "{type} has no infinity or NaN; cast it on the server, or to text",
    "a value is out of range for {type}; cast it on the server, or to text",
    "an interval with months has no length; cast it on the server, or to text",
    "an array does not have the depth of {type}",
    "the strings of one array are too long for {type}",
    "there is no memory for {type}",
    "a string is not UTF-8",
)


@dataclass(frozen=True, eq=False)
class Style:
    """The Arrow types of columns, if there is a choice.

    `text` is the type of strings, `uuid` that of uuids (the same one, or `pa.uuid()`), `binary` of bytea, and `date` is
    date32 or timestamp[us]. No decimal has more than `digits`: such a column, and a numeric without a limit, becomes
    the server's string, which is exact. An interval is a duration.
    """

    text: pa.DataType
    uuid: pa.DataType
    binary: pa.DataType
    date: pa.DataType
    digits: int = _DIGITS_256


VIEWS = Style(pa.string_view(), pa.string_view(), pa.binary_view(), pa.date32())
LARGE = Style(pa.large_string(), pa.large_string(), pa.large_binary(), pa.date32())


@dataclass(frozen=True, eq=False)
class Reading:
    """How a column is read: its Arrow type, whether the server sends it as text, and its decoder."""

    arrow_type: pa.DataType
    decoder: str
    as_text: bool = False
    multiply: int = 1
    shift: int = 0
    scale: int = 0
    item: "Reading | None" = None


@lru_cache(1024)
def reading(found: ServerType, style: Style, depth: int = 1) -> Reading:
    """Return how a column of this type is read; an array has `depth` dimensions.

    A type that Arrow lacks (inet, timetz, enums, types of extensions) becomes the server's string.
    """
    if found.item is not None:
        item = reading(found.item, style)
        if item.as_text and found.item.name not in {*TEXTS, "jsonb"}:
            return _text(style)
        made = replace(item, as_text=False, decoder="jsonb" if found.item.name == "jsonb" else item.decoder)
        for _ in range(depth):
            made = Reading(pa.large_list(made.arrow_type), "array", item=made)
        return made
    if found.name == "numeric":
        return _numeric(found, style)
    if found.name == "uuid":
        return Reading(style.uuid, "uuid" if isinstance(style.uuid, pa.UuidType) else "uuid_text")
    if found.name == "bytea":
        return Reading(style.binary, "bytes")
    if found.name == "date" and style.date != pa.date32():
        shift = EPOCH_DAYS * MICROSECONDS_A_DAY
        return Reading(style.date, "moment4_i64", multiply=MICROSECONDS_A_DAY, shift=shift)
    return _FIXED.get(found.name) or _text(style)


def _text(style: Style) -> Reading:
    return Reading(style.text, "text", as_text=True)


def _numeric(found: ServerType, style: Style) -> Reading:
    digits, scale = found.digits or (style.digits + 1, 0)
    wide, places = max(digits, scale) + max(0, -scale), max(0, scale)  # (3, -2) has five digits, (2, 4) has four places
    if wide > min(style.digits, _DIGITS_256):
        return _text(style)
    if wide <= _DIGITS_128:
        return Reading(pa.decimal128(wide, places), "decimal128", scale=places)
    return Reading(pa.decimal256(wide, places), "decimal256", scale=places)


_FIXED = {
    "bool": Reading(pa.bool_(), "bool"),
    "int2": Reading(pa.int16(), "number2"),
    "int4": Reading(pa.int32(), "number4"),
    "int8": Reading(pa.int64(), "number8"),
    "oid": Reading(pa.uint32(), "number4"),
    "float4": Reading(pa.float32(), "number4"),
    "float8": Reading(pa.float64(), "number8"),
    "date": Reading(pa.date32(), "moment4_i32", shift=EPOCH_DAYS),
    "timestamp": Reading(pa.timestamp("us"), "moment8_i64", shift=EPOCH_MICROSECONDS),
    "timestamptz": Reading(pa.timestamp("us", "UTC"), "moment8_i64", shift=EPOCH_MICROSECONDS),
    "time": Reading(pa.time64("us"), "time"),
    "interval": Reading(pa.duration("us"), "duration"),
}


class WrongDepth(WrongValue):
    """An array has other dimensions than its column declares."""


class Decoder:
    """Decodes rows into columns that grow; `take` hands over their contents and starts again."""

    def __init__(self, names: Sequence[str], readings: Sequence[Reading], framing: int = MESSAGES) -> None:
        self._names, self._readings, self._framing = names, readings, framing
        self._lines, self._keeps = _lines(tuple(readings))
        self._columns = Columns(one.arrow_type for one in readings)
        self._before = 0  # rows that were taken
        self.rows = 0  # in the columns
        self.end = MORE

    def feed(self, buffer: memoryview, position: int, limit: int) -> int:
        """Decode whole rows of a writable buffer from a position on, up to `limit` rows in the columns.

        Return the position after them; `end` says why it stopped. MORE: the rest has to arrive; OTHER: it is not a row;
        FULL: the columns are full. Raises ValueError for a value that its column's type cannot hold, with its row,
        counted from 0 in the order of arrival. Raises WrongDepth for an array, and MemoryError. After an error it
        decodes nothing more, and `take` raises too.
        """
        progress = library.ReadProgress(position=position, rows=self.rows)
        first = byref(c_char.from_buffer(buffer)) if len(buffer) else None
        with self._columns.in_use():
            library.library().arrow_wire_postgres_decode(
                self._lines, len(self._lines), self._columns.address, self._framing, first, len(buffer), limit,
                byref(progress),
            )  # fmt: skip
            if progress.end == _WRONG:
                raise self._complaint(progress)
            self.rows, self.end = progress.rows, progress.end
        return int(progress.position)

    def take(self) -> list[pa.Array]:
        """Return the rows so far, one array for each column. Raises ValueError after an error of `feed`."""
        arrays = self._columns.take()
        self._before += self.rows
        self.rows = 0
        return arrays

    def _complaint(self, progress: library.ReadProgress) -> Exception:
        if not self._names:
            return DamagedStream("the server sent bytes that are not rows without columns")
        name, row = self._names[progress.column], self._before + progress.row
        wrong = _REASONS[progress.reason].format(type=self._readings[progress.column].arrow_type)
        text = f'column "{name}": row {row}: {wrong}'
        if progress.reason == 7:
            return MemoryError(text)
        return {1: DamagedStream, 5: WrongDepth, 8: DamagedStream}.get(progress.reason, WrongValue)(text, name, row)


@lru_cache(256)
def _lines(readings: tuple[Reading, ...]) -> tuple[Any, list[Any]]:
    """Return the structures of columns, which decoders share, and the objects that must stay alive."""
    keeps: list[Any] = []

    def line(found: Reading) -> library.ReadColumn:
        item = pointer(line(found.item)) if found.item is not None else None
        keeps.append(item)
        digits = found.arrow_type.precision if pa.types.is_decimal(found.arrow_type) else 0
        return library.ReadColumn(
            item, library.number_of("postgres_decoder", found.decoder), digits, found.scale, found.multiply, found.shift
        )

    return (library.ReadColumn * len(readings))(*map(line, readings)), keeps
