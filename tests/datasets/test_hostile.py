"""The hostile kinds: every kind has its values, nothing else in its rows is hostile, and names agree everywhere."""

import re

import polars as pl
import pytest

from harness import registry
from harness.check.canonical import POLARS_DTYPES, as_pandas, canonicalise
from harness.datasets.hostile import tables
from harness.datasets.hostile.kind import BOTH, ORDINARY, PLAIN
from harness.datasets.hostile.kinds import KINDS
from harness.fidelity import witness
from harness.fidelity.fidelity import pairs
from harness.lab.embedded import EmbeddedLab
from harness.model import Fate
from tests.every import every

TABLES = [(kind, system) for kind in KINDS.values() for system in kind.rows]
OWN_TABLES = [(kind, system) for kind, system in TABLES if system in kind.stored]
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
    wanted = frame.with_columns(pl.selectors.float().fill_null(float("nan")))  # pandas has one mark for both
    assert canonical.equals(wanted, null_equal=True)


@every(KINDS.values(), lambda kind: kind.name)
def test_a_kind_has_a_name_a_meaning_and_names_only_its_own_columns_and_systems(kind):
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", kind.name)
    assert len(kind.meaning) <= 120
    assert set(kind.rows) | set(kind.forbidden) <= set(BOTH)
    assert set(kind.stored) | set(kind.no_read) <= set(kind.rows)
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


@pytest.mark.parametrize(("kind", "system"), OWN_TABLES, ids=lambda it: getattr(it, "name", it))
def test_what_is_to_stand_in_a_table_of_its_own_is_canonical_and_row_for_row(kind, system):
    stored, kinds = tables.stored(kind, system), tables.stored_kinds(kind, system)
    assert {name: str(dtype) for name, dtype in stored.schema.items()} == {
        name: POLARS_DTYPES[column] for name, column in kinds.items()
    }
    assert stored["row_number"].equals(tables.rows(kind, system)["row_number"])
    of_the_table = kind.stored[system]
    assert set(of_the_table.values) | set(of_the_table.hidden) | set(of_the_table.shown) <= set(kinds)


@pytest.mark.long
@pytest.mark.parametrize("system", BOTH)
def test_the_reference_client_vouches_for_every_kind_that_its_server_holds(system: str, embedded_lab: EmbeddedLab):
    with witness.opened(system, embedded_lab.endpoints) as of_system:
        held = [kind for kind in KINDS.values() if system in kind.rows and system not in kind.forbidden]
        assert {kind.name: verdict for kind in held if (verdict := of_system.verdict(kind))} == {}


def test_the_tables_of_ordinary_types_are_not_read_and_those_with_hidden_columns_as_select_star():
    read = {kind.name for kind in pairs(registry.one("postgres.psycopg.read_polars_rows"))}
    assert {"enum", "json", "generated", "padded_text", "float32_nan"} <= read
    assert not {"uint64", "int64_into_int32", "int64_beyond_int32"} & read
    generated = KINDS["generated"]
    assert list(tables.read_kinds(generated, "postgres")) == ["row_number", "int_value", "double_value"]
    assert list(tables.read_kinds(generated, "clickhouse")) == ["row_number", "int_value"]


def test_what_a_column_cannot_hold_is_right_only_when_it_is_refused():
    for name in ("int64_beyond_int32", "uint64_beyond_int64", "text_too_long", "unknown_label", "fraction_into_int32"):
        assert set(KINDS[name].forbidden) == set(KINDS[name].rows), name


@every(DECLARED)
def test_a_declared_loss_is_of_a_kind_that_can_be_tried_and_has_a_fate_that_loses(entry):
    assert set(entry.lossy) <= {kind.name for kind in pairs(entry)}
    assert set(entry.lossy.values()) <= {Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES}
    forbidden = {name for name, kind in KINDS.items() if entry.system in kind.forbidden}
    assert not [name for name in forbidden if entry.lossy.get(name) == Fate.REFUSED]  # the server's fact, no loss
