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
from harness.recommend.eligible import LeftOut, Wish
from harness.recommend.race import Race, Turn
from harness.recommend.racing import Asked, Racing, Track
from harness.report.recommendation import SHORT_WITHIN, Figure, Recommendation
from tests.report.cases import row

TUNED, TEXT = "postgres.psycopg.write_polars_tuned", "postgres.psycopg.write_polars_copy_text"
PARALLEL = "postgres.psycopg.write_polars_copy_csv_parallel"
USUAL = "postgres.sqlalchemy.write_polars_write_database"
OWN = data.from_frame(pl.DataFrame({"id": range(1_000)}))


def racing(names: list[str], max_memory: int | None = None, usual: tuple[str, ...] = ()) -> Racing:
    """A race of these transports, of which nothing has run yet."""
    asked = Asked(Wish("postgres", Operation.WRITE, "polars"), OWN, "embedded", 60.0, max_memory, usual)
    entries = {name: registry.one(name) for name in names}
    track = Track("an-id", "embedded", Path(), lambda runs, on_row: None)
    race = Race(names, OWN.rows, 1, frozenset(usual))
    return Racing(asked, race, entries, [], [], track, begun=True)


def ran(under_way: Racing, name: str, *seconds: float, peak: int = 10_000_000, **more: Any) -> None:
    """Take in ok runs of a transport on all rows."""
    for number, took in enumerate(seconds, start=1):
        one = row(name, seconds=took, peak_rss_bytes=peak, pass_number=number, **more)
        under_way._take_in(Turn(name, OWN.rows, number), one)


PGPQ, INGEST = "postgres.pgpq.write_polars_copy_binary", "postgres.adbc.write_polars_ingest"
BUILT_IN = "postgres.adbc.write_polars_write_database"


def recommended(**seconds: float | list[float]) -> Recommendation:
    """What comes of a race of transports named by the constants of this file, seven runs each or as listed."""
    names = {name: globals()[name] for name in seconds}
    under_way = racing(list(names.values()))
    for name, took in seconds.items():
        ran(under_way, names[name], *(took if isinstance(took, list) else [took] * 7))
    return judging.recommendation(under_way, 12.34)


def test_the_fastest_is_who_has_the_lowest_upper_end_and_factors_are_of_it() -> None:
    found = recommended(TUNED=1.0, TEXT=3.0)
    assert (found.fastest.transport, found.fastest.runs, found.fastest.factor) == (TUNED, 7, 1.0)
    assert found.fastest.factor_interval is None
    assert (found.rows, found.seconds, found.ties) == (1_000, 12.3, ())
    assert recommended(TUNED=1.0, TEXT=1.01).ties == (TEXT,)


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
    base, names = recommended(TUNED=1.0).fastest, tuple(f"package{number}" for number in range(packages))
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


@pytest.mark.parametrize(
    ("times", "factor"),
    [
        ({TUNED: [1.0] * 7, TEXT: [0.5, *[3.0] * 6], USUAL: [8.0] * 7}, 8.0),  # by all runs and not by one
        ({TUNED: [1.0, 1.0], USUAL: [9.0, 9.0]}, 9.0),  # at the rows it had
    ],
)
def test_a_usual_one_is_compared_with_the_fastest(times: dict[str, list[float]], factor: float) -> None:
    under_way = racing([*times], usual=(USUAL,))
    for name, seconds in times.items():
        ran(under_way, name, *seconds)
    (usual,) = judging.recommendation(under_way, 1.0).usual
    assert (usual.transport, usual.factor, usual.differs) == (USUAL, pytest.approx(factor), True)


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


BIG = "row is too big: size 9000, maximum size 8160"


@pytest.mark.parametrize(
    ("names", "errors", "begun", "said", "helps"),
    [
        ([TUNED], ["E"], True, "none of 1 transports brings these data through, such as: error: E", False),
        ([TUNED], ["E"], False, "expected time for a run of each of 1 transports, but the budget was used up", True),
        (
            [TUNED, TEXT, PARALLEL],
            [f"E: {BIG}", f"F: {BIG}"],
            False,
            "none of the 2 transports that ran brings these data through: row is too big",
            False,
        ),
        ([TUNED, TEXT, PARALLEL], [f"E: {BIG}", "TypeError"], False, "expected time for a run of each", True),
        ([TUNED, TEXT, PARALLEL], ["TypeError", "TypeError"], False, "expected time for a run of each", True),
    ],
)
def test_where_no_transport_came_through_it_says_why_and_asks_for_more_time_only_where_that_may_help(
    names: list[str], errors: list[str], begun: bool, said: str, helps: bool
) -> None:
    under_way = racing(names)
    under_way.begun, under_way.ended = begun, "the budget was used up"
    for name, error in zip(names, errors, strict=False):
        under_way._take_in(Turn(name, OWN.rows, 1), row(name, status=Status.ERROR, error=error))
    with pytest.raises(LabError, match=said) as raised:
        judging.recommendation(under_way, 1.0)
    assert ("give it more" in str(raised.value)) == helps
