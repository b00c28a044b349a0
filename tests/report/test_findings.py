"""Sentences of a report: ratios taken pass by pass, and no difference called one that the interval does not show."""

import math
import random
import statistics

import pytest

from harness.model import Status
from harness.report.findings import findings, ratio
from harness.suites import Comparison
from tests.report.cases import row

S3 = Comparison("S3", "storage", {"place": "s3"}, {"place": "local"})


def runs(place, seconds, transport="elt.duckdb.transform", rows=100, experiment="storage"):
    return [
        row(
            transport,
            seconds=value,
            experiment=experiment,
            parameters=f"rows={rows}; place={place}",
            **{"pass": number},
        )
        for number, value in enumerate(seconds, start=1)
    ]


def test_a_ratio_is_the_geometric_mean_over_passes_with_students_interval():
    found = ratio([(1.1, 1.0), (2.2, 2.0), (3.6, 3.0)])
    logs = [math.log(1.1), math.log(1.1), math.log(1.2)]
    half = 4.302653 * statistics.stdev(logs) / math.sqrt(3)  # Student's t of 2 degrees of freedom, 97.5 %: from tables
    assert found.value == pytest.approx(math.exp(statistics.fmean(logs)))
    assert (found.low, found.high) == pytest.approx(
        (found.value * math.exp(-half), found.value * math.exp(half)), rel=1e-6
    )
    assert found.n == 3


def test_the_interval_holds_the_true_ratio_in_95_of_100_cases():
    source = random.Random(1)

    def noisy(middle):
        return middle * math.exp(source.gauss(0, 0.1))

    hits = 0
    for _ in range(2_000):
        found = ratio([(noisy(1.3), noisy(1.0)) for _ in range(4)])
        hits += found.low < 1.3 < found.high
    assert 0.93 < hits / 2_000 < 0.97


def test_a_difference_that_the_interval_shows_is_said_in_percent():
    rows = runs("s3", [1.07, 2.15, 3.20]) + runs("local", [1.0, 2.0, 3.0])
    (line,) = findings(rows, [S3])
    assert line == (
        "elt.duckdb.transform, 100 rows: S3 took 7 % longer: 1.07 times as long (95 % interval 1.06 to 1.08, 3 passes)"
    )


def test_a_faster_one_took_less():
    (line,) = findings(runs("s3", [0.5, 0.51, 0.49]) + runs("local", [1.0, 1.0, 1.0]), [S3])
    assert "S3 took 50 % less: 0.50 times as long" in line


def test_what_the_interval_does_not_show_is_no_difference():
    (line,) = findings(runs("s3", [1.0, 1.2, 0.9]) + runs("local", [1.1, 1.0, 1.0]), [S3])
    assert "no difference shown: S3 took" in line


def test_a_single_pass_says_that_it_cannot_say():
    (line,) = findings(runs("s3", [1.5]) + runs("local", [1.0]), [S3])
    assert line.endswith("S3 took 1.50 times as long; 1 pass cannot say how sure that is")


def test_only_passes_with_both_runs_ok_count_and_each_way_and_size_has_its_own_sentence():
    rows = runs("s3", [2.0, 2.0, 9.0]) + runs("local", [1.0, 1.0, 1.0])
    rows[2]["status"] = Status.MISMATCH
    rows += runs("s3", [3.0], rows=2_000) + runs("local", [1.0], rows=2_000)
    rows += runs("s3", [3.0], "elt.polars.transform") + runs("local", [1.0], "elt.polars.transform")
    rows += runs("s3", [3.0], "elt.chdb.transform") + runs("s3", [9.0], experiment="another")
    lines = findings(rows, [S3])
    assert [line.partition(":")[0] for line in lines] == [
        "elt.duckdb.transform, 100 rows",
        "elt.duckdb.transform, 2,000 rows",
        "elt.polars.transform, 100 rows",
    ]
    assert "2 passes" in lines[0]


def test_without_comparisons_or_rows_there_is_nothing_to_say():
    assert findings(runs("s3", [1.0]), []) == []
    assert findings([], [S3]) == []
