"""Odd CSV files of every sort: each cell keeps its value, or one line refuses the file."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import assume, example, given
from hypothesis import strategies as st

from harness.datasets.user_data import data, options, reading
from harness.model import LabError
from tests.fuzzing import examples

EPOCH = dt.datetime(1970, 1, 1)
A_SECOND, A_DAY = 10**9, 86_400 * 10**9  # in nanoseconds
_NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,5})?", re.ASCII)
_WORDS = {"NaN": "nan", "nan": "nan", "inf": "inf", "-inf": "-inf"}
_TRUTHS = {"true": True, "false": False}
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)
_ORDERS = {"day and month": (2, 1, 0), "month and day": (2, 0, 1)}
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)


@dataclass(frozen=True)
class Meaning:
    """The meaning of a cell that is no string: a `kind` of value, and the value as a number, a word or a Boolean."""

    kind: str
    value: Any


def meanings(cell: str, decimal: str = ".") -> list[Meaning]:
    """Return all meanings of a cell that is no string, as Python's own types read it."""
    found = [Meaning("truth", _TRUTHS[cell.lower()])] if cell.lower() in _TRUTHS else []
    plain = cell.strip(" ")
    number = plain.replace(",", ".") if decimal == "," and "." not in plain and plain.count(",") <= 1 else plain
    if plain in _WORDS:
        found.append(Meaning("float", _WORDS[plain]))
    elif _NUMBER.fullmatch(number) and not (decimal == "," and "." in plain):
        found.append(Meaning("number", Decimal(number)))
    return found + _times(cell)


def _times(cell: str) -> list[Meaning]:
    found = []
    if clock := _CLOCK.fullmatch(cell):
        seconds = _seconds(*clock.groups()[:3])
        found += [Meaning("time", seconds * A_SECOND + _fraction(clock[4]))] if seconds is not None else []
    if moment := _MOMENT.fullmatch(cell):
        day, seconds = _day(moment[1], "-", (0, 1, 2)), _seconds(moment[2], moment[3], moment[4] or "00")
        if day is not None and seconds is not None:
            zone = moment[6] or ""
            at = day * A_DAY + (seconds - _offset(zone)) * A_SECOND + _fraction(moment[5])
            found.append(Meaning("instant" if zone else "moment", at))
    for mark in "-/":
        if re.fullmatch(rf"\d{{4}}{mark}\d\d{mark}\d\d", cell, re.ASCII):
            day = _day(cell, mark, (0, 1, 2))
            found += [Meaning("date", day)] if day is not None else []
    return found + [one for mark in "/.-" for order in _ORDERS for one in _in_order(cell, mark, order)]


def _in_order(cell: str, mark: str, order: str) -> Iterator[Meaning]:
    """Yield the meanings of a day with four digits of the year at its end, with a time or without."""
    date = rf"\d{{1,2}}{re.escape(mark)}\d{{1,2}}{re.escape(mark)}\d{{4}}"
    parts = re.fullmatch(rf"({date})(?: (\d\d):(\d\d)(?::(\d\d)(?:\.(\d{{1,6}}))?)?)?", cell, re.ASCII)
    if parts and (day := _day(parts[1], mark, _ORDERS[order])) is not None:
        seconds = _seconds(parts[2], parts[3], parts[4] or "00") if parts[2] else None
        if not parts[2]:
            yield Meaning(order, day)
        elif seconds is not None:
            yield Meaning(f"{order} at", day * A_DAY + seconds * A_SECOND + _fraction(parts[5]))


def _day(written: str, mark: str, order: tuple[int, int, int]) -> int | None:
    parts = [int(part) for part in written.split(mark)]
    try:
        return (dt.datetime(*(parts[place] for place in order)) - EPOCH).days
    except ValueError:
        return None


def _seconds(hour: str, minute: str, second: str) -> int | None:
    parts = int(hour), int(minute), int(second)
    return parts[0] * 3600 + parts[1] * 60 + parts[2] if parts[0] < 24 and max(parts[1:]) < 60 else None


def _fraction(digits: str | None) -> int:
    return int((digits or "").ljust(9, "0"))


def _offset(zone: str) -> int:
    if zone in ("", "Z"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if zone[0] == "-" else 1)


def kept(cells: Sequence[str | None], column: pl.Series, decimal: str = ".") -> str:
    """Say which cell a column of a frame has otherwise than it is written; empty where it has them all.

    A cell is None where nothing is written, not even quotes: that is a null.
    """
    if len(cells) != len(column):
        return f"{len(cells)} cells and {len(column)} values"
    values = (column.to_physical() if column.dtype.is_temporal() else column).to_list()
    readings = []
    for row, (cell, value) in enumerate(zip(cells, values, strict=True)):
        if cell is None or (cell == "" and column.dtype != pl.String):
            if value is not None:
                return f"row {row}: nothing became {value!r}"
        elif column.dtype == pl.String:
            if value != cell:
                return f"row {row}: {cell!r} became {value!r}"
        elif not (held := {one.kind for one in meanings(cell, decimal) if _is(one, value, column.dtype)}):
            return f"row {row}: {cell!r} became {column.dtype} {value!r}"
        else:
            readings.append(held)
    if readings and not set.intersection(*readings) and not set().union(*readings) <= {"number", "float"}:
        return f"its cells are read in several ways: {readings[:5]}"
    orders = [{one.kind.partition(" at")[0] for one in meanings(cell)} for cell in cells if cell]
    both = {"day and month", "month and day"}
    if column.dtype.is_temporal() and orders and all(both <= order for order in orders):
        alike = [
            {one.value for one in meanings(cell) if one.kind.partition(" at")[0] in both} for cell in cells if cell
        ]
        if any(len(values) > 1 for values in alike):
            return "day and month could be the other way round, and it is no string"
    return ""


def _is(one: Meaning, value: Any, dtype: Any) -> bool:
    """Say whether a value of a column is a meaning of its cell."""
    if value is None:
        return False
    if dtype == pl.Boolean:
        return one.kind == "truth" and one.value is value
    if dtype == pl.Float64:
        if one.kind == "float":
            return repr(value) == one.value
        signed = one.kind == "number" and one.value.is_signed() == (math.copysign(1, value) < 0)
        return signed and math.isfinite(value) and Decimal(repr(value)) == one.value
    if dtype.is_integer() or dtype.is_decimal():
        return one.kind == "number" and Decimal(value) == one.value
    if dtype == pl.Date:
        return one.kind in ("date", "day and month", "month and day") and one.value == value
    if dtype == pl.Time:
        return one.kind == "time" and one.value == value
    wanted = ("instant",) if dtype.time_zone else ("moment", "day and month at", "month and day at")
    return one.kind in wanted and one.value == value * {"us": 1_000, "ns": 1}[dtype.time_unit]


_INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-1000, 1000)
_DAYS = st.dates(dt.date(1, 1, 1)) | st.dates(dt.date(1950, 1, 1), dt.date(2050, 12, 31))
_MOMENTS = st.datetimes() | st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2100, 1, 1))
_ZONES = st.sampled_from(["Z", "+02:00", "-0530", "+14", "-12:45"])


def _shaped(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)


SHARP = "\"'\\,;\t|\r\n .:-+/#\u00a0\u2028\x0b\x1cé€😀0123456789eEaN"
STRINGS = (
    st.text(st.sampled_from(SHARP), max_size=8)
    | st.text(st.characters(codec="utf-8"), max_size=12)
    | st.sampled_from(["", "NULL", "null", "NA", "N/A", "None", "nan", "NaN", "inf", "-inf", "Infinity", "+1", "-"])
    | st.sampled_from(["true", "False", "T", "yes", "0x1F", "1e5", "1E400", "٣", "１２", "1,5", "1.234,5", "1 000"])
    | st.sampled_from(["2024-02-30", "2024-1-5", "0000-01-01", "10000-01-01", "24:00:00", "2024-W01-1", "01/02/03"])
)
# Cells of one sort, and the types of a column with only such cells.
SORTS: dict[str, tuple[st.SearchStrategy[str], tuple[Any, ...]]] = {
    "integer": (_INTEGERS.map(str), (pl.Int64,)),
    "unsigned": (st.integers(2**63, 2**64 - 1).map(str), (pl.UInt64,)),
    "long": (st.integers(-(10**38) + 1, 10**38 - 1).map(str), (pl.Int64, pl.UInt64, pl.Decimal)),
    "longer": (st.integers(10**38, 10**44).map(str), (pl.Float64, pl.String)),
    "float": (st.floats().map(repr), (pl.Float64,)),
    "money": (st.decimals(-(10**9), 10**9, places=2).map("{:f}".format), (pl.Float64,)),
    "decimal": (_shaped(r"-?(0|[1-9]\d{0,18})\.\d{1,45}"), (pl.Float64, pl.Decimal, pl.String)),
    "exponent": (_shaped(r"-?[1-9]\.\d{1,20}[eE][+-]?\d{1,3}"), (pl.Float64, pl.String)),
    "zeros": (st.integers(0, 999).map("{:05}".format), (pl.String,)),
    "spaces": (st.tuples(st.sampled_from(["", " ", "  "]), _INTEGERS.map(str)).map("".join), (pl.Int64,)),
    "truth": (st.sampled_from(["true", "false", "True", "False", "TRUE", "FALSE", "tRuE"]), (pl.Boolean,)),
    "date": (_DAYS.map(dt.date.isoformat), (pl.Date,)),
    "slashes": (_DAYS.map(lambda day: day.isoformat().replace("-", "/")), (pl.Date,)),
    "day and month": (_DAYS.map(lambda day: f"{day:%d/%m}/{day.year:04}"), (pl.Date, pl.String)),
    "month and day": (_DAYS.map(lambda day: f"{day.month}/{day.day}/{day.year:04}"), (pl.Date, pl.String)),
    "day at": (_MOMENTS.map(lambda at: f"{at:%d.%m}.{at.year:04} {at:%H:%M}"), (pl.Datetime, pl.String)),
    "moment": (_MOMENTS.map(lambda at: at.isoformat(" ")), (pl.Datetime,)),
    "minute": (_MOMENTS.map(lambda at: at.isoformat("T", "minutes")), (pl.Datetime,)),
    "nanosecond": (
        st.tuples(_MOMENTS.map(lambda at: at.isoformat(" ", "seconds")), _shaped(r"\.\d{1,9}")).map("".join),
        (pl.Datetime, pl.String),
    ),
    "instant": (st.tuples(_MOMENTS.map(dt.datetime.isoformat), _ZONES).map("".join), (pl.Datetime, pl.String)),
    "time": (st.times().map(dt.time.isoformat), (pl.Time,)),
    "string": (STRINGS, ()),
}


SEPARATORS = (",", ";", "\t", "|")
_ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1")
_UNMARKED = {"utf-16-le", "latin-1"}
_NAMES = STRINGS.filter(lambda name: bool(name.strip()) and "\0" not in name)
_PACKED = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@dataclass(frozen=True)
class Written:
    """A file, its options, and its columns of cells; None is an empty cell."""

    content: bytes
    given: dict[str, Any]
    columns: dict[str, list[str | None]]
    sorts: dict[str, str]
    packed: str = ""


def _quoted(cell: str | None, separator: str, always: bool) -> str:
    if cell is None:
        return ""
    odd = not cell or always or any(mark in cell for mark in (separator, '"', "\r", "\n"))
    return '"' + cell.replace('"', '""') + '"' if odd else cell


def _takes(text: str, separator: str, other: str) -> bool:
    """Say whether another separator gives every line the same number of fields, or is in cells of a single column."""
    widths = {len(record) for record in csv.reader(io.StringIO(text, newline=""), delimiter=other) if record}
    alone = separator not in text.partition("\n")[0] and other in text
    return other != separator and (alone or (len(widths) == 1 and widths != {1}))


@st.composite
def files(draw: st.DrawFn) -> Written:
    """Write columns, each of one sort or of two, in an odd dialect."""
    separator, width, height = draw(st.sampled_from(SEPARATORS)), draw(st.integers(1, 4)), draw(st.integers(1, 12))
    decimal = draw(st.sampled_from(["", "", "", ","]))
    names = draw(st.lists(_NAMES, min_size=width, max_size=width, unique=True))
    columns: dict[str, list[str | None]] = {}
    sorts = {}
    for name in names:
        one, other = draw(st.sampled_from(list(SORTS))), draw(st.sampled_from(["", "", *SORTS]))
        cells = SORTS[one][0] | (SORTS[other][0] if other else st.nothing())
        column = draw(st.lists(st.none() | cells if draw(st.booleans()) else cells, min_size=height, max_size=height))
        if decimal == "," and one in ("float", "money", "decimal") and "." not in separator:
            column = [cell and cell.replace(".", ",") for cell in column]
        columns[name], sorts[name] = column, "" if other and other != one else one
    always, line, last = draw(st.booleans()), draw(st.sampled_from(["\n", "\r\n"])), draw(st.sampled_from([0, 1, 3]))
    assume(width > 1 or any(columns[names[0]]))  # a file of blank lines has no rows
    rows = [names, *(list(row) for row in zip(*columns.values(), strict=True))]
    lines = [separator.join(_quoted(cell, separator, always) for cell in row) for row in rows]
    if width > 1 and draw(st.booleans()):
        lines.insert(draw(st.integers(1, len(lines))), "")  # a blank line, which is no row
    if lines[-1].endswith(f'"{separator}'):
        last = max(last, 1)  # see test_own_csv.py: it is refused
    text = line.join(lines) + line * last
    return draw(_encoded(Written(b"", {"decimal": decimal}, columns, sorts), text, separator))


@st.composite
def _encoded(draw: st.DrawFn, made: Written, text: str, separator: str) -> Written:
    given = dict(made.given)
    if draw(st.booleans()) or any(_takes(text, separator, other) for other in SEPARATORS):
        given["separator"] = separator
    encoding = draw(st.sampled_from(_ENCODINGS))
    if encoding in _UNMARKED:
        given["encoding"] = encoding
    assume(not text.startswith("\ufeff"))
    content = text.encode(encoding, errors="replace")
    assume(content.decode(encoding) == text)
    if draw(st.booleans()):
        words = {cell for column in made.columns.values() for cell in column if cell and "," not in cell}
        given["null_values"] = draw(st.sampled_from(["", *sorted(words)]))
    return Written(content, given, made.columns, made.sorts, draw(st.sampled_from(list(_PACKED))))


def _without_end(column: Sequence[str | None]) -> list[str | None]:
    """Return a single column without the nulls at its end, which are blank lines at the end of a file."""
    rows = list(column)
    while rows and rows[-1] is None:
        rows.pop()
    return rows


@examples(120)
@given(made=files())
def test_every_cell_of_an_odd_csv_is_what_is_written(tmp_path_factory: pytest.TempPathFactory, made: Written) -> None:
    path = tmp_path_factory.getbasetemp() / f"odd.csv{made.packed}"
    path.write_bytes(_PACKED[made.packed](made.content))
    found = data.from_file(path, options=options.of(**made.given)).frame
    assert found.columns == list(made.columns)
    for name, column in made.columns.items():
        nulls = {made.given.get("null_values")} - {"", None}
        cells = [None if cell in nulls else cell for cell in (_without_end(column) if found.width == 1 else column)]
        changed = kept(cells, found[name], made.given["decimal"])
        assert not changed, f'column "{name}": {changed}'
        types = SORTS[made.sorts[name]][1] if made.sorts[name] else ()
        if types and any(cells) and not nulls:
            assert found[name].dtype.base_type() in types, f'column "{name}": {cells} became {found[name].dtype}'


def _parsed(text: str) -> list[list[str | None]] | None:
    """Return the records of a text by RFC 4180, where a quote in a cell without quotes is one; None for no such text.

    A cell is None where nothing is written.
    """
    records: list[list[str | None]] = []
    record: list[str | None] = []
    place = 0
    while place < len(text):
        if text[place] == '"':
            cell, place = "", place + 1
            while text[place : place + 1] != '"' or text[place : place + 2] == '""':
                if place >= len(text):
                    return None
                cell += text[place]
                place += 2 if text[place] == '"' else 1
            record.append(cell)
            place += 1
        else:
            end = min((found for mark in ",\r\n" if (found := text.find(mark, place)) >= 0), default=len(text))
            record.append(text[place:end] or None)
            place = end
        if text[place : place + 1] == ",":
            place += 1
            if place < len(text):
                continue
            record.append(None)
        elif place < len(text) and text[place] not in "\r\n":
            return None
        records.append(record)
        record = []
        place += 2 if text[place : place + 2] == "\r\n" else 1
    return records


@examples(240)
@given(text=st.text('"",,\n\r\\ab1 ', max_size=24).map("a,b\n1,x\n{}".format))
@example(text='a,b\n"x",')
@example(text='a,b\n1,x\n,\\"\\')
def test_a_text_of_odd_marks_is_read_by_the_rules_of_csv_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "marks.csv"
    path.write_bytes(text.encode())
    records, found, said = _parsed(text), None, ""
    try:
        found = reading.read(path, options.of(separator=",", schema="a=string,b=string"))
    except LabError as refused:
        said = str(refused)
    assert "\n" not in said
    if found and not any("escaped by" in note for note in found.notes):
        assert found.frame.rows() == [tuple(record) for record in records[1:] if record != [None]]


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        (["007"], pl.Series([7])),
        (["-0"], pl.Series([0.0])),
        (["9007199254740993"], pl.Series([9007199254740992.0])),
        (["01/02/2024", "03/04/2024"], pl.Series(["2024-02-01", "2024-04-03"]).str.to_date()),
        (["13/01/2024", "01/13/2024"], pl.Series(["2024-01-13", "2024-01-13"]).str.to_date()),
        (["2024-01-01 10:00:00.0000001"], pl.Series(["2024-01-01 10:00"]).str.to_datetime(time_unit="us")),
        (["2024-01-01 10:00:00+01:00"], pl.Series(["2024-01-01 10:00"]).str.to_datetime(time_unit="us")),
        (["yes"], pl.Series([True])),
        (["a "], pl.Series(["a"])),
        ([None], pl.Series([""])),
        (["a", "b"], pl.Series(["a"])),
    ],
)
def test_what_is_not_as_it_is_written_is_reported(cells: list[str | None], column: pl.Series) -> None:
    assert kept(cells, column)
