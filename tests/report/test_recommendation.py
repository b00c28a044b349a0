"""The screen of a race: what stands on it, what is cut off where there is too much, and that it is one screen."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from harness.datasets.hostile.kinds import KINDS
from harness.report import closing, recommendation
from harness.report.recommendation import Figure, Recommendation, RuledOut

FASTEST = Figure(
    transport="postgres.psycopg.write_polars_tuned",
    how="Send columns as one binary COPY.",
    rows=1_000,
    runs=7,
    seconds=0.1,
    interval=(0.09, 0.11),
    rows_per_s=10_000.0,
    peak_rss_bytes=50_000_000,
    factor=1.0,
    factor_interval=None,
    packages=("psycopg",),
    lines=90,
    connections=False,
)
SLOWER = replace(
    FASTEST,
    transport="postgres.sqlalchemy.write_polars_write_database",
    seconds=0.9,
    interval=(0.8, 1.0),
    factor=9.0,
    factor_interval=(8.0, 10.0),
)
FOUND = Recommendation(
    system="postgres",
    operation="write",
    frame="polars",
    lab="embedded",
    run_id="20260101T000000Z-host",
    rows=1_000,
    columns={"id": "int64", "note": "text"},
    values={},
    fastest=FASTEST,
    ties=(),
    simplest=FASTEST,
    leanest=FASTEST,
    usual=(SLOWER,),
    bound=None,
    ruled_out=(),
    ended="",
    seconds=60.0,
)


def said(**more: object) -> list[str]:
    return recommendation.sentences(replace(FOUND, **more))  # type: ignore[arg-type]


def rows(found: Recommendation) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in recommendation.table(found).rows]


def test_one_transport_in_several_roles_has_them_in_one_row() -> None:
    assert rows(FOUND) == [
        ("fastest exact, simplest within 1.3 x, leanest", FASTEST.transport),
        ("usual", SLOWER.transport),
    ]
    assert rows(replace(FOUND, usual=(replace(SLOWER, rows=100),)))[1][0] == "usual of 100 rows"
    (_, usual) = recommendation.table(FOUND).rows
    assert usual[4:6] == ("×9.0", "8.0-10")


def test_who_is_not_shown_to_be_slower_is_named_where_there_is_one() -> None:
    assert said() == [f"{FASTEST.transport}: {FASTEST.how}"]
    assert said(ties=("a.b.c", "a.b.d"))[1:] == ["no difference shown between it and a.b.c, a.b.d"]
    assert said(ties=tuple("abcdefg"))[1:] == [
        "no difference shown between it and a, b, c, d, e and 2 more: see recommendation.json"
    ]


def test_the_values_that_rule_transports_out_are_named_with_their_columns_those_that_rule_out_most_first() -> None:
    nulls = [RuledOut(f"n{place}", 'changed: null (column "a")', "nulls") for place in range(2)]
    tabs = [RuledOut("t", 'refused: tabs (column "b")', "tab")]
    found = said(values={"tab": ("b",), "nulls": ("a", "b", "c", "d")}, ruled_out=(*tabs, *nulls))
    assert found[1:] == [
        "2 transports are ruled out by nulls (a, b, c): changed: null",
        "1 transport is ruled out by tab (b): refused: tabs",
    ]


def test_a_usual_transport_that_is_ruled_out_is_named_with_its_reason():
    out = [
        RuledOut("to_sql", "its style is sync", usual=True),
        RuledOut("write_database", "refused: digits are lost", "decimals", usual=True),
        RuledOut("x", "refused: digits are lost", "decimals"),
    ]
    assert said(ruled_out=tuple(out))[1:] == [
        "to_sql, which is usual, is ruled out: its style is sync",
        "write_database, which is usual, is ruled out by decimals: refused: digits are lost",
        "1 transport is ruled out by decimals: refused: digits are lost",
    ]


def test_other_reasons_are_told_by_how_many_they_concern() -> None:
    out = [RuledOut("a", "without numba"), RuledOut("b", "its style is sync"), RuledOut("c", "its style is sync")]
    assert said(ruled_out=tuple(out))[1:] == [
        "2 transports are out, such as b: its style is sync",
        "1 transport is out, such as a: without numba",
    ]
    more = [RuledOut(f"m{place}", f"took {place} MB, more than 1 MB") for place in range(4)]
    assert said(ruled_out=(*out, *more))[-1] == "3 transports are out for 3 other reasons: see recommendation.json"


def test_a_race_that_was_ended_and_values_that_are_converted_are_said() -> None:
    converted = replace(FASTEST, values="converted: id")
    assert said(ended="the budget of 9 s was used up", fastest=converted)[1:] == [
        "no transport gives the canonical types; here converted: id: what is left to do is not timed",
        "the budget of 9 s was used up before all finalists had their runs: figures are of 7",
    ]
    assert rows(replace(FOUND, fastest=converted, simplest=converted, leanest=converted))[0][0].startswith(
        "fastest, converted"
    )


@pytest.mark.parametrize("width", [80, 120, 200])
def test_it_is_one_screen_whatever_there_is_to_say(width: int) -> None:
    name = "postgres.sqlalchemy_with_a_long_name.write_polars_write_database_in_many_words"
    figures = [
        replace(SLOWER, transport=f"{name}_{place}", packages=("pyarrow", "psycopg", "numba", "sqlalchemy"))
        for place in range(6)
    ]
    columns = tuple(f"{'long name ' * 6}{place}" for place in range(3))
    out = [RuledOut(f"{name}_{kind}", f"changed: {KINDS[kind].meaning}", kind) for kind in KINDS]
    found = replace(
        FOUND,
        simplest=figures[0],
        leanest=figures[1],
        usual=tuple(figures[2:5]),
        bound=figures[5],
        ties=tuple(figure.transport for figure in figures) * 5,
        values=dict.fromkeys(KINDS, columns),
        ruled_out=(*out, *(RuledOut(name, f"without {module}") for module in columns)),
        ended="the budget of 180 s was used up",
    )
    ending = closing.recommended(found, width)
    console = Console(width=width, file=io.StringIO())
    console.print(*ending.tables)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert len(printed.splitlines()) + closing.lines(ending.sentences, width) <= 40
    assert FASTEST.how in ending.sentences[0]
    assert "recommendation.json" in ending.sentences[-1]
