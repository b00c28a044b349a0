"""The user's options for a CSV file: its separator, its encoding, its formats, and the types of its columns."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from harness.model import LabError

_SEPARATORS = {"\\t": "\t", "tab": "\t"}
_DECIMALS = ".", ","
_SHORT = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y"}
# Type name on the command line -> logical type; decimal(p, s) in addition.
_TYPES = {
    "string": "text",
    "text": "text",
    "str": "text",
    "int": "int64",
    "integer": "int64",
    "bigint": "int64",
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "float": "float64",
    "double": "float64",
    "float64": "float64",
    "decimal": "decimal",
    "bool": "boolean",
    "boolean": "boolean",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "datetime": "timestamp",
    "timestamptz": "timestamp_tz",
    "timestamp_tz": "timestamp_tz",
}
_NAMES = "string, int8 to int64, uint8 to uint64, float64, decimal(p,s), boolean, date, time, timestamp, timestamptz"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Options:
    """How to read a CSV file; empty options are inferred. `schema` maps columns to logical types."""

    separator: str = ""
    encoding: str = ""
    decimal: str = ""
    skip_rows: int = 0
    null_values: tuple[str, ...] = ()
    date_format: str = ""
    schema: Mapping[str, str] = field(default_factory=dict)

    def given(self) -> list[str]:
        """Return the options that the user gave, by their command line names."""
        return ["--" + one.name.replace("_", "-") for one in fields(self) if getattr(self, one.name)]


def of(
    separator: str = "",
    encoding: str = "",
    decimal: str = "",
    skip_rows: int = 0,
    null_values: str = "",
    date_format: str = "",
    schema: str = "",
) -> Options:
    """Return the options from the command line. Raises LabError."""
    separator = _SEPARATORS.get(separator.lower(), separator)
    if separator and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise LabError(f'--separator "{separator}": give one character of ASCII, such as ";", "|" or "\\t"')
    if encoding:
        try:
            "a".encode(encoding)
        except (LookupError, ValueError):  # also for a codec of bytes, such as hex
            raise LabError(
                f'--encoding "{encoding}" is unknown; give one of Python, such as utf-8, latin-1, cp1252 or utf-16'
            ) from None
    if decimal and decimal not in _DECIMALS:
        raise LabError(f'--decimal "{decimal}": give "." or ","')
    if skip_rows < 0:
        raise LabError(f"--skip-rows {skip_rows}: give 0 or more")
    if any("\ud800" <= one <= "\udfff" for one in null_values):
        raise LabError(f'--null-values "{null_values}": give strings in UTF-8')
    nulls = tuple(one for one in null_values.split(",") if one)
    return Options(separator, encoding, decimal, skip_rows, nulls, _date_format(date_format), _schema(schema))


def _date_format(written: str) -> str:
    """Return the format of dates or timestamps in directives that both Python and polars know. Raises LabError."""
    made = written
    for short, long in _SHORT.items():
        made = made.replace(short, long)
    try:
        dt.datetime.strptime(dt.datetime(2024, 12, 31, 23, 59, tzinfo=dt.UTC).strftime(made), made)
        if re.search("%Z|(?<![.])%f", made):  # polars ignores the zone, and counts nanoseconds
            raise ValueError(made)
    except (ValueError, re.error):  # the latter for a part that is there twice
        raise LabError(
            f'--date-format "{written}": write the parts as Python does, such as %d/%m/%y, %m/%d/%Y %H:%M:%S.%f or %z'
        ) from None
    return made.replace(".%f", "%.f")


def _schema(written: str) -> dict[str, str]:
    """Return the logical types of `id=string,price=decimal(10,2)`."""
    found: dict[str, str] = {}
    for part in re.split(r",(?![^(]*\))", written) if written else ():
        name, mark, of_type = (one.strip() for one in part.rpartition("="))
        if not mark or not name:
            raise LabError(f'--schema "{part}": write column=type, comma-separated, such as id=string,day=date')
        decimal = _DECIMAL.fullmatch(of_type.lower())
        if decimal and 0 < int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1]):
            found[name] = f"decimal({decimal[1]}, {decimal[2]})"
        elif of_type.lower() in _TYPES:
            found[name] = _TYPES[of_type.lower()]
        else:
            raise LabError(f'--schema "{part}": unknown type "{of_type}"; the types are {_NAMES}')
    return found
