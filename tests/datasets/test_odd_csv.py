"""Odd CSV files of every sort: each cell keeps its value, or one line refuses the file."""

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import assume, example, given
from hypothesis import strategies as st

from harness.datasets.user_data import data, options, reading
from harness.model import LabError
from tests.datasets.odd_cells import SORTS, STRINGS, kept
from tests.fuzzing import examples

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
        assert records is not None
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
