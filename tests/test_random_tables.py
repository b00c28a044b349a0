"""Tables of random shape and content survive a write and a read by transports that declare no loss for their types."""

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import registry
from harness.check.canonical import as_pandas, canonicalise
from harness.check.equality import differences
from harness.datasets.hostile.common_kinds import KINDS, PLAIN, Kind
from harness.fidelity import tables, witness
from harness.fidelity.witness import Witness
from harness.lab.embedded import EmbeddedLab
from harness.model import Transport
from harness.systems import SYSTEMS
from tests.calls import call

# The timestamps that both servers and all libraries hold.
MOMENTS = st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2260, 1, 1))
NULLABLE: dict[str, st.SearchStrategy[Any]] = {
    # Without control characters and \N, which some of these transports lose.
    "text": st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20).filter(lambda text: text != "\\N"),
    "date": st.dates(dt.date(1971, 1, 1), dt.date(2148, 12, 31)),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "timestamp": MOMENTS,
    "timestamp_tz": MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    "decimal": st.decimals(Decimal(-(10**27)), Decimal(10**27), places=10),
}
ARRAYS = st.lists(st.none() | NULLABLE["int32"], max_size=5)
# A write and a read over the same server; the read is of the written table.
WAYS = [
    ("postgres.asyncpg.write_polars_copy_binary", "postgres.psycopg.read_polars_rows"),
    ("postgres.psycopg.write_polars_copy_text", "postgres.asyncpg.read_polars_prepared_rows"),
    ("postgres.psycopg.write_pandas_copy_text", "postgres.asyncpg.read_polars_rows"),
    ("clickhouse.urllib.write_polars_parquet", "clickhouse.httpx.read_polars_parquet"),
    ("clickhouse.clickhouse_driver.write_polars_columnar", "clickhouse.asynch.read_polars_columnar"),
]


@st.composite
def random_tables(draw: st.DrawFn, logical_types: list[str]) -> tuple[dict[str, str], list[list[Any]]]:
    """Draw columns (name -> logical type) and rows; a type may come several times."""
    chosen = draw(st.lists(st.sampled_from(logical_types), min_size=1, max_size=5))
    values = [ARRAYS if logical == "array" else st.none() | NULLABLE[logical] for logical in chosen]
    rows = draw(st.lists(st.tuples(*values).map(list), min_size=1, max_size=8))
    return {f"{logical}_{place}": logical for place, logical in enumerate(chosen)}, rows


@pytest.fixture(scope="module")
def witnesses(embedded_lab: EmbeddedLab) -> Iterator[dict[str, Witness]]:
    with ExitStack() as stack:
        yield {system: stack.enter_context(witness.opened(system, embedded_lab.endpoints)) for system in SYSTEMS}


def logical_types_for(*entries: Transport) -> list[str]:
    """Return the types of columns that these transports are not known to lose."""
    declared = (KINDS[name] for entry in entries for name in entry.lossy)
    lost = [kind for kind in declared if kind.columns != PLAIN and not (kind.into or kind.beyond or kind.tables)]
    types = {column for kind in lost for column in kind.columns.values()}
    return [logical for logical in (*NULLABLE, "array") if logical not in types]


@pytest.mark.long
@pytest.mark.parametrize(("write", "read"), WAYS)
def test_a_random_table_comes_back_as_it_was(
    write: str, read: str, embedded_lab: EmbeddedLab, witnesses: dict[str, Witness]
) -> None:
    writer, reader = registry.one(write), registry.one(read)

    @settings(max_examples=15, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(random_tables(logical_types_for(writer, reader)))
    def comes_back(drawn: tuple[dict[str, str], list[list[Any]]]) -> None:
        columns, rows = drawn
        kind = Kind("random", "", [], columns)
        expected, logical_types = tables.frame(columns, rows), tables.logical_types_of(columns)
        table = witnesses[writer.system].empty(kind)
        call(writer, embedded_lab, as_pandas(expected, logical_types) if writer.frame == "pandas" else expected, table)
        written = witnesses[writer.system].fetch(kind, table)
        assert differences(expected, written, tables.ROW_KEY) == []
        returned, _ = canonicalise(call(reader, embedded_lab, table), logical_types)
        assert differences(expected, returned, tables.ROW_KEY) == []

    comes_back()
