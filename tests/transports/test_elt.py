"""Every transport that turns CSV files into a Parquet file keeps every well-formed row and skips the rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from harness.check import row_sums
from harness.datasets import raw_csv
from harness.datasets.raw_csv import Tree
from harness.model import Transport
from harness.registry import connect_of, select
from harness.run.rigs.elt import _SQL_TYPES as TYPES

ENTRIES = select("elt.*")
ways = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return raw_csv.ensure(tmp_path_factory.mktemp("datasets"), 13_000, 7, lambda text: None, file_rows=3_500)


@contextmanager
def connected(entry: Transport, folder: Path) -> Iterator[object]:
    (folder / "scratch").mkdir()
    with connect_of(entry)(str(folder / "scratch"), None) as connection:
        yield connection


def meant(tree: Tree) -> pl.DataFrame:
    return pl.read_parquet(tree.meant / "*.parquet").sort("event_id")


@pytest.mark.long
@ways
def test_the_file_holds_the_rows_that_are_meant_under_all_columns(entry: Transport, tree: Tree, tmp_path: Path) -> None:
    expected, path = meant(tree), tmp_path / "result.parquet"
    with connected(entry, tmp_path) as connection:
        assert entry.function(connection, str(tree.raw), str(path)) is None
    found = pl.read_parquet(path).select(expected.columns).sort("event_id")
    found = found.with_columns(
        pl.col("occurred_at").dt.replace_time_zone(None).cast(pl.Datetime("us")),
        pl.col("filename").str.strip_prefix(f"{tree.raw}/"),
    )
    assert found.equals(expected)


@pytest.mark.long
@ways
def test_it_can_be_called_again_over_the_same_connection(entry: Transport, tree: Tree, tmp_path: Path) -> None:
    with connected(entry, tmp_path) as connection:
        for name in ("warmup", "result", "result"):
            entry.function(connection, str(tree.raw), str(tmp_path / f"{name}.parquet"))
    assert pl.read_parquet(tmp_path / "result.parquet").height == tree.rows


@ways
def test_quotes_and_brackets_in_a_path_are_no_syntax(entry: Transport, tmp_path: Path) -> None:
    tree = raw_csv.ensure(tmp_path / "it's", 100, 7, lambda text: None)
    path = tmp_path / "it's" / "a result.parquet"
    with connected(entry, tmp_path) as connection:
        entry.function(connection, str(tree.raw), str(path))
    assert pl.read_parquet(path).height == 100


@pytest.mark.long
@pytest.mark.parametrize("read", [row_sums.by_duckdb, row_sums.by_polars], ids=lambda read: read.__name__)
@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (pl.col("price") * -1, "price"),
        (pl.col("note").str.to_uppercase(), "note"),
        (pl.col("device").fill_null(""), "device"),
        (pl.col("user_id").reverse(), "all columns together"),
        (pl.col("filename").str.replace("web", "app"), "filename"),
    ],
)
def test_sums_of_rows_find_a_wrong_value_a_lost_null_and_values_in_other_rows(
    read: row_sums.Reader, change: pl.Expr, wrong: str, tree: Tree, tmp_path: Path
) -> None:
    frame = meant(tree)
    frame.sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "shuffled.parquet")
    frame.with_columns(change).write_parquet(tmp_path / "wrong.parquet")
    frame.head(-1).write_parquet(tmp_path / "short.parquet")
    files = [str(path) for path in tree.meant.iterdir()]
    expected = read(files, TYPES, "/raw/")
    assert row_sums.differences(expected, read([str(tmp_path / "shuffled.parquet")], TYPES, "/raw/")) == []
    found = row_sums.differences(expected, read([str(tmp_path / "wrong.parquet")], TYPES, "/raw/"))
    assert found[0].startswith(wrong)
    assert row_sums.differences(expected, read([str(tmp_path / "short.parquet")], TYPES, "/raw/")) == [
        f"expected {tree.rows} rows, found {tree.rows - 1}"
    ]
