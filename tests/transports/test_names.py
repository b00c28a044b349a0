"""Names of tables and columns: quoted once a system, so that every server gives back and no way executes them."""

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import registry
from harness.check.canonical import as_pandas, canonicalise
from harness.check.equality import differences
from harness.datasets.hostile.common_kinds import KINDS, ORDINARY, PLAIN, Kind
from harness.datasets.hostile.names import VICTIM
from harness.fidelity import pair, tables, trials, witness
from harness.fidelity.examination import Examination, pairs
from harness.fidelity.witness import Witness
from harness.lab import labs
from harness.lab.embedded import EmbeddedLab
from harness.lab.labs import Lab
from harness.lab.object_stores import object_store
from harness.machine.variables import namespace
from harness.model import OR, Fate, Operation, Origin, Transport
from harness.systems import SYSTEMS
from harness.transports.clickhouse import sql as clickhouse_sql
from harness.transports.postgres import sql as postgres_sql
from tests.calls import call
from tests.every import every
from tests.made_up import MadeUp
from tests.object_store import settings_below

LONGEST = 63  # bytes of a name in Postgres
LETTERS = st.sampled_from("\"`'\\%:;$?{}()[].,*^ \t\n-/#@aAé名\U0001f98a") | st.characters(exclude_categories=["Cs"])
ANY_NAME = (
    st.text(LETTERS, min_size=1, max_size=20)
    .map(lambda name: name.replace("\0", "0"))  # Postgres has no U+0000
    .filter(lambda name: len(name.encode()) <= LONGEST and name not in tables.ROW_KEY)
    .filter(lambda name: not name.startswith("^"))  # methods of a polars Series take ^...$ for a pattern (2.1.0)
)
LITERALS = {
    "postgres": (
        postgres_sql.literal,
        f"SELECT tablename AS name FROM pg_tables WHERE schemaname = '{namespace()}' AND tablename = {{}}",
    ),
    "clickhouse": (
        clickhouse_sql.literal,
        f"SELECT name FROM system.tables WHERE database = '{namespace()}' AND name = {{}}",
    ),
}
FEW = settings(max_examples=30, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def witnesses(embedded_lab: EmbeddedLab) -> Iterator[dict[str, Witness]]:
    with ExitStack() as stack:
        yield {system: stack.enter_context(witness.opened(system, embedded_lab.endpoints)) for system in SYSTEMS}


def asked(system: str, of: Witness, query: str) -> list[str]:
    """Return the one column of a query through the reference client."""

    def column(connection: Any) -> list[str]:
        if system == "clickhouse":
            return [row[0] for row in connection.query(query).result_rows]
        with connection.cursor() as cursor:
            cursor.execute(query)
            return [row[0] for row in cursor.fetchall()]

    return of.reference.ask(column)


MOMENTS = st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2260, 1, 1))  # which both servers and all libraries hold
VALUES: dict[str, st.SearchStrategy[Any]] = {
    # Without control characters and \\N, which some of these transports lose.
    "text": st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20).filter(lambda text: text != "\\N"),
    "uuid": st.uuids().map(str),
    "date": st.dates(dt.date(1971, 1, 1), dt.date(2148, 12, 31)),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "timestamp": MOMENTS,
    "timestamp_tz": MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    "decimal": st.decimals(Decimal(-(10**27)), Decimal(10**27), places=10),
}
VALUES["array"] = st.lists(st.none() | VALUES["int32"], max_size=5)
NEVER_NULL = ("uuid", "array")  # for some of these transports
# In pandas a null may be a NaN, and a number next to one a float.
WITHOUT_NULLS = {
    "postgres.asyncpg.read_pandas_prepared_rows",
    "postgres.asyncpg.write_pandas_executemany",
    "clickhouse.httpx.write_pandas_json",
}
# A write and a read over the same server, of clients that send names and values differently.
WAYS = [
    ("postgres.psycopg.write_polars_copy_text", "postgres.psycopg.read_polars_rows"),
    ("postgres.psycopg.write_polars_copy_text", "postgres.asyncpg.read_polars_prepared_rows"),
    ("postgres.psycopg.write_pandas_copy_text", "postgres.asyncpg.read_polars_rows"),
    ("postgres.asyncpg.write_polars_copy_binary", "postgres.asyncpg.read_pandas_prepared_rows"),
    ("postgres.asyncpg.write_pandas_executemany", "postgres.adbc.read_polars_fetch"),
    ("clickhouse.urllib.write_polars_parquet", "clickhouse.httpx.read_polars_arrow_stream"),
    ("clickhouse.urllib.write_polars_parquet", "clickhouse.httpx.read_polars_parquet"),
    ("clickhouse.clickhouse_driver.write_polars_columnar", "clickhouse.asynch.read_polars_columnar"),
    ("clickhouse.httpx.write_pandas_json", "clickhouse.httpx.read_polars_tsv_lossless"),
]


def logical_types_for(*entries: Transport) -> list[str]:
    """Return the types of columns that these transports are not known to lose."""
    declared = (KINDS[name] for entry in entries for name in entry.lossy)
    lost = [kind for kind in declared if kind.columns != PLAIN and not (kind.into or kind.beyond or kind.tables)]
    types = {column for kind in lost for column in kind.columns.values()}
    return [logical for logical in VALUES if logical not in types]


@st.composite
def random_tables(
    draw: st.DrawFn, logical_types: list[str], nulls: st.SearchStrategy[None]
) -> tuple[str, dict[str, str], list[list[Any]]]:
    """Draw a name, columns (name -> logical type) and rows; a type may come several times."""
    columns = draw(st.dictionaries(ANY_NAME, st.sampled_from(logical_types), min_size=1, max_size=5))
    values = [VALUES[logical] if logical in NEVER_NULL else nulls | VALUES[logical] for logical in columns.values()]
    return draw(ANY_NAME), columns, draw(st.lists(st.tuples(*values).map(list), min_size=1, max_size=8))


@pytest.mark.long
@pytest.mark.parametrize(("write", "read"), WAYS)
def test_any_table_of_any_names_comes_back_and_its_name_as_a_string_is_its_name(
    write: str, read: str, embedded_lab: EmbeddedLab, witnesses: dict[str, Witness]
) -> None:
    writer, reader = registry.one(write), registry.one(read)
    of, system = witnesses[writer.system], writer.system
    literal, question = LITERALS[system]
    nulls = st.nothing() if {write, read} & WITHOUT_NULLS else st.none()

    @FEW
    @given(random_tables(logical_types_for(writer, reader), nulls))
    def comes_back(drawn: tuple[str, dict[str, str], list[list[Any]]]) -> None:
        table, columns, rows = drawn
        kind, expected = Kind("random", "", [], columns, tables=(table, table)), tables.frame(columns, rows)
        logical_types = tables.logical_types_of(columns)
        of.empty(kind)
        assert asked(system, of, question.format(literal(table))) == [table]
        call(writer, embedded_lab, as_pandas(expected, logical_types) if writer.frame == "pandas" else expected, table)
        assert differences(expected, of.fetch(kind, table), tables.ROW_KEY) == []
        returned, _ = canonicalise(call(reader, embedded_lab, table), logical_types)
        assert differences(expected, returned, tables.ROW_KEY) == []
        of.reference.ask(SYSTEMS[system].client.drop, table)

    comes_back()


BOUNDS = [
    entry
    for entry in registry.select("postgres.*,clickhouse.*")
    if entry.origin is Origin.LIMIT and entry.operation in (Operation.READ, Operation.WRITE)
]


@pytest.mark.long
@pytest.mark.parametrize("entry", BOUNDS, ids=lambda entry: entry.id)
@pytest.mark.parametrize("name", ["name_statement", "name_backtick_statement", "name_quoted", "name_backslash"])
def test_a_bound_moves_a_table_whatever_its_name(
    entry: Transport, name: str, embedded_lab: EmbeddedLab, witnesses: dict[str, Witness]
) -> None:
    of, kind = witnesses[entry.system], KINDS[name]
    assert of.verdict(kind) == ""
    if entry.operation is Operation.READ:
        assert call(entry, embedded_lab, of.loaded(kind)) == of.rows(kind).height
    else:
        table = of.empty(kind)
        call(entry, embedded_lab, of.loaded(kind), table)
        assert differences(of.rows(kind), of.fetch(kind, table), tables.ROW_KEY) == []
    assert of.executed() == ""


# These transports ask the server for a name again: the columns of the key, or one to divide the table by.
BY_KEY = [
    entry
    for entry in registry.select("postgres.*sorted*,postgres.*_tuned")
    if entry.operation is Operation.WRITE and entry.frame == "polars"
]


@pytest.mark.parametrize("entry", BY_KEY, ids=lambda entry: entry.id)
def test_a_key_whose_columns_have_hostile_names_is_sorted_by(
    entry: Transport, embedded_lab: EmbeddedLab, witnesses: dict[str, Witness]
) -> None:
    of = witnesses["postgres"]
    table, names = '^"a".*$', ['^.*"$', "a%s", "*"]
    quoted = postgres_sql.identifiers(names[:2])
    definition = (
        f"CREATE TABLE {{table}} (row_number integer NOT NULL, {postgres_sql.identifier(names[0])} text, "
        f'"a%s" integer, "*" date, PRIMARY KEY ({quoted}))'
    )
    columns = dict(zip(names, ("text", "int32", "date"), strict=True))
    rows = [[str(number % 7), -number, ORDINARY["date_value"]] for number in range(100)]
    expected = tables.frame(columns, rows)
    of.reference.ask(SYSTEMS["postgres"].client.create, table, definition)
    call(entry, embedded_lab, expected, table)
    # Not as a polars frame: methods of a polars Series fail where its name is a pattern that does not match itself.
    found = of.reference.ask(SYSTEMS["postgres"].client.fetch, table)
    assert found.column_names == expected.columns
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == sorted(expected.rows())
    of.reference.ask(SYSTEMS["postgres"].client.drop, table)


CARELESS = """
@contextmanager
def connect(uri):
    import psycopg
    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection

@transport("", "", frame="polars")
def read_carelessly(connection, table):
    import polars as pl
    cursor = connection.execute(f'SELECT * FROM "{table}"')
    return pl.DataFrame(cursor.fetchall(), schema=[column.name for column in cursor.description], orient="row")
"""


@pytest.mark.long
def test_a_way_that_executes_sql_in_a_name_is_found_out(
    tmp_path: Path, lab_of_tests: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MadeUp(tmp_path / "made", up=CARELESS)
    made.join(monkeypatch)
    entry = replace(registry.one("made.up.read_carelessly"), system="postgres", endpoint="postgres")
    kinds = [KINDS[name] for name in ("one_row", "name_statement", "name_backtick_statement")]
    exam = Examination(lab_of_tests, labs.check(lab_of_tests), "none", "", [entry], command=made.command, kinds=kinds)
    found = {finding.kind: finding for finding in trials.examine(exam)}
    assert found["name_statement"].fate is Fate.CHANGED
    assert "SQL in a name was executed" in found["name_statement"].detail
    assert VICTIM in found["name_statement"].detail
    assert found["name_backtick_statement"].fate in (Fate.EXACT, Fate.CONVERTED)  # and the table was made anew


def test_a_frame_with_names_that_are_patterns_is_read_as_it_was_written(tmp_path: Path) -> None:
    from harness.check.canonical import load_frame

    frame = pl.DataFrame({"*": ["a"], "^.*$": ["b"], "x": ["c"]})
    frame.write_parquet(tmp_path / "patterns.parquet")
    wanted = {"^.*$": "text", "*": "text"}
    assert load_frame(tmp_path / "patterns.parquet", "polars", wanted).to_dict(as_series=False) == {
        "^.*$": ["b"],
        "*": ["a"],
    }


COMES_THROUGH = (Fate.EXACT, Fate.CONVERTED)
# Transport -> kind of values -> its possible fates.
ONCE_CHANGED = {
    "clickhouse.httpx.write_pandas_parquet_lossless": {"float32_nan": COMES_THROUGH},
    "clickhouse.urllib.write_pandas_parquet_lossless": {"float32_nan": COMES_THROUGH},
    "clickhouse.asynch.write_pandas_executemany": {"float32_nan": COMES_THROUGH},
    "postgres.asyncpg.write_pandas_executemany": {"float32_nan": COMES_THROUGH},
    "postgres.asyncpg.read_polars_copy_csv_lossless": {"generated": COMES_THROUGH},
    "postgres.asyncpg.read_pandas_copy_csv_lossless": {"generated": COMES_THROUGH},
    "postgres.asyncpg.read_polars_copy_binary": {"generated": COMES_THROUGH},
    "postgres.duckdb.read_polars_postgres_binary": {"generated": COMES_THROUGH},
    **{
        f"postgres.psycopg.write_{frame}_copy_binary": {
            "int64_beyond_int32": (Fate.REFUSED,),
            "uint32_beyond_int32": (Fate.REFUSED,),
            "uint64_beyond_int64": (Fate.REFUSED,),
            "float64_beyond_float32": (Fate.REFUSED,),
            "json": COMES_THROUGH,
            "jsonb": COMES_THROUGH,
        }
        for frame in ("polars", "pandas")
    },
    **{
        f"clickhouse.httpx.{way}": {"float64_beyond_float32": (Fate.REFUSED,), "timestamp_into_int64": (Fate.REFUSED,)}
        for way in ("write_polars_native", "write_polars_row_binary")
    },
    "postgres.psycopg.write_polars_tuned": {"float64_beyond_float32": (Fate.REFUSED,)},
    "postgres.psycopg.write_pandas_tuned": {
        "float64_beyond_float32": (Fate.REFUSED,),
        "timestamp_into_int64": (Fate.REFUSED, *COMES_THROUGH),  # the server would do either
    },
}


@every(ONCE_CHANGED, name=str)
def test_what_was_changed_without_a_word_is_declared_to_come_through_or_to_be_refused(way: str) -> None:
    """tests/fidelity checks pair by pair that the declarations are true."""
    entry = registry.one(way)
    for name, may in ONCE_CHANGED[way].items():
        assert KINDS[name] in pairs(entry)
        wanted = pair.wanted(entry, KINDS[name])
        assert set(wanted.split(OR) if wanted else COMES_THROUGH) <= set(may), name


@pytest.mark.long
def test_transports_through_s3_are_as_declared_in_another_time_zone(lab_of_tests: Lab, tmp_path: Path) -> None:
    chosen = [entry for entry in registry.select("clickhouse.*") if "s3" in entry.needs]
    kinds = [KINDS[name] for name in ("timestamps_elsewhere", "timestamps_tz_elsewhere")]
    with object_store(settings_below(tmp_path), [entry.id for entry in chosen], "test", print) as (objects, bucket):
        if isinstance(objects, str):
            pytest.skip(objects)
        exam = Examination(lab_of_tests, labs.check(lab_of_tests), objects, bucket, chosen, kinds=kinds)
        found = list(trials.examine(exam))
    assert len(found) == 2 * len(chosen) == 12
    assert all(finding.as_wanted and finding.fate is not Fate.UNAVAILABLE for finding in found), found
