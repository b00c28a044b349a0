"""The hostile kinds: every kind has its values, nothing else in its rows is hostile, and names agree everywhere."""

import re

import polars as pl
import pytest

from harness import registry
from harness.canonical import POLARS_DTYPES, as_pandas, canonicalise
from harness.datasets.hostile import tables
from harness.datasets.hostile.kinds import BOTH, KINDS, ORDINARY, PLAIN
from harness.fidelity import pairs
from harness.model import Fate

TABLES = [(kind, system) for kind in KINDS.values() for system in kind.rows]
DECLARED = [entry for entry in registry.select() if entry.lossy]


@pytest.mark.parametrize(("kind", "system"), TABLES, ids=lambda it: getattr(it, "name", it))
def test_the_rows_of_a_kind_are_a_canonical_frame_in_the_order_of_its_key(kind, system):
    frame = tables.rows(kind, system)
    kinds = tables.kinds_of(kind.columns)
    assert {name: str(dtype) for name, dtype in frame.schema.items()} == {
        name: POLARS_DTYPES[column] for name, column in kinds.items()
    }
    assert frame["row_number"].to_list() == list(range(len(kind.rows[system])))
    assert frame["row_number"].null_count() == 0
    canonical, converted = canonicalise(frame, kinds)
    assert canonical.equals(frame)
    assert converted == {}


@pytest.mark.parametrize(("kind", "system"), TABLES, ids=lambda it: getattr(it, "name", it))
def test_the_pandas_frame_of_a_kind_is_canonical_and_holds_every_value(kind, system):
    if "pandas" in kind.no_frame:
        with pytest.raises(OverflowError, match="no such date"):
            as_pandas(tables.rows(kind, system), tables.kinds_of(kind.columns))
        return
    frame = tables.rows(kind, system)
    canonical, converted = canonicalise(as_pandas(frame, tables.kinds_of(kind.columns)), tables.kinds_of(kind.columns))
    assert converted == {}
    wanted = frame.with_columns(pl.col(pl.Float64).fill_null(float("nan")))  # pandas has one mark for both
    assert canonical.equals(wanted, null_equal=True)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_has_a_name_a_meaning_and_names_only_its_own_columns_and_systems(kind):
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", kind.name)
    assert len(kind.meaning) <= 120
    assert set(kind.rows) | set(kind.forbidden) <= set(BOTH)
    assert {name for rows in kind.rows.values() for row in rows for name in row} <= set(kind.columns)


def test_an_ordinary_row_has_no_null_and_only_ascii_words():
    assert ORDINARY.keys() == PLAIN.keys()
    assert None not in ORDINARY.values()
    assert ORDINARY["text_value"].isalpha()


def test_empty_texts_and_nulls_stand_in_different_kinds():
    empty = tables.rows(KINDS["empty_text"], "postgres")
    assert "" in empty["text_value"]
    assert sum(empty.null_count().row(0)) == 0
    for name in ("nulls", "null_text", "first_10000_null"):
        assert "" not in tables.rows(KINDS[name], "postgres")["text_value"]


def test_every_nullable_column_is_null_alone_and_all_are_together():
    frame = tables.rows(KINDS["nulls"], "postgres").drop("row_number")
    nulls = [tuple(value is None for value in row) for row in frame.iter_rows()]
    assert sum(all(row) for row in nulls) == 1
    assert {row.index(True) for row in nulls if sum(row) == 1} == set(range(len(PLAIN)))


def test_the_first_value_comes_after_ten_thousand_nulls():
    frame = tables.rows(KINDS["first_10000_null"], "clickhouse").drop("row_number")
    assert {frame[name][:-1].null_count() for name in PLAIN} == {10_000}
    assert frame.tail(1).row(0) == tuple(ORDINARY.values())


def test_a_long_text_has_a_million_characters():
    assert max(map(len, tables.rows(KINDS["long_text"], "postgres")["text_value"])) == 1_000_000


@pytest.mark.parametrize("entry", DECLARED, ids=lambda entry: entry.id)
def test_a_declared_loss_is_of_a_kind_that_can_be_tried_and_has_a_fate_that_loses(entry):
    assert set(entry.lossy) <= {kind.name for kind in pairs(entry)}
    assert set(entry.lossy.values()) <= {Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES}
    forbidden = {name for name, kind in KINDS.items() if entry.system in kind.forbidden}
    assert not [name for name in forbidden if entry.lossy.get(name) == Fate.REFUSED]  # the server's fact, no loss
