from datetime import UTC, datetime, timedelta

import pytest

from harness import registry
from harness.model import Case, Status
from harness.results.row import Row
from harness.run import estimate

START = datetime(2026, 1, 1, tzinfo=UTC)
WRITE, READ = "postgres.psycopg.write_polars_copy_text", "postgres.psycopg.read_polars_copy_text"


def case(transport, rows):
    return Case(registry.one(transport), "matrix", "analytics_metrics", {"rows": rows})


def row(transport, rows, started, seconds):
    at = (START + timedelta(seconds=started)).isoformat()
    status, label = Status.OK if seconds else Status.ERROR, {"rows": str(rows)}
    return Row(transport=transport, parameters=label, rows=rows, seconds=seconds, started_at=at, status=status)


def test_the_same_case_takes_as_long_as_it_took_with_its_worker_and_all():
    earlier = [row(WRITE, 1000, 0, 0.5), row(WRITE, 1000, 2, 0.5), row(READ, 1000, 6, 0.1)]
    assert estimate.seconds([case(WRITE, 1000)], 3, earlier) == pytest.approx(9)  # 3 passes of (2 + 4) / 2


def test_of_other_rows_only_the_call_grows():
    earlier = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 2, 0.1)]
    assert estimate.seconds([case(WRITE, 10_000)], 1, earlier) == pytest.approx(1.5 + 5)


def test_the_nearest_number_of_rows_tells_most():
    earlier = [row(WRITE, 1, 0, 0.5), row(WRITE, 1000, 1, 0.5), row(READ, 1000, 3, 0.1)]
    assert estimate.seconds([case(WRITE, 10_000)], 1, earlier) == pytest.approx(1.5 + 5)


def test_no_call_is_thought_to_take_longer_than_its_time_limit():
    earlier = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 2, 0.1)]
    assert estimate.seconds([case(WRITE, 10_000_000)], 1, earlier, 60) == pytest.approx(1.5 + 60)


def test_a_case_that_was_never_run_takes_as_long_as_the_usual_one():
    earlier = [row(WRITE, 1000, 0, 0.5), row(WRITE, 1000, 3, 0.5), row(WRITE, 1000, 6, 0.5)]
    assert estimate.seconds([case(READ, 1000)], 1, earlier) == pytest.approx(3)


def test_a_night_between_two_rows_is_not_measured_time():
    earlier = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 2, 0.1), row(WRITE, 1000, 40_000, 0.5)]
    assert estimate.seconds([case(WRITE, 1000)], 1, earlier) == pytest.approx(2)


@pytest.mark.parametrize("earlier", [[], [row(WRITE, 1000, 0, 0.5)]])
def test_where_nothing_was_timed_nothing_is_said(earlier):
    assert estimate.seconds([case(WRITE, 1000)], 1, earlier) is None


@pytest.mark.parametrize(
    ("expected", "words"),
    [(12, "less than a minute"), (61, "about 1 minute"), (250, "about 4 minutes"), (1704, "about 30 minutes"),
     (2400, "about 40 minutes"), (9000, "about 2 hours")],
)  # fmt: skip
def test_a_time_is_told_in_words(expected, words):
    assert estimate.in_words(expected) == words
