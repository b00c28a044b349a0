"""Plain calls of the clients, small: they run, write the same rows as the lab, and know nothing of it."""

import ast
from pathlib import Path
from statistics import median

import pytest

from benchmarks.independent import calls, compare
from harness import registry


def test_the_calls_import_nothing_of_the_lab():
    tree = ast.parse(Path(calls.__file__).read_text(encoding="utf-8"))
    named = [one.module or "" for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
    named += [name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names]
    assert not [name for name in named if name.split(".")[0] in ("harness", "benchmarks", "arrow_wire")]


def test_each_of_the_ten_is_a_transport_of_the_lab():
    assert len(calls.CALLS) == 10
    assert all(registry.one(transport) for _, transport in calls.CALLS.values())


@pytest.mark.long
@pytest.mark.process
def test_plain_calls_and_the_lab_take_about_the_same_cpu_seconds():
    """Small: `python -m benchmarks.independent.compare` holds 100,000 rows to 10 % on a quiet machine."""
    found = {name: tuple(map(median, zip(*pairs, strict=True))) for name, pairs in compare.compare(20_000, 3).items()}
    assert len(found) == 10
    assert {name: both for name, both in found.items() if abs(both[1] - both[0]) > 0.02 + 0.5 * both[0]} == {}
