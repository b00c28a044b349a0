"""Blocks of ClickHouse's Native format from Arrow arrays: https://clickhouse.com/docs/interfaces/formats/Native"""

import ctypes
from collections.abc import Sequence
from ctypes import byref, pointer

import numpy as np
import pyarrow as pa

from arrow_wire.arrays import Values, first_wrong, gathered, is_read_in_place, require_whole, shown
from arrow_wire.clickhouse_convert import converted, steps
from arrow_wire.clickhouse_library import Column, Result, functions
from arrow_wire.clickhouse_plan import Plan, plan
from arrow_wire.clickhouse_types import Type, head, innermost, parsed, takes_null
from arrow_wire.errors import WrongValue
from arrow_wire.library import Buffer

_NULL, _RANGE, _INEXACT, _FORM, _DAMAGED, _MEMORY = range(1, 7)
_WRONG = {
    _NULL: "{found} has a null, which {type} does not take",
    _RANGE: "{found} does not fit {type}",
    _INEXACT: "{type} does not hold {found} exactly",
    _FORM: "{found} is not {form}",
}
_FORMS = {"UUID": "a UUID of 36 characters", "IPv4": "an address like 192.0.2.1", "IPv6": "an address like 2001:db8::1"}

_SHOWN = 50  # characters of a value in a message


class Room:
    """Memory for one block at a time."""

    def __init__(self) -> None:
        self.address = functions().arrow_wire_clickhouse_encoder_new()
        self._free = functions().arrow_wire_clickhouse_encoder_free  # at the interpreter's end globals are gone
        if not self.address:
            raise MemoryError("no memory for a block")

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._free(self.address)
            self.address = None


class Columns:
    """Arrays of equal length, in one or several pieces, as columns of a table, with their names and types there.

    `exact` is whether Nullable columns without a null are sent as such, too. Raises TypeError for an array that cannot
    be converted to its column's type.
    """

    def __init__(self, columns: Sequence[tuple[str, Values, str]], exact: bool = False) -> None:
        self._names = [name for name, *_ in columns]
        self._targets = [parsed(text) for *_, text in columns]
        self._arrays = [
            _taken(name, array, target) for (name, array, _), target in zip(columns, self._targets, strict=True)
        ]
        self._plans = [
            _planned(name, target, array, exact)
            for name, target, array in zip(self._names, self._targets, self._arrays, strict=True)
        ]
        heads = [head(name, made.wire) for name, made in zip(self._names, self._plans, strict=True)]
        self._heads = [pa.py_buffer(head) for head in heads]
        self._columns = (Column * len(heads))(
            *(
                Column(Buffer(head.address, head.size), pointer(made.node))
                for head, made in zip(self._heads, self._plans, strict=True)
            )
        )

    @property
    def wires(self) -> list[tuple[str, str]]:
        """Name and type of each column as in a block."""
        return [(name, made.wire) for name, made in zip(self._names, self._plans, strict=True)]

    def block(self, room: Room, rows: np.ndarray | range) -> memoryview:
        """Return rows as one block, which the next block in this room overwrites.

        `rows` is a range, or row numbers as uint64 in any order. Raises ValueError for a value that its column cannot
        hold; then send nothing of the block.
        """
        result = _encoded(self._columns, len(self._columns), room, rows)
        if result.failure:
            raise self._refused(result.column, result.failure, room, rows)
        made = (ctypes.c_uint8 * result.size).from_address(result.address)
        made.room = room  # keeps the memory alive
        return memoryview(made).cast("B")

    def _refused(self, number: int, failure: int, room: Room, rows: np.ndarray | range) -> Exception:
        name, target, array = self._names[number], self._targets[number], self._arrays[number]
        if failure == _MEMORY:
            return MemoryError(f'column "{name}": no memory for a block of {len(rows)} rows')
        if failure == _DAMAGED or first_wrong(array) is not None:
            require_whole(name, array)
            return WrongValue(f'column "{name}": the array is damaged: offsets point beyond its end', name)
        low, high = 0, len(rows)  # the first row that fails ends before `high`
        while high - low > 1:
            middle = (low + high) // 2
            one = (Column * 1)(self._columns[number])
            failed = _encoded(one, 1, room, rows[low:middle])
            low, high = (low, middle) if failed.failure else (middle, high)
            failure = failed.failure or failure
        row = int(rows[low])
        found = _shown(array, row)
        form = _FORMS.get(innermost(target), f"a value of {target.text}")
        wrong = _WRONG[failure].format(type=target.text, form=form, found=found)
        return WrongValue(f'column "{name}": row {row}: {wrong}', name, row)


def _encoded(columns: ctypes.Array, count: int, room: Room, rows: np.ndarray | range) -> Result:
    result = Result()
    numbers = None if isinstance(rows, range) else np.ascontiguousarray(rows, np.uint64)
    first = rows.start if isinstance(rows, range) else 0
    functions().arrow_wire_clickhouse_encode(
        room.address, columns, count, None if numbers is None else numbers.ctypes.data, first, len(rows), byref(result)
    )
    return result


def _shown(array: Values, row: int) -> str:
    try:
        return shown(array, row, _SHOWN)
    except (ArithmeticError, ValueError):  # Python has no such date
        return f"one that Python cannot show, of {array.type}"


def _taken(name: str, array: Values, target: Type) -> Values:
    if steps(array.type, target) or not is_read_in_place(array):
        require_whole(name, array)
    try:
        return gathered(converted(array, target))
    except (pa.ArrowInvalid, ValueError) as error:
        raise WrongValue(f'column "{name}": some values do not fit {target.text}: {error}', name) from None


def _planned(name: str, target: Type, array: Values, exact: bool) -> Plan:
    if array.null_count and not takes_null(target):
        hint = "fill them or make the column Nullable"
        raise TypeError(f'column "{name}": {target.text} takes no null, and the frame has {array.null_count}; {hint}')
    try:
        return plan(target, array, exact)
    except TypeError as error:
        raise TypeError(f'column "{name}": {error}') from None
