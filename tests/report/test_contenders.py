"""The transports that are not contenders, by the intervals of a reference run."""

from dataclasses import replace

import pytest

from harness.model import Origin, Status
from harness.report.answers import FACTOR, NoContender, no_contenders
from harness.report.summary import summarise
from harness.suites.suite import AnswersWanted
from tests.report.cases import row
from tests.report.test_answers import runs

FASTEST = runs("postgres.quick.write_pandas", (1.0, 1.1, 1.2), lossy="nulls=changed", peak_rss_bytes=5)
WHOLE = runs("postgres.whole.write_pandas", (1.8, 1.9, 2.0), peak_rss_bytes=6)
WANTED = AnswersWanted(experiment="matrix", usual=["postgres.usual.write_pandas", "postgres.other_usual.*"])


def of(*rows):
    every = [*FASTEST, *WHOLE, *rows]
    return no_contenders(WANTED, summarise(every, ()))


def ids(*rows):
    return [one.transport for one in of(*rows)]


@pytest.mark.parametrize(
    ("took", "lossy", "left_out"),
    [
        (1.5, "nulls=changed", False),
        (3.0, "nulls=changed", True),
        (2.6, "", False),  # a lossless transport is compared with the fastest lossless one
        (5.0, "", True),
    ],
)
def test_a_transport_shown_to_take_so_many_times_as_long_is_left_out(took, lossy, left_out):
    one = "postgres.one.write_pandas"
    assert ids(*runs(one, (took, 1.02 * took, took), lossy=lossy)) == [one] * left_out


def test_what_is_left_out_says_why():
    (one,) = of(*runs("postgres.one.write_pandas", (8.0, 9.0, 9.5), lossy="nulls=changed"))
    assert (one.transport, one.values) == ("postgres.one.write_pandas", "exact")
    assert FACTOR < one.at_least < 9.0 / 1.1
    (one,) = of(*runs("postgres.one.write_pandas", (0.1, 0.1, 0.1), fidelity=""))
    assert one == NoContender("postgres.one.write_pandas", "", None)


def test_what_converts_is_judged_by_the_same_factor_and_the_fastest_of_these_is_a_contender():
    converted = {"fidelity": "converted: a (object)", "lossy": "nulls=changed"}
    near = runs("postgres.near.write_pandas", (1.1, 1.2, 1.2), **converted)
    slow = runs("postgres.slow.write_pandas", (8.0, 9.0, 9.5), **converted)
    assert ids(*slow) == []
    (one,) = of(*near, *slow)
    assert (one.transport, one.values) == ("postgres.slow.write_pandas", "converted")
    assert FACTOR < one.at_least < 9.0 / 1.1


@pytest.mark.parametrize(("status", "expected"), [(Status.UNAVAILABLE, 0), (Status.UNSUPPORTED, 1), (Status.ERROR, 1)])
def test_what_the_lab_had_no_means_for_is_a_contender_and_what_failed_is_not(status, expected):
    failed = row("postgres.one.write_pandas", status, frame="pandas", origin=Origin.BEYOND)
    assert len(ids(failed)) == expected


def test_the_usual_one_the_leanest_and_the_published_ones_are_contenders_however_slow():
    slow = (90.0, 91.0, 92.0)
    usual = runs("postgres.usual.write_pandas", slow)
    lean = runs("postgres.lean.write_pandas", slow, peak_rss_bytes=1)
    published = runs("postgres.published.write_pandas", slow, origin=Origin.PUBLISHED)
    assert ids(*usual, *lean, *published) == []
    assert ids(*usual, *runs("postgres.other_usual.write_pandas", slow)) == ["postgres.other_usual.write_pandas"]


def test_the_fastest_from_pypi_and_those_near_it_are_contenders_however_slow():
    wanted = replace(WANTED, beyond_pypi=["postgres.quick.*"])
    times = {"installs": 90.0, "near": 110.0, "far": 120.0}
    slow = [
        run
        for name, took in times.items()
        for run in runs(f"postgres.{name}.write_pandas", (took,) * 3, lossy="nulls=changed")
    ]
    found = no_contenders(wanted, summarise([*FASTEST, *slow], ()))
    assert [one.transport for one in found] == ["postgres.far.write_pandas"]
