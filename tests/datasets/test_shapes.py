"""Shapes of data: their content, the same for the same seed, and the transports that their values rule out."""

from pathlib import Path

import polars as pl
import pytest

from harness import registry
from harness.check.canonical import load_frame
from harness.check.logical_types import polars_dtype
from harness.datasets import store
from harness.datasets.user_data.losses import found_in, ruled_out
from harness.model import Case
from harness.systems import SYSTEMS

SHAPES = {name: spec for name, spec in store.specifications().items() if spec.columns}
BYTES_A_ROW = {  # as the modules say
    "narrow_numbers": 40,
    "wide_numbers": 1_336,
    "long_texts": 2_012,
    "repeated_texts": 65,
    "half_nulls": 42,
    "decimals_and_moments": 56,
    "lists": 51,
}


@pytest.mark.long
@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_its_logical_types_the_bytes_it_says_and_the_same_rows_for_the_same_seed(
    name: str, tmp_path: Path
) -> None:
    spec = SHAPES[name]
    one, again = (store.ensure(tmp_path / folder, name, 500, 7) for folder in ("one", "again"))
    another = store.ensure(tmp_path / "one", name, 500, 8)
    assert one.content_hash == again.content_hash != another.content_hash
    frame = load_frame(one.path, "polars", spec.logical_types)
    assert dict(frame.schema) == {column: polars_dtype(logical) for column, logical in spec.logical_types.items()}
    assert frame["id"].to_list() == list(range(500))
    nullable = {column.name for column in spec.columns if column.nullable}
    assert {series.name for series in frame if series.null_count()} == nullable
    of_parquet = Path(one.path).stat().st_size / 500
    assert of_parquet < spec.bytes_a_row * 1.5  # a small file has its footer next to the rows
    arrow = sum(batch.nbytes for batch in spec.build(20_000, 7)) / 20_000
    assert 0.85 < arrow / BYTES_A_ROW[name] < 1.15


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", SHAPES)
def test_every_database_has_a_table_of_every_shape(name: str, system: str) -> None:
    definition = SYSTEMS[system].tables.definition(SHAPES[name], "keyed")
    assert all(column in definition for column in SHAPES[name].logical_types)


def test_the_categories_of_a_shape_have_enum_columns_of_their_labels_in_clickhouse_and_no_other_shape_has() -> None:
    of = SYSTEMS["clickhouse"].tables.definition
    made = of(SHAPES["repeated_texts"], "enum") or ""
    assert "`country` Enum8('country_000' = 1, " in made or "country Enum8('country_000' = 1, " in made
    assert "'campaign_999' = 1000)" in made
    assert "country_text String" in made or "`country_text` String" in made
    assert of(SHAPES["lists"], "enum") is None


def test_every_second_value_is_missing_where_half_of_them_are_to_be(tmp_path: Path) -> None:
    frame = pl.read_parquet(store.ensure(tmp_path, "half_nulls", 2_000, 7).path)
    assert all(0.45 < series.null_count() / 2_000 < 0.55 for series in frame if series.name != "id")


def test_a_long_text_has_2000_bytes(tmp_path: Path) -> None:
    frame = pl.read_parquet(store.ensure(tmp_path, "long_texts", 20, 7).path)
    assert frame["text"].str.len_bytes().unique().to_list() == [2_000]
    assert frame["text"].n_unique() == 20


def test_a_transport_that_loses_a_kind_of_values_of_a_shape_is_ruled_out_of_that_shape_alone(tmp_path: Path) -> None:
    described = {
        name: found_in(store.ensure(tmp_path, name, 100, 7).path, SHAPES[name].logical_types)
        for name in ("lists", "half_nulls", "narrow_numbers")
    }
    loses = registry.one("clickhouse.urllib.read_polars_csv")
    exact = registry.one("clickhouse.http_client.read_polars_tuned")
    cases = [Case(entry, "shapes", name, {"rows": 100}) for entry in (loses, exact) for name in described]
    found = ruled_out(described, cases)
    assert set(found) == {("lists", loses.id), ("half_nulls", loses.id)}
    assert found["lists", loses.id].endswith('(column "readings" and 1 more)')
