"""Numbers, dates and times: the factor from a value of an Arrow type to one of ClickHouse's.

Each of them is a whole number of some unit, so a change of unit is one fraction. Ranges:
https://clickhouse.com/docs/sql-reference/data-types
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import pyarrow as pa
from pyarrow import types

from arrow_wire.clickhouse_types import Type

# as in zig/clickhouse_numbers.zig
SOURCES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "i128", "i256", "f16", "f32", "f64", "bits"]
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = Fraction(1, 86_400)  # of a day, per second
_FIRST, _LAST = -2_208_988_800, 10_413_792_000  # seconds from 1970 to 1900, and to 2300
_MOST = 2**255 - 1


@dataclass(frozen=True)
class Number:
    """How numbers of an array become numbers of a column: multiplied, divided, and checked against limits.

    `same` says that the bytes are the same. `bits` is the width of numbers that hold both sides.
    """

    source: int
    width: int
    factor: int = 1
    divisor: int = 1
    low: int = 0
    high: int = 0
    same: bool = False
    floating: bool = False
    bits: int = 64


@dataclass(frozen=True)
class _Unit:
    """The meaning of numbers: each `counts` a number, an instant or a duration, `rate` of them to a one or a second."""

    counts: str
    rate: Fraction
    low: int = 0
    high: int = 0
    width: int = 0


@lru_cache(1024)
def number(target: Type, arrow_type: pa.DataType) -> Number | None:
    """Return how values of an Arrow type become values of a ClickHouse type; None if they cannot."""
    if target.family in _FLOATS:
        return _floating(_FLOATS[target.family], arrow_type)
    if types.is_fixed_size_binary(arrow_type):  # as the server itself returns numbers that Arrow does not have
        wide = target.family.removeprefix("U") in ("Int128", "Int256") and arrow_type.byte_width == width_of(target)
        return Number(0, arrow_type.byte_width, same=True) if wide else None
    unit, found = _unit_of_type(target), _unit_of_array(arrow_type)
    if not unit or not found:
        return None
    rate = Fraction(1)
    if unit.counts == found.counts or (unit.counts, found.counts) == ("number", "moment"):  # as seconds since 1970
        rate = unit.rate / found.rate
    elif not (target.family in ("Date", "Date32") and found.counts == "number" and found.rate == 1):
        return None
    source = _source(arrow_type)
    same = rate == 1 and unit.low <= found.low <= found.high <= unit.high and unit.width == found.width
    bits = _bits(SOURCES[source], unit, rate.numerator)
    return Number(source, unit.width, rate.numerator, rate.denominator, unit.low, unit.high, same, False, bits)


def width_of(target: Type) -> int:
    """Return the size of a number in bytes. Raises TypeError for a type that is not a number."""
    if target.family in _FLOATS:
        return _FLOATS[target.family]
    if unit := _unit_of_type(target):
        return unit.width
    raise TypeError(f"{target.text} cannot be written")


_FLOATS = {"Float64": 8, "Float32": 4, "BFloat16": 2}


def _floating(width: int, arrow_type: pa.DataType) -> Number | None:
    if types.is_floating(arrow_type):
        return Number(_source(arrow_type), width, same=arrow_type.byte_width == width > 2, floating=True)
    return (
        Number(_source(arrow_type), width, floating=True)
        if types.is_integer(arrow_type) or types.is_boolean(arrow_type)
        else None
    )


def _bits(source: str, unit: _Unit, factor: int) -> int:
    """Return how many bits hold the numbers of the array and of the column, and the factor between them."""
    if source == "i256" or unit.width == 32:
        return 256
    return 128 if source in ("u64", "i128") or unit.width == 16 or unit.high >= 2**63 or factor >= 2**63 else 64


def _source(arrow_type: pa.DataType) -> int:
    if types.is_boolean(arrow_type):
        return SOURCES.index("bits")
    letter = "f" if types.is_floating(arrow_type) else "u" if types.is_unsigned_integer(arrow_type) else "i"
    return SOURCES.index(f"{letter}{arrow_type.bit_width}")


def _unit_of_array(arrow_type: pa.DataType) -> _Unit | None:
    if types.is_boolean(arrow_type):
        return _Unit("number", Fraction(1), 0, 1)
    if types.is_floating(arrow_type):
        return _Unit("number", Fraction(1))
    if types.is_decimal(arrow_type):
        high = 10**arrow_type.precision - 1
        return _Unit("number", _scale(arrow_type.scale), -high, high, arrow_type.byte_width)
    if types.is_integer(arrow_type):
        return _whole("number", arrow_type.bit_width, types.is_signed_integer(arrow_type))
    if types.is_date32(arrow_type):
        return _Unit("moment", _DAY, -(2**31), 2**31 - 1, 4)
    if types.is_date64(arrow_type):
        return _whole("moment", 64, True, 1000)
    if types.is_timestamp(arrow_type):
        return _whole("moment", 64, True, _PER_SECOND[arrow_type.unit])
    if types.is_time(arrow_type) or types.is_duration(arrow_type):
        return _whole("span", arrow_type.bit_width, True, _PER_SECOND[arrow_type.unit])
    return None


def _whole(counts: str, bits: int, signed: bool, rate: int = 1) -> _Unit:
    low = -(2 ** (bits - 1)) if signed else 0
    return _Unit(counts, Fraction(rate), low, low + 2**bits - 1, bits // 8)


def _scale(digits: int) -> Fraction:
    return Fraction(10) ** digits


def _unit_of_type(target: Type) -> _Unit | None:
    family, literals = target.family, target.literals
    signed = family.startswith("Int")
    if family.removeprefix("U")[:3] == "Int" and family.lstrip("UInt").isdigit():
        unit = _whole("number", int(family.lstrip("UInt")), signed)
        return _Unit("number", unit.rate, unit.low, min(unit.high, _MOST), unit.width)
    if family.startswith("Decimal"):
        digits, scale = (int(literal) for literal in literals)
        width = next(bytes_ for most, bytes_ in ((9, 4), (18, 8), (38, 16), (76, 32)) if digits <= most)
        return _Unit("number", _scale(scale), 1 - 10**digits, 10**digits - 1, width)
    if family in ("DateTime64", "Time64"):
        return _precise(family, 10 ** int(literals[0]))
    return _UNITS.get(family)


def _precise(family: str, rate: int) -> _Unit:
    if family == "Time64":
        return _Unit("span", Fraction(rate), -3_600_000 * rate + 1, 3_600_000 * rate - 1, 8)
    return _Unit("moment", Fraction(rate), _FIRST * rate, min(_LAST * rate - 1, 2**63 - 1), 8)


_UNITS = {
    "Bool": _Unit("number", Fraction(1), 0, 1, 1),
    "IPv4": _Unit("number", Fraction(1), 0, 2**32 - 1, 4),
    "Date": _Unit("moment", _DAY, 0, 2**16 - 1, 2),
    "Date32": _Unit("moment", _DAY, -25_567, 120_529, 4),
    "DateTime": _Unit("moment", Fraction(1), 0, 2**32 - 1, 4),
    "Time": _Unit("span", Fraction(1), -3_599_999, 3_599_999, 4),
}
