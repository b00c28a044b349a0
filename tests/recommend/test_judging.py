"""What a race has shown becomes a recommendation: fastest, from PyPI, least code, built in, ties, and who is out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness import registry
from harness.datasets.user_data import data
from harness.model import LabError, Operation, Status
from harness.recommend import judging
from harness.recommend.eligible import Asked, LeftOut
from harness.recommend.race import Race, Turn
from harness.recommend.racing import Racing, Track
from harness.report.recommendation import SHORT_WITHIN, Figure, Recommendation
from harness.results.row import Row
from tests.report.cases import row

TUNED, TEXT = "postgres.psycopg.write_polars_tuned", "postgres.psycopg.write_polars_copy_text"
PARALLEL = "postgres.psycopg.write_polars_copy_csv_parallel"
USUAL = "postgres.sqlalchemy.write_polars_write_database"
OWN = data.from_frame(pl.DataFrame({"id": range(1_000)}))


def racing(names: list[str], max_memory: int | None = None, usual: tuple[str, ...] = ()) -> Racing:
    """A race of these transports, of which nothing has run yet."""
    asked = Asked(
        data=OWN,
        system="postgres",
        operation=Operation.WRITE,
        frame="polars",
        budget=60.0,
        max_memory=max_memory,
        usual=usual,
    )
    entries = {name: registry.one(name) for name in names}
    track = Track("an-id", "embedded", Path(), lambda runs, on_row: None)
    race = Race(names, OWN.rows, 1, frozenset(usual))
    return Racing(asked, race, entries, [], [], track, begun=True)


def ran(under_way: Racing, name: str, *seconds: float, peak: int = 10_000_000, **more: Any) -> None:
    """Take in ok runs of a transport on all rows."""
    for number, took in enumerate(seconds, start=1):
        one = row(name, seconds=took, peak_rss_bytes=peak, pass_number=number, **more)
        under_way._take_in(Turn(name, OWN.rows, number), one)


def told(**seconds: float) -> Recommendation:
    under_way = racing([{"tuned": TUNED, "text": TEXT, "parallel": PARALLEL}[name] for name in seconds])
    for name, took in seconds.items():
        ran(under_way, {"tuned": TUNED, "text": TEXT, "parallel": PARALLEL}[name], *[took] * 7)
    return judging.recommendation(under_way, 12.34)


def test_the_fastest_is_who_has_the_lowest_upper_end_and_factors_are_of_it() -> None:
    found = told(tuned=1.0, text=3.0)
    assert (found.fastest.transport, found.fastest.runs, found.fastest.factor) == (TUNED, 7, 1.0)
    assert found.fastest.factor_interval is None
    assert (found.rows, found.seconds, found.ties) == (1_000, 12.3, ())


def test_who_is_not_shown_to_be_slower_is_a_tie() -> None:
    assert told(tuned=1.0, text=1.01).ties == (TEXT,)
    assert told(tuned=1.0, text=3.0).ties == ()


PGPQ, INGEST = "postgres.pgpq.write_polars_copy_binary", "postgres.adbc.write_polars_ingest"
BUILT_IN = "postgres.adbc.write_polars_write_database"


def recommended(**seconds: float | list[float]) -> Recommendation:
    """What comes of a race of transports named by the constants of this file, seven runs each or as listed."""
    names = {name: globals()[name] for name in seconds}
    under_way = racing(list(names.values()))
    for name, took in seconds.items():
        ran(under_way, names[name], *(took if isinstance(took, list) else [took] * 7))
    return judging.recommendation(under_way, 12.34)


def test_seconds_are_the_median_and_the_factor_is_of_medians_as_in_every_report() -> None:
    found = recommended(TUNED=[1.0, 1.1, 1.3], TEXT=[2.4, 2.2, 2.2])
    assert (found.fastest.seconds, found.fastest.range) == (1.1, (1.0, 1.3))
    assert found.least_code.seconds == 2.2
    assert found.least_code.factor == pytest.approx(2.0)
    assert found.fastest.rows_per_s == pytest.approx(1_000 / 1.1)


def test_the_peak_is_the_largest_of_all_runs_as_in_every_report() -> None:
    under_way = racing([TUNED])
    ran(under_way, TUNED, 1.0, peak=10)
    ran(under_way, TUNED, *[1.0] * 3, peak=30)
    under_way._take_in(Turn(TUNED, OWN.rows, 4), row(TUNED, seconds=1.0, peak_rss_bytes=20, pass_number=4))
    assert judging.recommendation(under_way, 1.0).fastest.peak_rss_bytes == 30


def test_the_fastest_from_pypi_is_another_one_where_the_fastest_takes_what_pypi_has_not() -> None:
    found = recommended(TUNED=1.0, TEXT=3.0, PGPQ=2.0)
    assert (found.fastest.transport, found.from_pypi and found.from_pypi.transport) == (TUNED, PGPQ)
    assert found.fastest.beyond == ("arrow-wire (not on PyPI: make wheel)",)
    assert found.taken.installs == ("pgpq", "psycopg[binary]", "pyarrow")
    assert recommended(TUNED=1.0).from_pypi is None
    assert recommended(TUNED=2.0, TEXT=1.0).from_pypi == recommended(TUNED=2.0, TEXT=1.0).fastest


def test_the_least_code_is_from_pypi_where_one_such_takes_at_most_twice_the_time_however_short_the_fastest_is() -> None:
    assert SHORT_WITHIN == 2.0
    assert recommended(TUNED=1.0, PGPQ=1.99).least_code.transport == PGPQ
    assert recommended(TUNED=1.0, PGPQ=2.01).least_code.transport == TUNED
    assert recommended(TUNED=1.0, PGPQ=1.5, TEXT=1.9).least_code.transport == TEXT


def figure(seconds: float = 1.0, beyond: int = 0, packages: int = 1, lines: int = 50) -> Figure:
    base, names = told(tuned=1.0).fastest, tuple(f"package{number}" for number in range(packages))
    return replace(base, seconds=seconds, beyond=("something",) * beyond, installs=names, lines=lines)


@pytest.mark.parametrize(
    ("simpler", "other"),
    [
        ({"packages": 9, "lines": 900, "seconds": 9}, {"beyond": 1}),
        ({"lines": 49, "packages": 9, "seconds": 9}, {"lines": 50}),
        ({"packages": 1, "seconds": 9}, {"packages": 2}),
        ({"seconds": 0.9}, {"seconds": 1.0}),
    ],
)
def test_effort_is_what_pip_cannot_install_then_lines_then_packages_then_seconds(
    simpler: dict[str, Any], other: dict[str, Any]
) -> None:
    less = figure(**simpler)
    assert min(figure(**other), less, key=judging._effort) is less


def test_what_is_built_in_is_a_call_of_the_library_of_the_frame_on_a_connection() -> None:
    found = recommended(TUNED=1.0, INGEST=2.0, USUAL=9.0, BUILT_IN=3.0)
    assert found.built_in is not None
    assert found.built_in.transport == BUILT_IN
    assert recommended(TUNED=1.0, INGEST=2.0).built_in is None
    known = {entry.id for entry in registry.select("*") if entry.moves_a_frame and judging.built_in(entry)}
    assert {"postgres.sqlalchemy.write_pandas_to_sql", "postgres.connectorx.read_polars_read_database_uri"} <= known
    assert "postgres.connectorx.read_pandas_binary" not in known  # connectorx.read_sql, a call of its own


def test_the_default_is_the_first_that_the_suite_names_for_the_direction_also_where_it_cannot() -> None:
    under_way = racing([TUNED, TEXT], usual=("postgres.sqlalchemy.read_polars_read_database", USUAL, TEXT))
    under_way.left_out.append(LeftOut(registry.one(USUAL), "refused: decimals", "decimals"))
    ran(under_way, TUNED, *[1.0] * 7)
    ran(under_way, TEXT, *[2.0] * 7)
    found = judging.recommendation(under_way, 1.0)
    assert (found.default, found.of_default, [one.transport for one in found.usual]) == (USUAL, None, [TEXT])


def test_a_race_that_ended_in_its_first_pass_tells_what_it_knows_and_of_how_many() -> None:
    under_way = racing([TUNED, TEXT, PARALLEL])
    under_way.begun, under_way.ended = False, "the budget of 40 s was used up"
    ran(under_way, TEXT, 2.0)
    found = judging.recommendation(under_way, 1.0)
    assert (found.fastest.transport, found.fastest.runs) == (TEXT, 1)
    assert found.ended == "the budget of 40 s was used up after 1 of 3 transports"


def test_a_usual_one_is_set_beside_who_is_fastest_by_all_runs_and_not_by_one() -> None:
    under_way = racing([TUNED, TEXT, USUAL], usual=(USUAL,))
    ran(under_way, TUNED, *[1.0] * 7)
    ran(under_way, TEXT, 0.5, *[3.0] * 6)
    ran(under_way, USUAL, *[8.0] * 7)
    (usual,) = judging.recommendation(under_way, 1.0).usual
    assert usual.factor == pytest.approx(8.0)


def test_a_usual_one_is_set_beside_the_fastest_at_the_rows_it_had() -> None:
    under_way = racing([TUNED, USUAL], usual=(USUAL,))
    ran(under_way, TUNED, 1.0, 1.0)
    ran(under_way, USUAL, 9.0, 9.0)
    (usual,) = judging.recommendation(under_way, 1.0).usual
    assert (usual.transport, round(usual.factor), usual.differs) == (USUAL, 9, True)


def test_a_race_that_ended_in_its_first_pass_on_all_rows_answers_from_the_slice_that_all_have_run() -> None:
    under_way = racing([TUNED, TEXT, PGPQ])
    under_way.race.rows = 100_000
    under_way.ended = "the budget of 40 s was used up"
    for name, took in ((TUNED, 1.0), (TEXT, 3.0), (PGPQ, 2.0)):
        under_way._take_in(Turn(name, 10_000, 1), row(name, seconds=took, parameters="rows=10000"))
    under_way._take_in(Turn(TEXT, 100_000, 1), row(TEXT, seconds=30.0, parameters="rows=100000"))
    found = judging.recommendation(under_way, 1.0)
    assert (found.rows, found.fastest.transport) == (10_000, TUNED)
    assert found.ended == "the budget of 40 s was used up before all had run on all 100,000 rows"


def test_who_takes_more_memory_than_wanted_is_out_and_the_reason_says_how_much() -> None:
    under_way = racing([TUNED, TEXT], max_memory=50_000_000)
    ran(under_way, TUNED, 1.0, peak=50_000_001)
    ran(under_way, TEXT, 9.0, peak=50_000_000)
    found = judging.recommendation(under_way, 1.0)
    assert found.fastest.transport == TEXT
    assert [(one.transport, one.reason) for one in found.ruled_out] == [
        (TUNED, "took 50 MB for 1,000 rows, more than 50 MB")
    ]
    assert not racing([TUNED])._wrong(row(TUNED, seconds=1.0, peak_rss_bytes=10**12))


def test_who_gives_other_types_or_fails_is_out() -> None:
    under_way = racing([TUNED, TEXT, PARALLEL])
    ran(under_way, TUNED, 1.0, fidelity="converted: id")
    ran(under_way, TEXT, 2.0)
    under_way._take_in(Turn(PARALLEL, OWN.rows, 1), row(PARALLEL, Status.MISMATCH))
    found = judging.recommendation(under_way, 1.0)
    assert found.fastest.transport == TEXT
    assert {one.transport: one.reason for one in found.ruled_out} == {
        TUNED: "converted: id",
        PARALLEL: "mismatch: it was mismatch",
    }


def test_who_was_left_out_before_keeps_the_kind_of_values_and_who_is_merely_slow_is_not_ruled_out() -> None:
    under_way = racing([TUNED, TEXT])
    under_way.left_out.append(LeftOut(registry.one(USUAL), "changed: nulls", "nulls"))
    ran(under_way, TUNED, 1.0)
    ran(under_way, TEXT, 9.0)
    under_way.race.out[TEXT] = "9.0 times as slow as the fastest of 1,000 rows"
    (one,) = judging.recommendation(under_way, 1.0).ruled_out
    assert (one.transport, one.reason, one.kind) == (USUAL, "changed: nulls", "nulls")


@pytest.mark.parametrize(
    ("begun", "said"),
    [
        (True, "none of 1 transports keeps every value of these data, such as: error: it was error"),
        (False, "expected time for a run of each of 1 transports, but the budget was used up after 1; give it more"),
    ],
)
def test_where_nobody_came_through_it_says_why(begun: bool, said: str) -> None:
    under_way = racing([TUNED])
    under_way.begun, under_way.ended = begun, "the budget was used up"
    failed: Row = row(TUNED, Status.ERROR)
    under_way._take_in(Turn(TUNED, OWN.rows, 1), failed)
    with pytest.raises(LabError, match=said):
        judging.recommendation(under_way, 1.0)


@pytest.mark.parametrize(
    ("errors", "helps"),
    [
        (["E: row is too big: size 9000, maximum size 8160", "F: row is too big: size 9000, maximum size 8160"], False),
        (["E: row is too big: size 9000, maximum size 8160", "TypeError"], True),
        (["TypeError", "TypeError"], True),
    ],
)
def test_more_time_is_asked_for_only_where_it_may_help(errors: list[str], helps: bool) -> None:
    under_way = racing([TUNED, TEXT, PARALLEL])
    under_way.begun, under_way.ended = False, "the budget of 60 s was used up"
    for name, error in zip((TUNED, TEXT), errors, strict=True):
        under_way._take_in(Turn(name, OWN.rows, 1), row(name, status=Status.ERROR, error=error))
    with pytest.raises(LabError) as raised:
        judging.recommendation(under_way, 1.0)
    assert ("give it more (--budget)" in str(raised.value)) == helps
    assert (
        "none of the 2 transports that ran keeps every value of these data: row is too big" in str(raised.value)
    ) != helps
