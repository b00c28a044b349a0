"""Ids of the past: each still means the one transport that it meant, in the catalogue and in old results."""

import csv
from collections import Counter

import pytest

from harness import registry, renamed
from harness.model import CONTROL, LabError
from harness.results import folder as folders
from harness.results import runs_csv
from harness.settings import ROOT
from tests.every import every

CATALOGUE = registry.catalogue()
OLD = renamed.ids()
# A row of each, of the reference run of matrix 20261122T002620Z as it was written.
ROWS = ROOT / "tests" / "former_ids.csv"


def cells(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_old_id_means_one_transport_of_today_and_is_none_itself():
    assert set(OLD.values()) <= CATALOGUE.keys()
    assert not OLD.keys() & CATALOGUE.keys()
    assert {now: times for now, times in Counter(OLD.values()).items() if times > 1} == {}


@pytest.mark.long
@every(OLD.items(), lambda pair: pair[0])
def test_an_old_id_finds_its_transport_and_no_other(pair):
    old, now = pair
    assert renamed.current(old) == now
    assert renamed.former(now) == (old,)
    assert registry.one(old) is CATALOGUE[now]
    assert registry.select(old) == [CATALOGUE[now]]


def test_an_id_of_today_is_its_own():
    assert all(renamed.current(name) == name for name in CATALOGUE)


def test_an_old_control_is_the_control_of_the_same_transport():
    assert all(renamed.ids()[old.removesuffix(CONTROL)] + CONTROL == now for old, now in OLD.items() if CONTROL in old)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("postgres.psycopg_text.*", "postgres.psycopg.*_copy_text_format"),
        ("postgres.tuned_*.*", "postgres.psycopg.*_p*_tuned"),
        ("clickhouse.formats_read*.read_pandas_native", "clickhouse.httpx.read_pandas_native"),
        ("clickhouse.tuned_read.*, clickhouse.tuned_write.*", "clickhouse.http_client.*_p*_tuned"),
    ],
)
def test_an_old_glob_finds_what_it_found(pattern, expected):
    assert registry.select(pattern) == registry.select(expected) != []


def test_an_old_glob_that_never_found_anything_still_finds_nothing():
    with pytest.raises(LabError, match="no transport matches"):
        registry.select("postgres.psycopg_text.call_*")


def test_rows_of_an_old_run_are_of_transports_of_today_with_their_published_rows():
    """What they say of a transport is what the catalogue says today."""
    rows, raw = runs_csv.load(ROWS), cells(ROWS)
    assert {cell["transport"] for cell in raw} == OLD.keys()
    for row, cell in zip(rows, raw, strict=True):
        entry = CATALOGUE[row.transport]
        assert row.transport == renamed.current(cell["transport"])
        assert (row.client, row.published_row or None) == (entry.client, entry.published)
        same = ("system", "operation", "path", "payload", "frame", "style", "origin")
        assert [getattr(row, name) for name in same] == [str(getattr(entry, name)) for name in same]


def test_the_trace_of_an_old_run_is_found_under_its_old_name(tmp_path):
    old, now = "postgres.tuned_read.read_polars_tuned", "postgres.psycopg.read_polars_tuned"
    folders.write_trace(folders.trace_path(tmp_path, 7, old), [(0.0, 1.0)])
    assert folders.trace_path(tmp_path, 7, now).name == f"0007-{old}.csv"
    assert folders.load_trace(folders.trace_path(tmp_path, 7, now)) == [(0.0, 1.0)]
    assert folders.trace_path(tmp_path, 8, now).name == f"0008-{now}.csv"
