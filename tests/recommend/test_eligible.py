"""The transports that may race, the reason of each that may not, and the column that rules the most of them out."""

import ast
import datetime as dt
import re
import tomllib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest
from packaging.requirements import Requirement

from harness import registry
from harness.datasets.user_data import data
from harness.model import Fate, LabError, Operation
from harness.recommend import eligible, script
from harness.recommend.eligible import Asked
from harness.recommend.none_left import by_declaration, by_failure, why_none
from harness.recommend.script import Source
from harness.report.recommendation import Figure
from harness.systems import SYSTEMS

PLAIN = data.from_frame(pl.DataFrame({"id": [1, 2, 3], "word": ["a", "b", "c"]}))
WITH_NULLS = data.from_frame(pl.DataFrame({"id": [1, 2, 3], "word": ["a", None, "c"]}))


def wish(system: str, operation: Operation, frame: str, **more: Any) -> Asked:
    return Asked(**{"data": PLAIN, "system": system, "operation": operation, "frame": frame, **more})


WRITE = wish("clickhouse", Operation.WRITE, "pandas")


def reasons(asked: Asked, user_data: data.UserData = PLAIN) -> dict[str, str]:
    return {one.transport.id: one.reason for one in eligible.divided(replace(asked, data=user_data))[1]}


def test_every_transport_of_the_database_direction_and_frame_is_eligible_or_left_out_and_none_is_both() -> None:
    stay, left_out = eligible.divided(
        wish("clickhouse", Operation.WRITE, "pandas", without=("httpx",), style="sync", data=WITH_NULLS)
    )
    names = [entry.id for entry in stay] + [one.transport.id for one in left_out]
    assert sorted(names) == sorted(entry.id for entry in eligible.all_of(WRITE))
    assert len(set(names)) == len(names)
    assert stay
    assert {(e.system, e.operation, e.frame) for e in stay} == {("clickhouse", Operation.WRITE, "pandas")}
    assert {entry.style for entry in stay} == {"sync"}


def test_a_transport_that_declares_to_lose_a_kind_that_is_in_the_data_is_left_out_with_that_kind() -> None:
    losers = {entry.id for entry in eligible.all_of(WRITE) if "nulls" in entry.lossy}
    assert losers
    out = {one.transport.id: one for one in eligible.divided(replace(WRITE, data=WITH_NULLS))[1]}
    assert losers <= out.keys()
    assert {out[name].kind for name in losers} == {"nulls"}
    assert all('(column "word")' in out[name].reason for name in losers)
    assert not losers & reasons(WRITE).keys()


def test_a_client_that_moves_timestamps_by_its_zone_is_no_contender_for_such_data_wherever_the_race_is_run() -> None:
    asked = wish("clickhouse", Operation.WRITE, "polars")
    movers = {entry.id for entry in eligible.all_of(asked) if entry.lossy.get("timestamps_elsewhere") == Fate.CHANGED}
    assert "clickhouse.clickhouse_connect.write_polars_columns" in movers
    at = pl.Series([dt.datetime(2024, 1, 15, 12), dt.datetime(2024, 7, 15, 12)])
    naive = data.from_frame(pl.DataFrame({"at": at}))
    in_lists = data.from_frame(pl.DataFrame({"at": at.implode().extend(at.implode())}))
    assert movers <= reasons(asked, naive).keys()
    assert movers <= reasons(asked, in_lists).keys()
    assert {reasons(asked, naive)[name].partition(":")[0] for name in movers} == {"changed"}
    assert not movers & reasons(asked).keys()


@pytest.mark.parametrize("name", ["clickhouse_connect", "pyarrow"])
def test_without_is_a_client_or_a_module_and_the_reason_says_which(name: str) -> None:
    asked = wish("clickhouse", Operation.WRITE, "pandas", without=(name,))
    concerned = {entry.id for entry in eligible.all_of(asked) if name in {entry.client, *entry.modules}}
    assert concerned
    assert {of for of, reason in reasons(asked).items() if reason == f"without {name}"} == concerned
    assert not {entry.id for entry in eligible.divided(asked)[0]} & concerned


def test_a_style_leaves_out_the_other_one_and_what_is_unwanted_comes_before_it() -> None:
    found = reasons(wish("clickhouse", Operation.WRITE, "pandas", without=("httpx",), style="async"))
    assert set(found.values()) == {"without httpx", "its style is sync"}
    of_httpx = {entry.id for entry in eligible.all_of(WRITE) if entry.client == "httpx"}
    assert {found[name] for name in of_httpx} == {"without httpx"}


EVERYBODY = tuple({entry.client for entry in eligible.all_of(WRITE)})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (replace(WRITE, without=EVERYBODY), r"none of \d+ transports is left: without .*; ask for less"),
        (
            wish("postgres", Operation.WRITE, "polars", without=("psycop",)),
            'no client or module for --without "psycop". Did you mean "psycopg"\\? Choose from: adbc, .*, sqlalchemy',
        ),
        (
            wish("postgres", Operation.WRITE, "polars", style="threads"),
            r'--style "threads": choose one of .*: async, sync',
        ),
    ],
)
def test_what_no_transport_has_or_leaves_none_is_refused(asked: Asked, said: str) -> None:
    with pytest.raises(LabError, match=said):
        eligible.divided(asked)


def test_where_a_program_is_wanted_a_transport_that_needs_more_than_addresses_is_left_out_and_it_is_said() -> None:
    asked = wish("postgres", Operation.READ, "polars")
    shared = {entry.id for entry in eligible.all_of(asked) if {"shared_io", "s3"} & {*entry.needs}}
    assert shared
    assert shared <= {entry.id for entry in eligible.divided(asked)[0]}
    stay, left_out = eligible.divided(replace(asked, program=True))
    assert {
        one.transport.id for one in left_out if "--script has no program for it: it needs a " in one.reason
    } == shared
    assert "postgres.pg_parquet.read_polars_parquet_stream" in {entry.id for entry in stay}  # needs its server alone


@pytest.mark.long
@pytest.mark.parametrize(
    "asked",
    [
        wish(system, operation, "polars", program=True)
        for system, room in SYSTEMS.items()
        if not room.lacks("script")
        for operation in (Operation.WRITE, Operation.READ)
    ],
)
def test_every_transport_that_may_win_then_has_a_program(asked: Asked) -> None:
    for entry in eligible.divided(asked)[0]:
        won = cast(Figure, SimpleNamespace(transport=entry.id, seconds=0.25, runs=7, rows=3))
        program = script.program(won, PLAIN, Source(query="SELECT 1"), "a_table")
        ast.parse(program)
        header = re.match(r"# /// script\n((?:# .*\n)+)# ///\n", program)  # https://peps.python.org/pep-0723
        needed = tomllib.loads(re.sub(r"^# ", "", header[1], flags=re.MULTILINE))
        assert needed["requires-python"] == ">=3.11"
        assert all(Requirement(one) for one in needed["dependencies"])


def test_bounds_are_of_the_same_database_and_direction_and_need_nothing_shared() -> None:
    found = eligible.bounds_of(WRITE)
    assert found
    assert {(entry.system, entry.operation, entry.origin) for entry in found} == {
        ("clickhouse", Operation.WRITE, "limit")
    }


TYPES = {"id": "int64", "waited": "duration", "opens": "time", "parts": 'nested({"x": "int32"})'}


@pytest.mark.parametrize(
    ("reason", "columns"),
    [
        ('unsupported: time (column "opens"): TypeError', {"opens"}),
        ('unsupported: duration (column "waited" and 2 more): TypeError', {"waited"}),
        ('unsupported: duration (column "waited") or time (column "opens"): TypeError', set()),
        ("mismatch: id: 3 of 100 values differ (and 2 more columns)", {"id"}),
        ("converted: id: Int32", set()),
        ("timeout: ended after the time limit of 10 s", set()),
    ],
)
def test_a_failure_is_about_the_column_that_it_names_alone(reason: str, columns: set[str]) -> None:
    assert by_failure(reason, TYPES) == columns


TOO_BIG = "row is too big: size 16224, maximum size 8160"
NOBODY = "keeps every value of these data"


@pytest.mark.parametrize(
    ("blamed", "reasons", "said"),
    [
        (
            {"a": {"waited", "opens"}, "b": {"opens"}, "c": {"opens", "parts"}, "d": {"parts"}, "e": set()},
            ["of the first"],
            f'none of 5 transports {NOBODY}: column "opens" (time) alone rules out 3, '
            'column "parts" (nested) alone rules out 2; leave it out or cast it',
        ),
        (  # no column is known
            {"a": set(), "b": set()},
            ["error: of the first", "error: of the second"],
            f"none of 2 transports {NOBODY}, such as: error: of the first",
        ),
        (  # most share one cause, whatever clients call it
            {"a": set(), "b": set(), "c": set(), "d": {"id"}},
            [
                *(f"error: {name}: {TOO_BIG}" for name in ("psycopg.errors.ProgramLimitExceeded", "asyncpg.Error")),
                "error: TypeError",
                "mismatch: id: 3 of 100 values differ",
            ],
            f'none of 4 transports {NOBODY}: 2 say: {TOO_BIG}; column "id" (int64) alone rules out 1; '
            "leave it out or cast it",
        ),
        (  # a cause of the fewer is not named
            {name: set() for name in "abcd"},
            ["error: A", "error: A", "error: B", "error: C"],
            f"none of 4 transports {NOBODY}, such as: error: A",
        ),
        (  # the message asks for more time if time was the cause
            {name: set() for name in "abc"},
            ["timeout: ended after the time limit of 10 s"] * 3,
            f"none of 3 transports {NOBODY}: 3 say: timeout: ended after the time limit of 10 s; give it more",
        ),
    ],
)
def test_where_no_transport_is_left_the_columns_or_the_cause_that_rule_the_most_out_are_named(
    blamed: dict[str, set[str]], reasons: list[str], said: str
) -> None:
    assert why_none(blamed, TYPES, reasons, "; give it more") == said


def test_all_columns_with_values_that_a_transport_declares_to_lose_rule_it_out() -> None:
    own = data.from_frame(pl.DataFrame({"a": ["\t", "x"], "b": [None, 1], "c": ["\t", None]}))
    entry = replace(registry.one("postgres.psycopg.write_polars_copy_text"), lossy={"tab": Fate.CHANGED})
    assert by_declaration(entry, own) == {"a", "c"}
    assert by_declaration(replace(entry, lossy={"nulls": Fate.REFUSED, "tab": Fate.CHANGED}), own) == {"a", "b", "c"}
