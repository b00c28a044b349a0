"""Which kinds of hostile values (see `harness.datasets.hostile`) a canonical frame has, and in which columns.

A kind about a type (booleans, decimals ...) is present if the type is. Transports change a type's extreme values; a
column has extremes if any value is one. The limits are stated at each kind. If they miss a loss, the race finds it when
it compares every value.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterator

import polars as pl

from harness.check.logical_types import FLOATS, INTEGERS, PER_SECOND, digits, fields, is_wide, items, mapped, plain
from harness.datasets.hostile.common_kinds import KINDS

# Type -> the kind that shows its values.
OF_TYPES = {
    "boolean": "booleans",
    "timestamp": "timestamps",
    "timestamp_tz": "timestamps_tz",
    "timestamp_ns": "timestamps",
    "timestamp_tz_ns": "timestamps_tz",
    "date": "dates",
    "decimal": "decimals",
    "array": "arrays",
    "nested": "nested",
    "category": "categories",
    "uint32": "uint32",
    "uint64": "uint64",
    "float32": "float32",
    "json": "json",
}
# The kinds that show the effect of a client's other time zone on timestamps: every timestamp belongs to them.
_ELSEWHERE = {
    **dict.fromkeys(("timestamp", "timestamp_ns"), "timestamps_elsewhere"),
    **dict.fromkeys(("timestamp_tz", "timestamp_tz_ns"), "timestamps_tz_elsewhere"),
}
# Kinds whose values are ordinary except for extremes; `extreme` decides whether a column has some.
EXTREMES = {"dates", "timestamps", "timestamps_tz", "decimals", "uint64"}
_WITH_NULLS = {"decimal": "null_decimal", "timestamp_tz": "null_instant", "timestamp_tz_ns": "null_instant"}
_MANY = 10_000  # rows that a client may sample to infer a type
_LONG = 100_000  # characters
_EXACT = 2**53  # up to here a float represents every integer
_USUAL_DAYS = dt.date(1970, 1, 1), dt.date(2100, 1, 1)  # dates that clients convert in every way
_TENTH_DIGIT = 15  # digits of a decimal that a 64-bit float preserves

_NULL_WORDS = ("NULL", "null", "NA", "N/A", "<NA>", "NaN", "nan", "None", "NaT", "nil", "#N/A", "-")
_Test = Callable[[pl.Expr], pl.Expr]


def _contains(*strings: str) -> _Test:
    return lambda column: pl.any_horizontal(column.str.contains(text, literal=True) for text in strings)


def _matches(pattern: str) -> _Test:
    return lambda column: column.str.contains(pattern)


_STRINGS: dict[str, _Test] = {
    "empty_text": lambda column: column == "",
    "backslash_n": _contains("\\N"),
    "null_words": lambda column: column.is_in(_NULL_WORDS),
    "tab": _contains("\t"),
    "newline": _contains("\n"),
    "carriage_return": _contains("\r"),
    "quotes": _contains('"', "'"),
    "backslash": _contains("\\"),
    "comma": _contains(",", ";"),
    "spaces": lambda column: column.str.starts_with(" ") | column.str.ends_with(" "),
    "placeholders": _matches(r"%|\$\d|\?|\{|(^|\s):[a-z]"),
    "unicode": _matches("[\U00010000-\U0010ffff\u0300-\u036f\u0590-\u08ff\u2028\x85\x0b\x0c\ufeff\uffff]"),
    "nul_character": _contains("\0"),
    "long_text": lambda column: column.str.len_bytes() >= _LONG,
}
_FLOATS: dict[str, _Test] = {
    "nan": lambda column: column.is_nan(),
    "infinity": lambda column: column.is_infinite(),
    "negative_zero": lambda column: (column == 0) & (column.cast(pl.String) == "-0.0"),
    "denormals": lambda column: (column != 0) & (column.abs() < 2.2250738585072014e-308),
}
_FLOATS_32: dict[str, _Test] = {f"float32_{name}": test for name, test in _FLOATS.items() if name != "denormals"} | {
    "float32_denormals": lambda column: (column != 0) & (column.abs() < 1.1754943508222875e-38)
}


def found(frame: pl.DataFrame, logical_types: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the kinds of hostile values in a canonical frame, in the order of `hostile.KINDS`, with their columns."""
    where: dict[str, list[str]] = {}
    for name, logical in logical_types.items():
        for hostile in (*_of_name(name), *_of_column(frame[name], logical)):
            where.setdefault(hostile, []).append(name)
    folded = Counter(map(str.lower, logical_types))
    if alike := [name for name in logical_types if folded[name.lower()] > 1]:
        where["name_case"] = alike
    if frame.height == 1:
        where["one_row"] = []
    return {hostile: tuple(where[hostile]) for hostile in KINDS if hostile in where}


def extremes(frame: pl.DataFrame, logical_types: dict[str, str]) -> set[str]:
    """Return the kinds in EXTREMES with extreme values in a frame."""
    return {OF_TYPES[plain(logical)] for name, logical in logical_types.items() if _extreme(frame[name], logical)}


def days(series: pl.Series) -> tuple[dt.date | None, dt.date | None]:
    """Return the first and last date of a column of dates or timestamps within Python's range; None without any."""
    if series.dtype not in (pl.Date, pl.Datetime) or series.null_count() == len(series):
        return None, None
    first, last = (_day(series.to_physical(), series.dtype, end) for end in ("min", "max"))
    return first, last


def rows(series: pl.Series) -> dict[str, int]:
    """Return the rows (from 0) of values in a column of dates or timestamps that a database may not hold.

    `low` and `high` are the first and the last date, `finer` the first timestamp that microseconds cannot represent.
    """
    if series.dtype not in (pl.Date, pl.Datetime):
        return {}
    numbers = series.to_physical()
    found = {"low": numbers.arg_min(), "high": numbers.arg_max()}
    if getattr(series.dtype, "time_unit", "") == "ns":
        found["finer"] = next(iter((numbers % 1_000 != 0).arg_true()), None)
    return {what: row for what, row in found.items() if row is not None}


def _day(numbers: pl.Series, dtype: pl.DataType, end: str) -> dt.date:
    a_day = 86_400 * PER_SECOND[dtype.time_unit] if isinstance(dtype, pl.Datetime) else 1
    number: int = getattr(numbers, end)() // a_day
    first, last = dt.date.min.toordinal(), dt.date.max.toordinal()
    return dt.date.fromordinal(min(max(number + dt.date(1970, 1, 1).toordinal(), first), last))


def _of_column(series: pl.Series, logical: str) -> Iterator[str]:
    if of_type := OF_TYPES.get(plain(logical)):
        yield of_type
    yield from sorted(_elsewhere(logical))
    if series.null_count():
        yield "nulls"
        if logical in ("text", "category", "uuid"):
            yield "null_text"
        if hostile := _WITH_NULLS.get(plain(logical)):
            yield hostile
        if len(series) > _MANY and series[:_MANY].null_count() == _MANY and series.null_count() < len(series):
            yield "first_10000_null"
    if logical in ("text", "category", "json"):
        yield from _of_strings(series)
    if logical in FLOATS:
        yield from _of_floats(series, logical)
    if logical in INTEGERS:
        yield from _of_integers(series, logical)
    if logical == "uuid" and series.str.contains("^0{8}-|^f{8}-").any():
        yield "nil_uuid"


def _elsewhere(logical: str) -> set[str]:
    """Return the kinds of timestamps, at any depth of a column, that depend on the client's time zone."""
    of, inside = plain(logical), list[str]()
    if of == "array":
        inside = [items(logical)]
    elif of == "nested":
        inside = [*fields(logical).values()]
    elif of == "map":
        inside = [*mapped(logical)]
    found = {_ELSEWHERE[logical]} if logical in _ELSEWHERE else set[str]()
    return found.union(*map(_elsewhere, inside))


def _of_strings(series: pl.Series) -> Iterator[str]:
    different = series.cast(pl.String).drop_nulls().unique().alias("text").to_frame()
    tested = different.select(test(pl.col("text")).any().alias(name) for name, test in _STRINGS.items())
    yield from (name for name in tested.columns if tested[name][0])
    if different.height and different["text"].str.contains(r"^\d+$").all():
        yield "digits"


def _of_floats(series: pl.Series, logical: str) -> Iterator[str]:
    column = series.drop_nulls().alias("float").to_frame()
    tests = _FLOATS if logical == "float64" else _FLOATS_32
    tested = column.select(test(pl.col("float")).any().alias(name) for name, test in tests.items())
    yield from (name for name in tested.columns if tested[name][0])
    if logical == "float64":
        finite = column.filter(pl.col("float").is_finite())["float"]
        if (finite.head(_MANY * 10).cast(pl.String).str.len_chars() > 17).any():
            yield "float_digits"
        start = finite.head(_MANY)
        if len(finite) > _MANY and (start == start.round(0)).all() and (finite != finite.round(0)).any():
            yield "late_fraction"


def _of_integers(series: pl.Series, logical: str) -> Iterator[str]:
    low, high = series.min(), series.max()
    if low is None or high is None:
        return
    largest = max(abs(value) for value in (low, high) if isinstance(value, int))
    if logical == "int32" and largest >= 2**31 - 1:
        yield "int32_limits"
    if logical == "int64" and largest > _EXACT:
        yield "int64_limits"
        if series.null_count():
            yield "int64_beside_null"


def _extreme(series: pl.Series, logical: str) -> bool:
    if is_wide(logical):
        return True
    if plain(logical) == "decimal":
        precision, scale = digits(logical)
        if precision <= _TENTH_DIGIT or series.null_count() == len(series):
            return False
        return bool((series.abs() >= 10 ** (_TENTH_DIGIT - scale)).any()) if scale < _TENTH_DIGIT else True
    if logical == "uint64":
        return bool((series > _EXACT).any())
    first, last = days(series)
    return bool(first and last) and not (_USUAL_DAYS[0] <= first <= last < _USUAL_DAYS[1])  # type: ignore[operator]


# Pattern in a name -> the kind of names.
_NAMES: dict[str, re.Pattern[str]] = {
    "name_double_quote": re.compile('"'),
    "name_backtick": re.compile("`"),
    "name_single_quote": re.compile("'"),
    "name_quoted": re.compile(r"""(["'`]).*\1""", re.DOTALL),
    "name_statement": re.compile(r'".*;', re.DOTALL),
    "name_backtick_statement": re.compile("`.*;", re.DOTALL),
    "name_backslash": re.compile(r"\\"),
    "name_percent": re.compile("%"),
    "name_parameter": re.compile(r":|\$\d|\?|\{"),
    "name_space": re.compile(" "),
    "name_line": re.compile(r"[\t\r\n]"),
    "name_capitals": re.compile("[A-Z]"),
    "name_unicode": re.compile(r"[^\x00-\x7f]"),
    "name_mark": re.compile(r"[,()\[\]]|^\d|^-|/\*"),
    "name_dot": re.compile(r"\."),
    "name_pattern": re.compile(r"[*^+$]|_%"),
}
_WORDS = {"select", "from", "order", "user", "null", "format", "table", "values", "group", "where", "index", "key"}
_LONG_NAME = 60  # bytes


def _of_name(name: str) -> Iterator[str]:
    for kind, pattern in _NAMES.items():
        found_there = pattern.fullmatch(name) if kind == "name_quoted" else pattern.search(name)
        if found_there:
            yield kind
    if name.lower() in _WORDS:
        yield "name_keyword"
    if len(name.encode()) >= _LONG_NAME:
        yield "name_long"
