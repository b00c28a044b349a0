"""What a file, query or table is called stays words in the docstring of the program that is written."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import registry
from harness.recommend import script
from harness.recommend.loading import Source

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
