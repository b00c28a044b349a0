"""The hostile kinds: every kind has its values, nothing else in its rows is hostile, and names agree everywhere."""

import re

import polars as pl
import pytest

from harness import registry
from harness.check.canonical import as_pandas, canonicalise
from harness.check.logical_types import POLARS_DTYPES
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.hostile.kind import OF_TABLES
from harness.fidelity import tables
from harness.fidelity.examination import pairs
from harness.model import Fate
from harness.systems import SYSTEMS
from tests.every import every

TABLES = [of for kind in KINDS.values() for system in SYSTEMS if (of := tables.held(kind, system))]
OWN_TABLES = [of for of in TABLES if of.insertion]
DECLARED = [entry for entry in registry.select() if entry.lossy]


@pytest.mark.parametrize("of", TABLES, ids=lambda of: f"{of.kind.name}-{of.system.name}")
def test_the_rows_of_a_kind_are_a_canonical_frame_in_the_order_of_its_key(of):
    frame, logical_types = of.rows, tables.logical_types_of(of.kind.columns)
    assert {name: str(dtype) for name, dtype in frame.schema.items()} == {
        name: POLARS_DTYPES[column] for name, column in logical_types.items()
    }
    assert frame["row_number"].to_list() == list(range(len(of.values)))
    assert frame["row_number"].null_count() == 0
    canonical, converted = canonicalise(frame, logical_types)
    assert canonical.equals(frame)
    assert converted == {}


@pytest.mark.long
@pytest.mark.parametrize("of", TABLES, ids=lambda of: f"{of.kind.name}-{of.system.name}")
def test_the_pandas_frame_of_a_kind_is_canonical_and_holds_every_value(of):
    frame, logical_types = of.rows, tables.logical_types_of(of.kind.columns)
    if "pandas" in of.kind.no_frame:
        with pytest.raises(OverflowError, match="no such date"):
            as_pandas(frame, logical_types)
        return
    canonical, converted = canonicalise(as_pandas(frame, logical_types), logical_types)
    assert converted == {}
    wanted = frame.with_columns(pl.selectors.float().fill_null(float("nan")))  # pandas has one mark for both
    assert canonical.equals(wanted, null_equal=True)


@every(KINDS.values(), lambda kind: kind.name)
def test_a_kind_has_a_name_a_meaning_and_names_only_its_own_columns(kind):
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", kind.name)
    assert len(kind.meaning) <= 120
    assert {name for row in kind.rows or [] for name in row} <= set(kind.columns)
    assert set(kind.beyond) <= set(kind.columns)
    assert set(kind.made) <= set(kind.into)
    assert set(kind.columns.values()) <= POLARS_DTYPES.keys()
    assert {*kind.into.values(), *kind.beyond.values()} <= {*POLARS_DTYPES, *OF_TABLES}


@every(SYSTEMS.values(), lambda system: system.name)
def test_a_database_has_only_what_some_kind_has_too(system):
    hostile = system.hostile
    assert hostile.TYPES.keys() <= {*POLARS_DTYPES, *OF_TABLES}
    assert hostile.OWN.keys() <= KINDS.keys()
    for name, own in hostile.OWN.items():
        columns = {**KINDS[name].columns, **KINDS[name].into}
        assert {column for row in own.rows or [] for column in row} <= set(KINDS[name].columns), name
        assert {*own.types, *own.made, *own.hidden, *own.shown} <= set(columns), name
        assert (tables.held(KINDS[name], system.name) is None) == bool(own.without), name


def test_a_database_without_values_or_a_type_for_a_column_is_without_the_kind():
    lacking = {system: {name for name in KINDS if not tables.held(KINDS[name], system)} for system in SYSTEMS}
    assert lacking["postgres"] == {"nested", "negative_into_unsigned", "dates_beyond"}
    assert lacking["clickhouse"] == {"far_dates", "jsonb"}
    with pytest.raises(ValueError, match="postgres has no values of the kind nested"):
        tables.one(KINDS["nested"], "postgres")


@pytest.mark.parametrize("of", OWN_TABLES, ids=lambda of: f"{of.kind.name}-{of.system.name}")
def test_what_is_to_be_in_its_own_table_is_canonical_and_row_for_row(of):
    stored, logical_types = of.stored, of.stored_logical_types
    assert {name: str(dtype) for name, dtype in stored.schema.items()} == {
        name: POLARS_DTYPES[column] for name, column in logical_types.items()
    }
    assert stored["row_number"].equals(of.rows["row_number"])


def test_the_tables_of_ordinary_types_are_not_read_and_those_with_hidden_columns_as_select_star():
    read = {kind.name for kind in pairs(registry.one("postgres.psycopg.read_polars_rows"))}
    assert {"enum", "json", "generated", "padded_text", "float32_nan"} <= read
    assert not {"uint64", "int64_into_int32", "int64_beyond_int32"} & read
    generated = KINDS["generated"]
    assert list(tables.one(generated, "postgres").read_logical_types) == ["row_number", "int_value", "double_value"]
    assert list(tables.one(generated, "clickhouse").read_logical_types) == ["row_number", "int_value"]


def test_what_a_column_cannot_hold_is_right_only_when_it_is_refused():
    for name in ("int64_beyond_int32", "uint64_beyond_int64", "text_too_long", "unknown_label", "fraction_into_int32"):
        assert all(of.forbidden for system in SYSTEMS if (of := tables.held(KINDS[name], system))), name


@every(DECLARED)
def test_a_declared_loss_is_of_a_kind_that_can_be_tried_and_has_a_fate_that_loses(entry):
    assert set(entry.lossy) <= {kind.name for kind in pairs(entry)}
    assert set(entry.lossy.values()) <= {Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES}
    forbidden = {of.kind.name for of in TABLES if of.system.name == entry.system and of.forbidden}
    assert not [name for name in forbidden if entry.lossy.get(name) == Fate.REFUSED]  # the server's fact, no loss
