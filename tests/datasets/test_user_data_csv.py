"""A user's CSV: every cell keeps its value, becomes a string, or is refused with its line."""

import datetime as dt
import gzip
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from harness.datasets.user_data import compared_cells, data, first_look, options, reading
from harness.datasets.user_data.options import Options
from harness.datasets.user_data.places import Part
from harness.model import LabError
from tests.commands import one_line
from tests.datasets.user_files import loaded

IN_UTC = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)


def made(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, content: str | bytes, given: Options | None = None) -> pl.DataFrame:
    """Return the frame read from a CSV, once its program has read the same."""
    own = data.from_file(made(path, content), options=given)
    assert data.from_frame(loaded("polars", own, path)).frame.equals(own.frame)
    return own.frame


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["00001", "12"], ["00001", "12"]),
        (["+49", "1"], ["+49", "1"]),
        (["1", "-2"], [1, -2]),
        (["18446744073709551615", "1"], [18446744073709551615, 1]),
        (["18446744073709551616", "1"], [Decimal(18446744073709551616), Decimal(1)]),
        (["-9223372036854775809", "1"], [Decimal(-9223372036854775809), Decimal(1)]),
        (["9" * 39, "1"], ["9" * 39, "1"]),
        (["1234567890123.1234567891", "1.5"], [Decimal("1234567890123.1234567891"), Decimal("1.5")]),
        (["9007199254740993", "0.5"], [Decimal("9007199254740993"), Decimal("0.5")]),
        (["0.1", "1e-07"], [0.1, 1e-07]),
        (["0.30000000000000004", "1.7976931348623157e+308"], [0.30000000000000004, 1.7976931348623157e308]),
        (["1e400", "1"], ["1e400", "1"]),
        (["1e-400", "1"], ["1e-400", "1"]),
        (["-0", "1"], [-0.0, 1.0]),
        (["inf", "-1.5"], [float("inf"), -1.5]),
        (["1,5", "2,5"], ["1,5", "2,5"]),
        (["True", "false"], [True, False]),
        (["true", "yes"], ["true", "yes"]),
        (["2024-01-31", "0001-01-01"], [dt.date(2024, 1, 31), dt.date(1, 1, 1)]),
        (["2024-02-30", "2024-01-01"], ["2024-02-30", "2024-01-01"]),
        (["0000-01-01", "2024-01-01"], ["0000-01-01", "2024-01-01"]),
        (["2024-1-5", "2024-01-05"], ["2024-1-5", "2024-01-05"]),
        (["01/02/24", "31/12/24"], ["01/02/24", "31/12/24"]),
        (["2024-02-02", "20-04-2024"], ["2024-02-02", "20-04-2024"]),
        (["31/01/2024", "01/02/2024"], [dt.date(2024, 1, 31), dt.date(2024, 2, 1)]),
        (["01/31/2024", "02/01/2024"], [dt.date(2024, 1, 31), dt.date(2024, 2, 1)]),
        (["13/01/2024", "01/13/2024"], ["13/01/2024", "01/13/2024"]),
        (["01/02/2024", "03/04/2024"], ["01/02/2024", "03/04/2024"]),
        (["01.02.2024", "01/13/2024"], ["01.02.2024", "01/13/2024"]),
        (["2024-01-01 10:00:00", "2024-01-01T10:00:00.5"], [IN_UTC.replace(tzinfo=None)] * 2),
        (["2024-01-01T10:00:00Z", "2024-01-01 12:00:00+02:00"], [IN_UTC, IN_UTC]),
        (["2024-01-01T10:00:00Z", "2024-01-01 10:00:00"], ["2024-01-01T10:00:00Z", "2024-01-01 10:00:00"]),
        (["2024-01-01 24:00:00", "2024-01-01 10:00:00"], ["2024-01-01 24:00:00", "2024-01-01 10:00:00"]),
        (["9999-01-01 00:00:00.000000001"] * 2, ["9999-01-01 00:00:00.000000001"] * 2),
        (["23:59:59.5", "00:00:00"], [dt.time(23, 59, 59, 500_000), dt.time(0)]),
        (["24:00:00", "00:00:00"], ["24:00:00", "00:00:00"]),
        (["12:00:00.000000001", "00:00:00"], ["12:00:00.000000001", "00:00:00"]),
    ],
)
def test_a_column_is_the_narrowest_type_that_holds_what_is_written(
    tmp_path: Path, cells: list[str], values: list[Any]
) -> None:
    text = "n;a;b\n" + "".join(f"{number};{cell};x\n" for number, cell in enumerate(cells))
    found = read(tmp_path / "a.csv", text)["a"].to_list()
    if cells[1].endswith("T10:00:00.5"):
        values = [values[0], values[1].replace(microsecond=500_000)]
    assert found == values
    assert [type(one) for one in found] == [type(one) for one in values]
    assert str(found[0])[0] == str(values[0])[0]  # a zero has a sign


def test_nanoseconds_are_kept(tmp_path: Path) -> None:
    frame = read(tmp_path / "a.csv", "id,at\n1,2024-02-02 10:01:00.000000001\n2,2024-02-02 10:01:00\n")
    assert frame["at"].dtype == pl.Datetime("ns")
    assert frame["at"].to_physical().to_list() == [1706868060000000001, 1706868060000000000]


@pytest.mark.parametrize("end", ["\n", "\n\n", "", "\r\n", "\r\n\r\n\r\n"])
def test_a_blank_line_at_the_end_is_no_row(tmp_path: Path, end: str) -> None:
    line = "\r\n" if "\r" in end else "\n"
    assert read(tmp_path / "a.csv", line.join(["id,x", "1,1", "2,"]) + end).rows() == [(1, 1), (2, None)]
    assert read(tmp_path / "b.csv", line.join(["id", "1", "", "2"]) + end).rows() == [(1,), (None,), (2,)]


@pytest.mark.parametrize(("head", "columns"), [('";"', {";": [0.5]}), ("a,b", {"a": [0], "b": [5]})])
def test_a_decimal_comma_separates_cells_only_if_it_separates_names(
    tmp_path: Path, head: str, columns: dict[str, list[float]]
) -> None:
    found = reading.read(made(tmp_path / "a.csv", f"{head}\n0,5\n"), options.of(decimal=","))
    assert found.frame.to_dict(as_series=False) == columns


def test_quotes_that_a_backslash_escapes_are_read_and_said(tmp_path: Path) -> None:
    path = made(tmp_path / "a.csv", 'a,b\n"x \\"y\\" z",1\n"n",2\n')
    found = reading.read(path)
    assert found.frame.rows() == [('x "y" z', 1), ("n", 2)]
    assert any("escaped by" in note for note in found.notes)


@pytest.mark.parametrize(
    ("given", "content", "rows"),
    [
        ({}, 'a,b\n"",1\n,""\nx,2\n', [("", 1), (None, None), ("x", 2)]),
        (
            {},
            'a,b\n"x\n""y""",1\n"1"" pipe",2\n",\r\n",3\n',
            [('x\n"y"', 1), ('1" pipe', 2), (",\r\n", 3)],
        ),
        *(
            (
                {},
                'id^price^name\n0^"1,01"^"a;b"\n1^"1,01"^"a;b"\n'.replace("^", mark),
                [(0, "1,01", "a;b"), (1, "1,01", "a;b")],
            )
            for mark in (";", "\t", "|", ",")
        ),
        *(({}, "id,city\n1,Köln\n".encode(encoding), [(1, "Köln")]) for encoding in ("utf-8-sig", "utf-16")),
        *(
            ({"encoding": encoding}, "id,city\n1,Köln\n".encode(encoding), [(1, "Köln")])
            for encoding in ("utf-16-le", "latin-1", "cp1252")
        ),
        ({"decimal": ","}, "a;b\n1,5;x\n-2;y\n", [(1.5, "x"), (-2.0, "y")]),
        ({"separator": ";"}, "a,b;c,d\n1;2\n", [(1, 2)]),
        ({"skip_rows": 2}, "# made today\nby me, and you\na,b\n1,2\n", [(1, 2)]),
        ({"null_values": "NA,-"}, "a,b\nNA,x\n7,-\n", [(None, "x"), (7, None)]),
        ({"date_format": "%m/%d/%y"}, "a,b\n01/02/24,1\n", [(dt.date(2024, 1, 2), 1)]),
        ({"date_format": "%d.%m.%Y %H:%M"}, "a,b\n01.02.2024 10:30,1\n", [(dt.datetime(2024, 2, 1, 10, 30), 1)]),
        ({"schema": "a=string,b=decimal(10,2)"}, "a,b\n1,2.5\n", [("1", Decimal("2.50"))]),
        ({"schema": "a=int16,b=date"}, "a,b\n007,2024-01-02\n", [(7, dt.date(2024, 1, 2))]),
        ({"schema": "a=date", "date_format": "%d/%m/%Y"}, "a,b\n01/02/2024,2\n", [(dt.date(2024, 2, 1), 2)]),
        (
            {"date_format": "%d.%m.%Y %H:%M:%S.%f"},
            "a\n01.02.2024 10:30:00.25\n",
            [(dt.datetime(2024, 2, 1, 10, 30, 0, 250_000),)],
        ),
        ({"date_format": "%d.%m.%Y %H:%M %z"}, "a\n01.01.2024 12:00 +0200\n", [(IN_UTC,)]),
        (
            {"date_format": "%d.%m.%Y %H:%M:%S.%f"},
            "a\n01.02.2024 10:30:00.1234567\n",
            [("01.02.2024 10:30:00.1234567",)],
        ),
        ({"schema": "a=boolean,b=float"}, "a,b\nt,1\nNo,2\n", [(True, 1.0), (False, 2.0)]),
    ],
)
def test_a_csv_is_read_as_it_is_written_or_as_a_person_says_that_it_is(
    tmp_path: Path, given: dict[str, Any], content: str | bytes, rows: list[tuple[Any, ...]]
) -> None:
    assert read(tmp_path / "a.csv", content, options.of(**given)).rows() == rows


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"separator": ";;"}, '--separator ";;": give one character'),
        ({"separator": "\udcff"}, '--separator "\udcff": give one character'),
        ({"encoding": "klingon"}, '--encoding "klingon" is unknown; give one'),
        ({"encoding": "hex"}, '--encoding "hex" is unknown; give one'),
        ({"encoding": "\udcff"}, '--encoding "\udcff" is unknown; give one'),
        ({"decimal": ";"}, '--decimal ";": give'),
        ({"null_values": "-,\udcff"}, '--null-values "-,\udcff": give strings in UTF-8'),
        ({"skip_rows": -1}, "--skip-rows -1: give 0 or more"),
        ({"date_format": "%Y %Z"}, '--date-format "%Y %Z": write the parts'),
        ({"date_format": "%S%f"}, '--date-format "%S%f": write the parts'),
        ({"date_format": "%Q"}, '--date-format "%Q": write the parts'),
        ({"date_format": "%Y%Y"}, '--date-format "%Y%Y": write the parts'),
        ({"schema": "a"}, '--schema "a": write column=type'),
        ({"schema": "a=blob"}, '--schema "a=blob": unknown type "blob"; the types are string'),
    ],
)
def test_an_option_that_is_none_is_refused_with_the_choices(given: dict[str, Any], said: str) -> None:
    with pytest.raises(LabError, match=said):
        options.of(**given)


@pytest.mark.parametrize(
    ("content", "given", "said"),
    [
        (b"id,city\n1,K\xf6ln\n", {}, "line 2, column 2: byte 0xf6 is not UTF-8; .*--encoding cp1252"),
        ("id,city\n1,a\n".encode("utf-16-le"), {}, "line 1: .* give --encoding utf-16-le"),
        ("id,city\n1,\u20ac\n".encode("utf-16-le"), {}, "line 1: .* give --encoding utf-16-le"),
        ("a,b\n1,\u53f7\u5e02\n".encode("utf-16-le"), {}, "line 1: .* give --encoding utf-16-le"),
        ("\u53f7,b\n1,2\n".encode("utf-16-le"), {}, "line 1: .* give --encoding utf-16-le"),
        (
            b"\xef\xbb\xbfid,city\n1,K\xc3\xb6ln\n",
            {"encoding": "latin-1"},
            "mark is of utf-8, not of latin-1; leave",
        ),
        ("id,city\n1,a\n".encode("utf-16"), {"encoding": "utf-8"}, "mark is of utf-16-le, not of utf-8; leave"),
        (b"sep=;\nid;x\n1;2\n", {}, "line 1: a separator for Excel, not names; give --skip-rows 1"),
        (b"a;b\n1.234;x\n", {"decimal": ",", "schema": "a=float64"}, "line 2, column \"a\": '1.234' is no float64"),
        (b"id,city\n1,\xff\n", {"encoding": "ascii"}, "line 2: bytes that are no ascii; give another --encoding"),
        (b",a\n0,1\n", {}, "line 1, column 1: a column without a name; pandas writes .* index=False"),
        (b"a,b,\n0,1,\n", {}, "line 1, column 3: a column without a name; it ends in a separator"),
        (b"a,b\n1,2\n5,6,7\n1,2\n", {}, "line 3, column 3: 3 fields, where line 1 has 2; quote fields"),
        (b'a,b\n"1\n",2\n5\n1,2\n', {}, "line 4, column 2: 1 field, where line 1 has 2; fill the line up"),
        (b"# made\nid,x\n1,1\n2,2\n", {}, "line 2, column 2: 2 fields, .* give --skip-rows 1"),
        (b"a\n1;2\n3;4\n", {}, "give --skip-rows 1; if the fields are one, give another --separator"),
        (b"a,b\n1,2\n", {"skip_rows": 10**12}, "is empty after 1000000000000 lines"),
        (b"a,b\n1,2\n", {"encoding": "utf-16-le"}, "; give another --encoding or --separator"),
        (b'a,b\n1,"x" y\n', {}, "line 2, .* a quote in quotes must be doubled"),
        (b'a,b\n1,"x\n2,y\n', {}, "line 3, .* the last one closed"),
        (b"a,b\n", {}, "no rows after the column names"),
        (
            b'a,b\n"x",1\n"y",',
            {},
            "line 3, column 2: an empty cell and no end of line after it; end the file",
        ),
        (b"a,b\n1,x\n", {"schema": "c=int"}, '--schema: no column "c"; there are a, b'),
        (b"a,b\n1,x\n300,y\n", {"schema": "a=int8"}, "line 3, column \"a\": '300' is no int8; give another --schema"),
        (b"a,b\n2024-01-01,x\nsoon,y\n", {"schema": "a=date"}, "line 3, column \"a\": 'soon' is no date"),
        (b"a,b\n1.234,x\n", {"schema": "a=decimal(4,2)"}, "line 2, column \"a\": '1.234' is no decimal"),
    ],
)
def test_a_csv_that_is_refused_has_line_column_and_a_way_out(
    tmp_path: Path, content: bytes, given: dict[str, Any], said: str
) -> None:
    path = made(tmp_path / "a.csv", content)
    with one_line(said) as refused:
        reading.read(path, options.of(**given))
    if " is no " not in said:  # of a value
        with one_line(f"^{re.escape(str(refused.value))}$"):
            first_look.require(path, options.of(**given))


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        ('a,b\n1,"x\ny""z""\n"\n2,""\n', 0),
        ('a,b\n1,5\' 6" tall\n2,"y"\n', 0),
        ('"a\nb",c\n1,2\n', 0),
        ("\n\na;b\n1,5;x\n2,5;y\n", 0),
        ("a\n\n\nz\n", 0),
        ("ä,b\nö,ü\n", 0),
        ("of May\n\na,b\n1,2\n", 1),
    ],
)
def test_no_start_of_a_csv_that_is_right_is_refused_before_the_rest_is_there(text: str, skipped: int) -> None:
    raw, part = text.encode(), Part(Path("a.csv"), "csv")
    for end in range(len(raw) + 1):
        first_look._of_text(raw[:end], part, options.of(skip_rows=skipped), whole=False)


@pytest.mark.parametrize(
    ("content", "given", "said"),
    [
        (
            "month,n\n01/01/1950,1\n02/01/1950,2\n",
            {},
            '"month": 01/01/1950 may be day and month .* --date-format',
        ),
        ("a^b\n1^2\n", {}, ""),
        ("a\nx;y\nz\n", {}, 'one column, with ";" in it; .* --separator ";"'),
        ("a\nz\nx;y\n", {}, 'one column, with ";" in it; .* --separator ";"'),
        ("a;b,c\n1;2,3\n", {}, 'names of columns with ";" in it; .* --separator ";"'),
        ("a,b\n1,2\n,\n,\n", {}, "2 rows of nothing but nulls, the first is row 1"),
        ("a;b\n1,5;x\n2,5;y\n", {}, '"a": 1,5 stays a string; .* give --decimal ,'),
        ("a,b\n1e400,x\n", {}, '"a": 1e400 has more digits .* --schema "a=float64"'),
        ("1,2\n3,4\n", {}, "line 1: taken for the names of columns"),
        ("a,b\n1,2\n\n3,4\n", {}, "1 blank line is not a row"),
        (
            b"a,b\n1,\x805\n",
            {"encoding": "latin-1"},
            "line 2: a control character of latin-1; .* --encoding cp1252",
        ),
        (
            "a;b\n1.234,5;x\n",
            {"decimal": ","},
            "1.234,5 stays a string, because of its point; take the points out",
        ),
    ],
)
def test_what_may_be_meant_otherwise_is_one_line(
    tmp_path: Path, content: str | bytes, given: dict[str, Any], said: str
) -> None:
    notes = reading.read(made(tmp_path / "a.csv", content), options.of(**given)).notes
    assert [bool(re.search(said, note)) for note in notes] == [True] * bool(said), notes


CSV, JSON_LINES = b"id,x\n1,a\n2,\n", b'{"id":1,"x":"a"}\n{"id":2,"x":null}\n'


@pytest.mark.parametrize(
    ("name", "packed", "content"),
    [
        ("a.csv", gzip.compress, CSV),
        ("a.CSV.GZ", gzip.compress, CSV),
        ("a.csv.gz", gzip.compress, CSV),
        ("a.csv.gz", bytes, CSV),
        ("a.csv.zst", zstandard.compress, CSV),
        ("a.ndjson", bytes, JSON_LINES),
        ("a.jsonl.gz", gzip.compress, JSON_LINES),
    ],
)
def test_a_program_reads_a_file_as_it_is_compressed_whatever_its_name(
    tmp_path: Path, name: str, packed: Any, content: bytes
) -> None:
    assert read(tmp_path / name, packed(content)).rows() == [(1, "a"), (2, None)]


def spoil(monkeypatch: pytest.MonkeyPatch, wrong: pl.Expr) -> None:
    """Make the reader wrong: the comparison is not the reader."""
    right = compared_cells.require_same
    monkeypatch.setattr(
        compared_cells,
        "require_same",
        lambda cells, frame, *others: right(cells, frame.with_columns(wrong), *others),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        pl.col("i") + 1,
        pl.col("f") * (1 + 2**-52),
        pl.col("d").dt.offset_by("1d"),
        pl.col("t").dt.offset_by("1us"),
        pl.col("s") + " ",
        pl.when(pl.col("i") < 8).then("i"),
    ],
    ids=["integer", "float", "date", "timestamp", "string", "null"],
)
def test_a_reader_that_changes_a_cell_is_found_whatever_the_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: pl.Expr
) -> None:
    text = "i,f,d,t,s\n" + "".join(f"{n},{n}.5,2024-01-01,2024-01-01 10:00:00,x\n" for n in range(9))
    path = made(tmp_path / "a.csv", text)
    spoil(monkeypatch, wrong)
    with pytest.raises(LabError, match=r'line \d+, column ".": .* would become .*; --schema'):
        reading.read(path)


@pytest.mark.parametrize(
    "wrong",
    [
        pl.when(pl.col("i") == 7_777).then(10**9).otherwise("i").alias("i"),
        pl.when(pl.col("i") != 7_777).then("i").alias("i"),
    ],
    ids=["the largest", "a null"],
)
def test_of_a_large_csv_windows_and_the_ends_of_columns_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: pl.Expr
) -> None:
    path = made(tmp_path / "a.csv", "i,s\n" + "".join(f'{n},"x, {n}"\n' for n in range(30_000)))
    found = reading.read(path)
    assert found.frame.height == 30_000
    assert "of 30,000 rows, and of every column the nulls, the smallest, the largest" in found.compared
    spoil(monkeypatch, wrong)
    with pytest.raises(LabError, match='column "i": '):
        reading.read(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"a": 1234567890123.1234567891}', 'row 0, column "a": 1234567890123.1234567891 would become'),
        ('{"a": 1}\n{"a": "1"}', 'row 0, column "a": 1 would become "1"; write it as a string'),
        ('{"a": 1}\n{"a": ', "line 2: not JSON"),
        ('[{"a": 1}]', "line 1: not a JSON object; write one object a line"),
        ('{"a": 1, "a": 2}', "a JSON object has a name twice"),
    ],
)
def test_json_lines_that_would_change_are_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        reading.read(made(tmp_path / "a.ndjson", line + "\n"))


@pytest.mark.parametrize("usual", ["1.5", "0.12345678901234568", "1", "2e0", '1.5, "b": "é"', '0.1, "b": "\\u00e9"'])
@pytest.mark.parametrize(
    "odd",
    [
        "9007199254740993",
        "12345678901234567890123",
        "0.12345678901234567",
        "12345.6789012345678",
        "0.000001234567890123456789",
        "123456789.12345678901234567890",
        "1.234567890123456789e5",
        "2.5e-324",
        "1E-400",
    ],
)
@pytest.mark.parametrize("is_spaced", [False, True])
def test_a_number_that_a_float_would_round_is_refused_wherever_it_is_in_json_lines(
    tmp_path: Path, usual: str, odd: str, is_spaced: bool
) -> None:
    lines = [f'{{"a": {odd if row == 3_456 else usual}}}' for row in range(6_000)]
    lines[7] = '{"a": 0.5}'
    text = "\n".join(lines)
    with pytest.raises(LabError, match=r'row 3456, column "a": [0-9.E+-]* would become'):
        reading.read(made(tmp_path / "a.ndjson", text if is_spaced else text.replace(" ", "")))


def test_half_a_character_is_refused_wherever_it_is_in_json_lines(tmp_path: Path) -> None:
    lines = [f'{{"a": "\\u00e9{row}"}}' for row in range(6_000)]
    lines[3_456] = '{"a": "\\ud800"}'
    with pytest.raises(LabError, match=r'row 3456, column "a": .* would become'):
        reading.read(made(tmp_path / "a.ndjson", "\n".join(lines)))


def test_json_lines_without_names_are_read(tmp_path: Path) -> None:
    assert reading.read(made(tmp_path / "a.ndjson", "{}\n{}\n")).frame.shape == (2, 0)


@pytest.mark.parametrize(
    ("odd", "usual", "said"),
    [
        ("5", '"x"', 'column "a": 5 would become "5"'),
        ('{"x": 1}', '"x"', 'column "a": {.x.: 1} would become'),
        ("[true]", '["x"]', 'column "a": .True. would become'),
        ('{"x":5}', '{"x":"y"}', 'column "a": {.x.: 5} would become'),
        ('1,"a":2', "1", "a JSON object has a name twice"),
    ],
)
def test_one_odd_value_in_many_json_lines_is_refused_wherever_it_is(
    tmp_path: Path, odd: str, usual: str, said: str
) -> None:
    rows = [f'{{"id":{row},"a":{odd if row == 34_567 else usual}}}' for row in range(60_000)]
    with pytest.raises(LabError, match=said):
        reading.read(made(tmp_path / "a.ndjson", "\n".join(rows)))
    rows[34_567] = '{"a":null}'
    assert "of 60,000 rows" in reading.read(made(tmp_path / "a.ndjson", "\n".join(rows))).compared
