"""runs.csv: appended rows are read back, damage is one line of explanation, and missing is never 0."""

import csv
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from harness.model import LabError, Status, strings
from harness.results import folder as folders
from harness.results import runs_csv
from harness.results.row import COLUMNS, NAMES, Row, numbers
from tests.commands import one_line

EXAMPLES: dict[Any, Any] = {str: "text", int: 7, float: 0.25, Status: Status.OK}
EXAMPLES |= {strings: {"files": "8", "page_cache": "as found"}, numbers: {"output_bytes": 12, "ctas_seconds": 0.25}}
COUNT = len(COLUMNS)
FULL = Row(**{column.field: EXAMPLES[column.parse] for column in COLUMNS})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.csv"


def test_a_whole_row_is_on_the_disk_when_append_returns(tmp_path, monkeypatch):
    path, synced, real = tmp_path / "runs.csv", [], os.fsync

    def fsync(descriptor):
        synced.append(os.fstat(descriptor).st_size)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    for _ in range(2):
        runs_csv.append(path, FULL)
        assert synced[-1] == path.stat().st_size
    assert len(synced) == 2
    assert path.read_text().splitlines()[0].split(",") == [*NAMES]
    assert path.read_text().count(NAMES[0]) == 1


def test_what_is_missing_is_empty_in_the_file_and_none_when_read_never_0(path):
    runs_csv.append(path, Row(run_id="r", status=Status.TIMEOUT))
    (cells,) = csv.DictReader(path.open())
    assert {name for name, cell in cells.items() if cell} == {"run_id", "status"}
    (row,) = runs_csv.load(path)
    assert row == Row(run_id="r", status=Status.TIMEOUT)
    assert (row.seconds, row.rows, row.error, row.details) == (None, None, "", {})


def test_a_measured_0_is_0_and_not_missing(path):
    runs_csv.append(
        path, Row(status=Status.OK, pass_number=1, order=1, seconds=0.5, peak_file_bytes=0, cpu_system_seconds=0.0)
    )
    (row,) = runs_csv.load(path)
    assert (row.peak_file_bytes, row.cpu_system_seconds, row.peak_anon_bytes) == (0, 0.0, None)


@pytest.mark.parametrize(
    "text",
    [
        'a "quoted", comma',
        "tab\tand \\ backslash",
        "unicode é \U0001f600   \x85 \x0b \x0c \x1c",
        "=1+1",
        " spaces ",
        "nul \x00 inside",
        "None",
        "0",
    ],
)
def test_a_row_is_read_back_with_its_types_and_any_text_as_it_was(path, text):
    runs_csv.append(path, replace(FULL, error=text))
    assert runs_csv.load(path) == [replace(FULL, error=text)]
    assert type(runs_csv.load(path)[0].status) is Status


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n", "\n\n", " \udcff"])
def test_a_newline_or_half_a_surrogate_pair_in_an_error_stays_within_one_row(path, newline):
    runs_csv.append(path, replace(FULL, error=f"first{newline} second"))
    runs_csv.append(path, replace(FULL, pass_number=8))
    assert len(path.read_bytes().splitlines()) == 3
    first, *_, second = runs_csv.load(path)[0].error.split()
    assert (first, second) == ("first", "second")


def test_seconds_keep_nine_digits(path):
    runs_csv.append(path, replace(FULL, seconds=0.123456789012, rows_per_s=1234567.891))
    assert runs_csv.load(path)[0].seconds == 0.123456789
    assert runs_csv.load(path)[0].rows_per_s == 1234567.89


@pytest.fixture
def folder(tmp_path):
    """The folder of a run without rows."""
    (tmp_path / "environment.json").write_text('{"run_id": "text", "fingerprint": "text"}')
    return tmp_path


@pytest.mark.parametrize("keep", [1, 5, 20, -1])
def test_a_torn_last_line_is_cut_off_and_nothing_else(folder, path, keep):
    for number in (1, 2, 3):
        runs_csv.append(path, replace(FULL, pass_number=number))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:keep])
    with pytest.raises(LabError, match=rf'"lab run --resume {folder}" removes it and goes on'):
        runs_csv.load(path)
    assert [row.pass_number for row in folders.interrupted(folder)] == [1, 2]
    assert path.read_bytes() == b"".join(lines[:-1])
    runs_csv.append(path, replace(FULL, pass_number=4))
    assert [row.pass_number for row in runs_csv.load(path)] == [1, 2, 4]


@pytest.mark.process
def test_a_kill_or_a_full_disk_while_a_torn_line_is_cut_off_costs_no_row(folder, path, monkeypatch):
    """Of the calls that write to a file, only one that shortens it is made: it is done or it is not."""
    runs_csv.append(path, FULL)
    with path.open("ab") as file:
        file.write(b"torn,li")
    calls = "import sys, pathlib; from harness.results import folder; folder.interrupted(pathlib.Path(sys.argv[1]))"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); " + calls  # a write is a SIGXFSZ
    assert subprocess.run((sys.executable, "-c", limited, str(folder)), check=False).returncode == 0
    assert runs_csv.load(path) == [FULL]


@pytest.mark.parametrize("change", ["cr", "utf-16", "bom", "semicolons", "another run", "no header", "cr at the end"])
def test_what_resuming_does_not_understand_is_left_as_it_is_and_refused(folder, path, change):
    for number in (1, 2):
        runs_csv.append(path, replace(FULL, pass_number=number))
    before = path.read_bytes()
    changed = {
        "cr": before.replace(b"\n", b"\r"),
        "cr at the end": before[: before.find(b"\n") + 1] + before[before.find(b"\n") + 1 :].replace(b"\n", b"\r"),
        "utf-16": before.decode().encode("utf-16"),
        "bom": b"\xef\xbb\xbf" + before + b"torn",
        "semicolons": before.replace(b",", b";") + b"torn",
        "another run": before.replace(b"text", b"another", 1) + b"torn",
        "no header": before[before.find(b"\n") + 1 :] + b"torn",
    }[change]
    path.write_bytes(changed)
    with pytest.raises(LabError) as caught:
        folders.interrupted(folder)
    assert path.read_bytes() == changed
    assert "\n" not in str(caught.value)


def test_a_whole_file_loses_nothing_when_it_is_resumed(folder, path):
    runs_csv.append(path, FULL)
    before = path.read_bytes()
    assert folders.interrupted(folder) == [FULL]
    assert path.read_bytes() == before


@pytest.mark.parametrize("left", [b"", b"run_id,envi"], ids=["nothing", "half a header"])
def test_a_run_killed_before_its_first_row_has_no_rows_and_can_go_on(folder, path, left):
    path.write_bytes(left)
    assert folders.interrupted(folder) == runs_csv.load(path) == []
    runs_csv.append(path, FULL)
    assert runs_csv.load(path) == [FULL]


def header():
    return ",".join(NAMES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "the columns are not those of this version"),
        (",".join(reversed(NAMES)) + "\n", "the columns are not those of this version"),
        (header() + ",more\n", "the columns are not those of this version"),
        (header() + "\n1,2\n", f"line 2: not {COUNT} columns; is the file damaged"),
        (header() + "\n" + "," * COUNT + "\n", f"line 2: not {COUNT} columns; is the file damaged"),
        (header() + "\n" + "," * (COUNT - 1) + '"\n', "unexpected end of data"),
        (header().replace("operation", "direction") + "\n", "the columns are not those of this version"),
        (header().replace(",seconds", "") + "\n", "the columns are not those of this version"),
    ],
)
def test_a_foreign_or_damaged_file_is_one_line_that_names_it(path, text, said):
    path.write_text(text)
    with one_line(said) as caught:
        runs_csv.load(path)
    assert str(path) in str(caught.value)


NUMBERS = [column.name for column in COLUMNS if column.parse in (int, float)]
EDITED = [
    *((column, text, "") for column in NUMBERS for text in ("nan", "inf", "-inf", "-1", "1e400", "9" * 30)),
    *(("rows", text, ".*is the file damaged") for text in ("many", "1.5")),
    *(("status", text, ".*is the file damaged") for text in ("fine", "")),
    *((name, text, ".*is the file damaged") for name, text in (("seconds", "0,5"), ("pass", "1e3"))),
    *((name, text, ".*is the file damaged") for name, text in (("parameters", "files"), ("details", "bytes=many"))),
    *((name, text, ".*is the file damaged") for name in ("seconds", "rows") for text in ("1_0", " 1", "\u0661")),
    *((name, "0", ".*was the file edited") for name in ("seconds", "pass", "order")),
    *((name, "", ".*was the file edited") for name in ("pass", "order")),
    ("seconds", "1e-320", ".*was the file edited"),
    *(("details", text, ".*was the file edited") for text in ("a=nan", "a=-1")),
    ("seconds", "", ".*was the file edited"),
]


@pytest.mark.parametrize(("column", "text", "said"), EDITED)
def test_a_value_that_no_run_gives_is_one_line_with_its_line_number(path, column, text, said):
    runs_csv.append(path, replace(FULL, pass_number=9))
    runs_csv.append(path, FULL)
    names, first, second = csv.reader(path.open(newline=""))
    changed = [text if name == column else cell for name, cell in zip(names, second, strict=True)]
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([names, first, changed])
    with one_line(rf"line 3: {said}"):
        runs_csv.load(path)


def test_a_run_that_is_there_twice_is_one_line_and_one_that_was_run_again_is_read(path):
    runs_csv.append(path, Row(status=Status.AGAIN, pass_number=7, transport="text"))
    runs_csv.append(path, replace(FULL, parameters={}, experiment=""))
    runs_csv.append(path, Row(status=Status.AGAIN, pass_number=7, transport="text"))
    assert len(runs_csv.load(path)) == 3
    runs_csv.append(path, Row(status=Status.ERROR, pass_number=7, transport="text"))
    with pytest.raises(LabError, match=r"line 5: this run is in line 3 too; remove one"):
        runs_csv.load(path)


def test_a_missing_or_binary_file_is_one_line(path):
    with pytest.raises(LabError, match="No such file"):
        runs_csv.load(path)
    path.write_bytes(b"\xff\xfe\x00\n")
    with pytest.raises(LabError, match="cannot read"):
        runs_csv.load(path)


def test_a_trace_comes_back_as_it_was_written(tmp_path):
    path = folders.trace_path(tmp_path, 7, "a.b.c")
    assert path == tmp_path / "traces" / "0007-a.b.c.csv"
    assert folders.load_trace(path) == []
    folders.write_trace(path, [(0.05, 1.9876), (0.1004, 0.0)])
    assert folders.load_trace(path) == [(0.05, 1.988), (0.1, 0.0)]
    path.write_text("seconds,cpu_cores_used\n0.05,much\n")
    with pytest.raises(LabError, match=r"0007-a\.b\.c\.csv: .*is the file damaged"):
        folders.load_trace(path)


def test_mappings_are_strings_in_files_alone():
    assert numbers("ctas_seconds=0.25; output_bytes=12") == {"ctas_seconds": 0.25, "output_bytes": 12}
    assert strings("files=8; page_cache=as found") == {"files": "8", "page_cache": "as found"}
    assert (numbers(""), strings("")) == ({}, {})
    assert FULL.label == FULL.text("parameters") == "files=8; page_cache=as found"
