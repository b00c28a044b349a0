"""Every transport over every hostile kind loses exactly the values that it declares; a hang costs one pair only.

The failure of a transport names the kinds that deviate, in either direction.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness import registry
from harness.datasets.hostile.common_kinds import KINDS
from harness.fidelity import pair, select, tables, trials
from harness.fidelity.examination import Examination, pairs
from harness.fidelity.pair import judge
from harness.lab import labs
from harness.lab.labs import Lab
from harness.machine.variables import namespace
from harness.model import Fate, Finding, LabError, Transport
from harness.report.fidelity import deviations
from tests.fidelity import due
from tests.made_up import MadeUp

pytestmark = pytest.mark.process

# All, or in .ci/run those that are due: pairs that are left out are not collected (see tests/fidelity/due.py).
CHOSEN = os.environ.get("LAB_PAIRS", "")
DUE = None if CHOSEN in ("", "alone") else json.loads(Path(CHOSEN).read_text(encoding="utf-8"))
ENTRIES = select("*" if DUE is None else ",".join(DUE))
SHARE = due.in_shares(ENTRIES)


def kinds_of(entry: Transport) -> tuple[str, ...]:
    """The kinds that a transport is tried on."""
    return tuple(kind.name for kind in pairs(entry) if DUE is None or kind.name in DUE[entry.id])


Found = Callable[[Transport], list[Finding]]


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest, lab_of_tests: Lab) -> Found:
    """The findings on a transport, which is examined together with the requested transports of its share."""
    specs = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    asked = {spec.params["entry"].id for spec in specs if spec and "entry" in spec.params}

    @cache
    def of_share(share: int) -> list[Finding]:
        chosen = [entry for entry in ENTRIES if entry.id in asked and SHARE[entry.id] == share]
        ready = labs.check(lab_of_tests)
        exam = Examination(lab_of_tests, ready, "no S3 server in this test", "", chosen, time_limit=60.0)
        findings = []
        for names, alike in groupby(sorted(chosen, key=kinds_of), key=kinds_of):
            kinds = [KINDS[name] for name in names]
            findings += trials.examine(replace(exam, chosen=list(alike), kinds=kinds, in_batches=CHOSEN != "alone"))
        return findings

    return lambda entry: [finding for finding in of_share(SHARE[entry.id]) if finding.transport.id == entry.id]


@pytest.mark.long(always=True)  # LAB_PAIRS says which of them
@pytest.mark.timeout(3_600)  # the first waits for all transports of its share
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.id}@{SHARE[entry.id]}")
def test_every_value_comes_through_unless_the_way_declares_its_loss(found: Found, entry: Transport) -> None:
    findings = found(entry)
    assert {finding.kind for finding in findings} == set(kinds_of(entry))
    due.keep(due.folder(), entry, findings)
    if all(finding.fate is Fate.UNAVAILABLE for finding in findings):
        pytest.skip(findings[0].detail)
    wrong = deviations(findings)
    assert not wrong, "\n".join([*wrong, f"To declare what was found: lab verify {entry.id} --update"])


MADE_UP = """
@contextmanager
def connect(uri):
    yield

@transport("", "", frame="polars")
def write_badly(connection, frame, table):
    import signal
    strings = set(frame["text_value"])
    if "\\t" in strings:
        time.sleep(30)
    if "\\n" in strings:
        os.kill(os.getpid(), signal.SIGKILL)
    if "," in strings:
        raise BaseException("a panic")
    if "'" in strings:
        raise Unsupported("no quotes here")

@transport("", "", frame="polars")
def write_no_uuids(connection, frame, table):
    if "uuid_value" in frame.columns:
        raise Unsupported("no UUIDs here")
    if None in frame[frame.columns[1]]:
        raise ValueError("no nulls here")

def meet(name):
    open(os.path.join(MET, name), "w").close()
    while len(os.listdir(MET)) < 3:
        time.sleep(0.01)
"""
MEETING = """
@transport("", "", frame="polars")
def write_{0}(connection, frame, table):
    if "\\t" in set(frame["text_value"]):
        meet({0!r})
"""
FRIENDS = ("one", "two", "three")


@pytest.fixture
def made_up(tmp_path: Path, lab_of_tests: Lab, monkeypatch: pytest.MonkeyPatch) -> Examination:
    """A transport into Postgres that hangs, dies, panics, refuses, or silently writes nothing."""
    (tmp_path / "met").mkdir()
    where = f"MET = {str(tmp_path / 'met')!r}\n"
    made = MadeUp(tmp_path / "made", up=where + MADE_UP + "".join(map(MEETING.format, FRIENDS)))
    made.join(monkeypatch)
    entry = replace(registry.one("made.up.write_badly"), system="postgres", endpoint="postgres")
    return Examination(
        lab_of_tests, labs.check(lab_of_tests), "none", "", [entry], command=made.command, time_limit=8.0
    )


@pytest.mark.long
def test_a_hang_and_a_death_cost_one_pair_each_and_the_next_one_goes_on(made_up: Examination) -> None:
    names = ("zero_rows", "tab", "empty_text", "newline", "one_row", "comma", "quotes", "spaces")
    told: list[Finding] = []
    findings = trials.examine(replace(made_up, kinds=[KINDS[name] for name in names]), told.append)
    assert sorted(told, key=lambda finding: finding.kind) == sorted(findings, key=lambda finding: finding.kind)
    assert {finding.kind: finding.fate for finding in findings} == {
        "zero_rows": Fate.EXACT,
        "tab": Fate.HANGS,
        "empty_text": Fate.CHANGED,
        "newline": Fate.CRASHES,
        "one_row": Fate.CHANGED,
        "comma": Fate.REFUSED,
        "quotes": Fate.REFUSED,
        "spaces": Fate.CHANGED,
    }
    details = {finding.kind: finding.detail for finding in findings}
    assert details["tab"] == "ended after the time limit of 8 s"
    assert details["newline"] == "the worker was killed by SIGKILL"
    assert details["comma"] == "BaseException: a panic"
    assert details["quotes"] == "no quotes here"
    assert details["spaces"] == "expected 4 rows, found 0"


@pytest.mark.long
def test_what_is_declared_to_hang_is_tried_next_to_each_other(
    made_up: Examination, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "DECLARED_LIMIT", 30.0)
    friends = [registry.one(f"made.up.write_{name}") for name in FRIENDS]
    hangs = {"tab": Fate.HANGS}
    chosen = [replace(entry, system="postgres", endpoint="postgres", lossy=hangs) for entry in friends]
    findings = trials.examine(replace(made_up, chosen=chosen, kinds=[KINDS["one_row"], KINDS["tab"]]))
    assert [(finding.kind, finding.fate) for finding in findings] == [
        ("one_row", Fate.CHANGED),
        ("tab", Fate.CHANGED),
    ] * 3
    assert not any(finding.as_wanted for finding in findings)


@pytest.mark.long
def test_what_supports_no_ordinary_row_is_tried_in_tables_of_other_columns(made_up: Examination) -> None:
    entry = replace(registry.one("made.up.write_no_uuids"), system="postgres", endpoint="postgres")
    kinds = [KINDS[name] for name in ("one_row", "nulls", "null_text", "null_decimal", "name_space")]
    findings = trials.examine(replace(made_up, chosen=[entry], kinds=kinds))
    assert {finding.kind: (finding.fate, finding.detail) for finding in findings} == {
        "one_row": (Fate.UNAVAILABLE, "no UUIDs here"),
        "nulls": (Fate.UNAVAILABLE, "no UUIDs here"),
        "null_text": (Fate.REFUSED, "ValueError: no nulls here"),
        "null_decimal": (Fate.REFUSED, "ValueError: no nulls here"),
        "name_space": (Fate.CHANGED, "expected 2 rows, found 0"),
    }


@pytest.mark.long
def test_no_table_stays_in_the_database(made_up: Examination) -> None:
    import psycopg

    trials.examine(replace(made_up, kinds=[KINDS["zero_rows"], KINDS["one_row"]]))
    with psycopg.connect(made_up.lab.endpoints["postgres"]) as direct:
        left = "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename LIKE 'hostile%%'"
        assert direct.execute(left, [namespace()]).fetchone() == (0,)


ZONED = """
import datetime

FOUND_FIRST = datetime.datetime(2024, 1, 15).astimezone().tzname()  # clients remember the zone that they found first

@contextmanager
def connect(uri):
    import psycopg
    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection

def insert(connection, frame, table, made):
    for row in frame.to_dicts():
        names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [made(value) for value in row.values()])

def moved(value):
    hours = {"UTC": 0, "EST": 5}[FOUND_FIRST]
    return value + datetime.timedelta(hours=hours) if isinstance(value, datetime.datetime) else value

@transport("", "", frame="polars")
def write_by_the_zone(connection, frame, table):
    insert(connection, frame, table, moved)

@transport("", "", frame="polars")
def write_as_it_is(connection, frame, table):
    insert(connection, frame, table, lambda value: value)

@transport("", "", frame="polars")
def write_none(connection, frame, table):
    raise ValueError("no timestamps here")
"""


@pytest.mark.long
def test_a_client_that_goes_by_the_zone_of_its_machine_is_found_in_another_one(
    tmp_path: Path, lab_of_tests: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    made = MadeUp(tmp_path / "made", up=ZONED)
    made.join(monkeypatch)
    names = ("by_the_zone", "as_it_is", "none")
    chosen = [replace(registry.one(f"made.up.write_{name}"), system="postgres", endpoint="postgres") for name in names]
    chosen[-1] = replace(chosen[-1], lossy={"timestamps": Fate.REFUSED})
    kinds = [KINDS[name] for name in ("timestamps", "timestamps_elsewhere", "timestamps_tz_elsewhere")]
    exam = Examination(
        *(lab_of_tests, labs.check(lab_of_tests), "none", "", chosen),
        kinds=kinds,
        command=made.command,
        time_limit=60.0,
    )
    for in_batches in (False, True):
        findings = trials.examine(replace(exam, in_batches=in_batches))
        found = {(one.transport.id.rpartition("write_")[2], one.kind): one.fate for one in findings}
        assert found == {
            ("by_the_zone", "timestamps"): Fate.EXACT,
            ("by_the_zone", "timestamps_elsewhere"): Fate.CHANGED,
            ("by_the_zone", "timestamps_tz_elsewhere"): Fate.CHANGED,
            **{("as_it_is", kind.name): Fate.EXACT for kind in kinds},
            ("none", "timestamps"): Fate.REFUSED,  # and nothing to try elsewhere
            ("none", "timestamps_tz_elsewhere"): Fate.REFUSED,
        }


def test_a_machine_without_the_zone_says_so_and_is_not_tried_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "TZPATH", ("/nowhere",))
    with pytest.raises(LabError, match="does not have the time zone America/New_York; install tzdata"):
        trials.in_zone(("python",), "America/New_York")


CHANGING = """
@contextmanager
def connect(uri):
    import psycopg
    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection

@transport("", "", frame="polars")
def write_a_changing(connection, frame, table):
    connection.execute(f"ALTER TABLE {table} ALTER COLUMN text_value TYPE varchar(1)")

@transport("", "", frame="polars")
def write_b_again(connection, frame, table):
    assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    for row in frame.to_dicts():
        names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))

@transport("", "", frame="polars")
def write_c_nothing(connection, frame, table):
    pass
"""


@pytest.mark.long
def test_a_table_is_empty_and_as_it_was_made_whatever_an_earlier_transport_left(
    tmp_path: Path, lab_of_tests: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MadeUp(tmp_path / "made", up=CHANGING)
    made.join(monkeypatch)
    names = ("a_changing", "b_again", "c_nothing")
    chosen = [replace(registry.one(f"made.up.write_{name}"), system="postgres", endpoint="postgres") for name in names]
    kinds = [KINDS["one_row"], KINDS["spaces"]]
    exam = Examination(
        lab_of_tests, labs.check(lab_of_tests), "none", "", chosen, kinds=kinds, command=made.command, time_limit=20.0
    )
    findings = trials.examine(exam)
    assert [(finding.kind, finding.fate) for finding in findings] == [
        (kind.name, fate) for fate in (Fate.CHANGED, Fate.EXACT, Fate.CHANGED) for kind in kinds
    ], findings
    assert findings[4].detail == "expected 1 rows, found 0"


def test_a_server_that_can_hold_no_such_value_makes_a_refusal_right(made_up: Examination) -> None:
    (entry,) = made_up.chosen
    finding = pair.wanted(entry, KINDS["nul_character"])
    assert finding == Fate.REFUSED
    assert "nul_character" not in {kind.name for kind in pairs(registry.one("postgres.psycopg.read_polars_rows"))}


NULL_AS_NAN, NAN_AS_NULL = pl.col("float_value").fill_null(float("nan")), pl.col("float_value").fill_nan(None)


@pytest.mark.parametrize(
    ("kind", "change", "frame", "dtypes", "fate", "detail"),
    [
        ("nulls", NULL_AS_NAN, "pandas", {}, Fate.CONVERTED, "float_value (NaN for null)"),
        ("nulls", NULL_AS_NAN, "polars", {}, Fate.CHANGED, "float_value:"),
        ("nan", NAN_AS_NULL, "pandas", {}, Fate.CHANGED, "float_value:"),
        ("nan", NAN_AS_NULL, "polars", {}, Fate.CHANGED, "float_value:"),
        ("tab", [], "polars", {"uuid_value": "Object"}, Fate.EXACT, ""),
        ("tab", [], "polars", {"uuid_value": "Object", "text_value": "Binary"}, Fate.CONVERTED, "text_value (Binary)"),
        ("tab", pl.lit(1, pl.Int32).alias("int_value"), "polars", {}, Fate.CHANGED, "int_value:"),
    ],
)
def test_what_came_is_judged_by_all_values_and_by_the_dtypes_of_the_columns_that_a_kind_is_about(
    kind: str, change: Any, frame: str, dtypes: dict[str, str], fate: Fate, detail: str
) -> None:
    of = tables.one(KINDS[kind], "postgres")
    found, said = judge(of.about, of.rows, of.rows.with_columns(change), frame, dtypes)
    assert (found, said[: len(detail) or None]) == (fate, detail)
