"""Pairs in batches have the same outcome as alone, and pairs that lose something are tried alone."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from harness import registry
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.hostile.kind import KEY, PLAIN, Kind
from harness.fidelity import tables, trials
from harness.fidelity.batch import fits, gathering
from harness.fidelity.examination import Examination
from harness.fidelity.tables import held
from harness.lab import labs
from harness.lab.labs import Lab
from harness.model import Fate
from harness.systems import SYSTEMS
from tests.made_up import MadeUp


def fitting(system: str) -> tuple[Kind, ...]:
    return tuple(kind for kind in KINDS.values() if (of := held(kind, system)) and fits(of, read=False))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_column_is_in_a_gathering_as_in_its_own_table_and_goes_on_with_its_last_value(system: str) -> None:
    together = gathering(fitting(system), system)
    whole = tables.one(together.kind, system)
    assert len(together.columns) > 40
    assert set(whole.rows.columns) == {KEY, *PLAIN} | {name for of in together.columns.values() for name in of.values()}
    for kind, names in together.columns.items():
        own = tables.one(kind, system)
        assert names.keys() == own.about
        for name, there in names.items():
            for mine, theirs in ((own.rows[name], whole.rows[there]), (own.stored[name], whole.stored[there])):
                longer = pl.concat([mine, pl.concat([mine.tail(1)] * whole.rows.height)]).head(whole.rows.height)
                assert theirs.rename(name).equals(longer, check_dtypes=True, null_equal=True), there
            assert own.types[name] == whole.types[there]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("one_row", "about no column"),
        ("zero_rows", "about the whole table"),
        ("nulls", "about a whole row"),
        ("first_10000_null", "about whole rows"),
        ("late_fraction", "tall"),
        ("long_text", "large"),
        ("name_space", "about names"),
        ("generated", "the server fills a column"),
        ("column_default", "the server fills a column"),
        ("uint32", "Postgres has another type for it"),
        ("nul_character", "Postgres can hold none"),
        ("int64_beyond_int32", "a refusal is right"),
        ("boolean_into_int32", "a refusal is as right"),
    ],
)
def test_what_is_about_more_than_the_values_of_its_columns_fits_in_no_gathering(name: str, why: str) -> None:
    assert not fits(tables.one(KINDS[name], "postgres"), read=False), why


def test_what_the_reference_client_fills_by_sql_stays_apart_in_reads_alone() -> None:
    of = tables.one(KINDS["json"], "postgres")
    assert (fits(of, read=False), fits(of, read=True)) == (True, False)


WRITERS = """
@contextmanager
def connect(uri):
    import psycopg
    log("connect")
    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection

def insert(connection, frame, table, change=lambda name, value: value):
    from psycopg import sql
    rows = [[change(name, value) for name, value in row.items()] for row in frame.to_dicts()]
    names = sql.SQL(", ").join(map(sql.Identifier, frame.columns))
    text = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
    with connection.cursor().copy(text) as copy:
        for row in rows:
            copy.write_row(row)

@transport("", "", frame="polars")
def write_all(connection, frame, table):
    insert(connection, frame, table)

@transport("", "", frame="polars")
def write_some(connection, frame, table):
    for name in frame.columns:
        if "\\n" in frame[name].to_list():
            raise ValueError("a newline")
    if table.startswith('"a'):
        connection.execute("DROP TABLE hostile_victim")
    def change(name, value):
        return value.replace("\\t", " ") if isinstance(value, str) else value
    insert(connection, frame, table, change)

@transport("", "", frame="polars")
def write_few_columns(connection, frame, table):
    wide = len(frame.columns) > 10
    insert(connection, frame, table, lambda name, value: 5 if wide and name == "int_value" else value)

@transport("", "", frame="polars")
def write_or_die(connection, frame, table):
    if len(frame.columns) > 10:
        os.kill(os.getpid(), 9)
    insert(connection, frame, table)
"""
COMING = ("zero_rows", "null_text", "tab", "newline", "comma", "nan", "dates", "int32_limits", "timestamps", "decimals")
COMING += ("arrays", "float32", "booleans", "name_space", "name_quoted")
ALONE = ("one_row", "text_too_long")


@pytest.fixture
def made(tmp_path: Path, lab_of_tests: Lab, monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    """Transports into Postgres that write the given rows, more rows, or fewer."""
    made = MadeUp(tmp_path / "made", up=WRITERS)
    made.join(monkeypatch)
    return made


def examination(made: MadeUp, lab: Lab, names: tuple[str, ...], *kinds: str) -> Examination:
    ways = [replace(registry.one(f"made.up.{name}"), system="postgres", endpoint="postgres") for name in names]
    chosen = [KINDS[kind] for kind in kinds]
    return Examination(lab, labs.check(lab), "none", "", ways, kinds=chosen, command=made.command, in_batches=True)


@pytest.mark.long
def test_what_comes_through_takes_two_connections_whatever_the_number_of_kinds(made: MadeUp, lab_of_tests: Lab) -> None:
    findings = trials.examine(examination(made, lab_of_tests, ("write_all",), *ALONE, *COMING))
    assert {finding.kind: finding.fate for finding in findings} == dict.fromkeys(COMING, Fate.EXACT) | {
        "one_row": Fate.EXACT,
        "text_too_long": Fate.REFUSED,
    }
    assert made.events()[0] == ["connect"] * (len(ALONE) + 2)


@pytest.mark.long
def test_what_is_next_to_them_all_vouches_for_every_kind(made: MadeUp, lab_of_tests: Lab) -> None:
    findings = trials.examine(examination(made, lab_of_tests, ("write_few_columns",), *COMING))
    assert {finding.fate for finding in findings} == {Fate.EXACT}
    again = [name for name in COMING if fits(tables.one(KINDS[name], "postgres"), read=False)]
    assert made.events()[0] == ["connect"] * (1 + 2 + len(again))


@pytest.mark.long
def test_pairs_come_to_the_same_in_batches_and_alone(made: MadeUp, lab_of_tests: Lab) -> None:
    names = ("write_some", "write_few_columns", "write_or_die")
    exam = examination(made, lab_of_tests, names, *ALONE, *COMING, "name_double_quote")
    findings = trials.examine(exam)
    assert findings == trials.examine(replace(exam, in_batches=False))
    refused = [(way, "text_too_long", Fate.REFUSED) for way in names]
    lost = [("tab", Fate.CHANGED), ("newline", Fate.REFUSED), ("name_double_quote", Fate.CHANGED)]
    assert {
        (finding.transport.id.rpartition(".")[2], finding.kind, finding.fate)
        for finding in findings
        if finding.fate is not Fate.EXACT
    } == {*refused, *(("write_some", kind, fate) for kind, fate in lost)}
