"""The contents of a race's program: packages, figures, the place of its data, how to undo it."""

import ast
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from harness import registry
from harness.datasets.user_data import data
from harness.model import LabError, Operation
from harness.recommend import script
from harness.recommend.script import Source
from harness.systems import SYSTEMS
from tests.recommend.test_programs import rich
from tests.report.test_recommendation import FASTEST, PGPQ
from tests.typed import typed

FILE = "orders of May, 2026.parquet"
TUNED = [
    entry
    for system in SYSTEMS
    for entry in registry.select(f"{system}.*_tuned")
    if entry.operation in (Operation.WRITE, Operation.READ)
]


def written(folder: Path, figure=PGPQ, source: str = f"data/{FILE}", table: str = "") -> str:
    """The program of a transport in `folder`/programs, over a file in `folder`/data."""
    for name in ("data", "programs"):
        (folder / name).mkdir()
    pl.DataFrame({"id": [1, 2], "note": ["a", None]}).write_parquet(folder / "data" / FILE)
    user_data = data.from_file(folder / source)
    path = folder / "programs" / "best.py"
    script.write(path, figure, user_data, Source(folder / source, "", user_data.program.pattern), table)
    return path.read_text()


def test_it_names_what_to_install_with_the_extras_that_the_lab_itself_asks_for(tmp_path: Path) -> None:
    lines = written(tmp_path).splitlines()
    assert lines[:4] == [
        "# /// script",
        '# requires-python = ">=3.11"',
        '# dependencies = ["pgpq", "polars", "psycopg[binary]", "pyarrow"]',
        "# ///",
    ]


def test_one_over_arrow_wire_says_that_it_is_not_on_pypi_and_how_to_get_it(tmp_path: Path) -> None:
    text = written(tmp_path, FASTEST)
    assert text.splitlines()[2].endswith("]  # arrow-wire (not on PyPI: make wheel)")
    block = [line.removeprefix("# ") for line in text.splitlines()[1:3]]
    assert "arrow-wire[postgres]" in tomllib.loads("\n".join(block))["dependencies"]


@pytest.mark.parametrize("entry", TUNED, ids=lambda entry: entry.id)
@pytest.mark.parametrize("kind", ["rich.parquet", "rich.csv", "typed.parquet", "query"])
def test_one_over_arrow_wire_has_less_than_60_lines_and_calls_it_directly(entry, kind: str, tmp_path: Path) -> None:
    frame, file = typed(entry.system, 30) if kind.startswith("typed") else rich(), tmp_path / kind
    (frame.write_csv if file.suffix == ".csv" else frame.write_parquet)(file)
    source = Source(query="SELECT 1") if kind == "query" else Source(file, beside=tmp_path)
    won = SimpleNamespace(transport=entry.id, seconds=0.25, runs=7, rows=5)
    text = script.program(won, data.from_frame(frame) if kind == "query" else data.from_file(file), source, "a_table")
    assert text.count("\n") < 60
    assert text.startswith("# /// script\n")
    assert f"        {'frame = ' * (entry.operation is Operation.READ)}{entry.system}.{entry.operation}(" in text
    assert ("DROP TABLE a_table" if entry.operation is Operation.WRITE else "nothing to undo") in text
    assert f"{script.show.variable(entry)} is not set; give an address such as " in text
    ast.parse(text)


def test_its_docstring_says_what_was_measured_and_how_to_undo_it(tmp_path: Path) -> None:
    said = ast.get_docstring(ast.parse(written(tmp_path))) or ""
    first, _, last = said.splitlines()
    moved = (
        f"Move ../data/{FILE} into the table orders_of_may_2026 as postgres.pgpq.write_polars_copy_binary_sorted does"
    )
    assert first.startswith(f"{moved}: 0.125 s of 1,000 such rows, the median of 7 runs, by dataframe-io-lab ")
    assert " cores of " in first
    assert "To undo: DROP TABLE orders_of_may_2026" in last


@pytest.mark.process
@pytest.mark.parametrize("source", [f"data/{FILE}", "data", "data/*.parquet"])
def test_no_path_of_this_machine_is_in_it_and_its_data_are_found_from_wherever_it_is_called(
    tmp_path: Path, source: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    text = written(here, source=source)
    assert str(tmp_path) not in text
    moved = here.rename(tmp_path / "{there} and back")
    program = moved / "programs" / "best.py"
    loading = text.partition("def main")[0] + "print(load().height)"
    program.write_text(loading)
    done = subprocess.run((sys.executable, str(program)), cwd="/", capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")


@pytest.mark.process
def test_without_an_address_it_says_which_variable_to_set_to_what(tmp_path: Path) -> None:
    written(tmp_path)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
    program = str(tmp_path / "programs" / "best.py")
    done = subprocess.run((sys.executable, program), env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "LAB_POSTGRES_URI is not set; give an address such as postgresql://user:password@127.0.0.1:5432\n"
    )


def test_one_that_only_reads_has_nothing_to_undo(tmp_path: Path) -> None:
    reading = replace(PGPQ, transport="postgres.asyncpg.read_polars_copy_csv_parallel")
    said = ast.get_docstring(ast.parse(written(tmp_path, reading))) or ""
    assert said.startswith("Move the table orders_of_may_2026 into a frame as ")
    assert said.splitlines()[-1] == "It only reads: there is nothing to undo."


def test_one_that_needs_more_than_addresses_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="needs a folder shared with the server"):
        written(tmp_path, replace(PGPQ, transport="postgres.pg_parquet.write_polars_parquet_file"))


NAMES = [
    *('x"""; print("EXECUTED"); """"', '""""', '"' * 7, '"', "ends with \\", '\\"""', "'''", "a\nb", "a\rb", "\x00"),
    *("\x1b[31m", "\u202e", "\udcff", "# coding: latin-1", "{0} %s"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["file", "table"])
def test_a_name_of_any_characters_stays_in_the_docstring(name, place):
    entry = registry.one("postgres.psycopg.write_polars_copy_csv_lossless")
    found = SimpleNamespace(transport=entry.id, seconds=0.25, runs=7, rows=5)
    source, table = (Source(Path(name), ""), "t") if place == "file" else (Source(None, "SELECT 1"), name)
    text = script._docstring(entry, found, source, table)
    (only,) = ast.parse(text.encode("utf-8")).body
    said = ast.literal_eval(only.value)
    assert said.startswith("Move ")
    assert "0.250 s of 5 such rows, the median of 7 runs" in said
    shown = name if name.isprintable() else name.split("\n")[0] if "\n" in name else ascii(name)[1:-1]
    assert shown in said
