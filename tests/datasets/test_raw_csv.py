"""The tree of CSV files matches its description: well-formed rows, malformed lines, columns, rebuilt files."""

import csv
import os
from datetime import datetime

import polars as pl
import pytest

from harness.datasets import raw_csv
from harness.datasets.raw_csv import MANDATORY, TYPES

ROWS, FILE_ROWS, SEED = 13_000, 3_500, 7  # four files, so that every set of columns is there


def build(folder, rows=ROWS, seed=SEED, say=lambda text: None):
    return raw_csv.ensure(folder, rows, seed, say, FILE_ROWS)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return build(tmp_path_factory.mktemp("datasets"))


def parsed(tree):
    """Rows and malformed lines, separately, as Python's csv module reads them."""
    good, bad = [], []
    for path in tree.raw.rglob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            for line in reader:
                fine = None not in line.values() and line["event_id"].isdigit() and line["status"].isdigit()
                line["filename"] = path.relative_to(tree.raw).as_posix()
                (good if fine else bad).append(line)
    return good, bad


@pytest.mark.long
def test_the_well_formed_lines_are_the_rows_that_are_meant_and_all_others_are_counted(tree):
    good, bad = parsed(tree)
    assert (len(good), len(bad)) == (tree.rows, tree.malformed)
    convert = {"int64": int, "double": float, "timestamp[us]": datetime.fromisoformat, "string": str}
    found = [
        {name: convert[str(arrow_type)](line[name]) if name in line else None for name, arrow_type in TYPES.items()}
        for line in sorted(good, key=lambda line: int(line["event_id"]))
    ]
    meant = pl.read_parquet(tree.meant / "*.parquet").sort("event_id")
    assert found == meant.to_dicts()
    assert meant["event_id"].to_list() == list(range(1, ROWS + 1))


def test_malformed_lines_are_of_both_sorts_and_none_is_among_the_first_thousand_of_a_file(tree):
    _, bad = parsed(tree)
    cut = [line for line in bad if None in line.values()]
    assert 0 < len(cut) < len(bad)
    for path in tree.raw.rglob("*.csv"):
        head, *lines = path.read_text(encoding="utf-8").splitlines()[:1_001]
        assert len({len(fields) for fields in csv.reader([head, *lines])}) == 1


def test_files_differ_in_columns_and_every_file_has_the_mandatory_ones(tree):
    heads = {path.open(encoding="utf-8").readline().strip() for path in tree.raw.rglob("*.csv")}
    assert len(heads) == 3
    assert all(set(MANDATORY) <= set(head.split(",")) for head in heads)
    nulls = pl.read_parquet(tree.meant / "*.parquet").null_count().row(0, named=True)
    assert {name for name, count in nulls.items() if count} == {"device", "campaign", "variant"}


def test_files_lie_in_nested_folders_and_are_as_large_as_the_tree_says(tree):
    files = list(tree.raw.rglob("*.csv"))
    assert len(files) == tree.files == 4
    assert all(len(path.relative_to(tree.raw).parts) == 4 for path in files)
    assert sum(path.stat().st_size for path in files) == tree.bytes


def test_a_row_has_as_many_bytes_as_in_the_published_job(tmp_path):
    tree = raw_csv.ensure(tmp_path, 100_000, SEED, lambda text: None)
    assert 212 < tree.bytes / tree.rows < 222


def contents(tree):
    return {path.relative_to(tree.folder): path.read_bytes() for path in tree.raw.rglob("*.csv")}


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(tree, tmp_path):
    assert contents(build(tmp_path)) == contents(tree)
    other = contents(build(tmp_path, seed=SEED + 1))
    assert all(other[name] != text for name, text in contents(tree).items())


def test_only_a_damaged_file_is_made_again_as_it_was(tmp_path):
    first, said = build(tmp_path), []
    before = contents(first)
    os.truncate(next(first.raw.rglob("*00002.csv")), 1_000)
    assert build(tmp_path, say=said.append) == first
    assert said == [f"building 1 of 4 files of raw_csv in {first.folder.name}/"]
    assert contents(first) == before


def test_the_disk_that_is_needed_is_known_before_and_nothing_once_the_tree_is_there(tmp_path):
    announced = raw_csv.needed_bytes(tmp_path, ROWS, SEED)
    tree = raw_csv.ensure(tmp_path, ROWS, SEED, lambda text: None)
    taken = sum(path.stat().st_size for path in tree.folder.rglob("*") if path.is_file())
    assert announced / 2 < taken < announced
    assert raw_csv.needed_bytes(tmp_path, ROWS, SEED) == 0
