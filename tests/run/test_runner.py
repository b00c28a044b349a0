"""The runner on a made-up rig: what it asks of it in which order, and that whatever happens becomes one row."""

import re
import time

import pytest

from harness.check.canonical import NotConvertible
from harness.model import LabError, Status
from harness.run.rigs.rig import Unavailable

pytestmark = pytest.mark.process


def test_a_good_run_is_prepared_measured_verified_and_settled_in_this_order(perform, logs):
    row, words = perform()
    assert words == ["room", "unavailable", "revive", "prepare", "check", "revive", "settle"]
    assert (row.status, row.error, row.fidelity) == (Status.OK, "", "exact")
    assert row.rows_per_s == pytest.approx(12 / row.seconds, rel=1e-6)
    assert row.cpu_seconds == pytest.approx(row.cpu_user_seconds + row.cpu_system_seconds, abs=1e-6)
    assert row.connect_seconds > 0
    assert row.steal_seconds is None or 0 <= row.steal_seconds < 30
    assert row.throttled_seconds is None or 0 <= row.throttled_seconds < 30
    assert logs() == {}


def test_a_row_says_what_was_run_on_what_and_in_which_environment(perform):
    row, _ = perform()
    expected = {
        "run_id": "the-run",
        "environment": "0123456789ab",
        "suite": "scan",
        "experiment": "growing",
        "parameters": {"files": "1", "page_cache": "warm"},
        "transport": "made.up.scan",
        "system": "made",
        "operation": "scan",
        "client": "up",
        "path": "a path",
        "payload": "a payload",
        "frame": "",
        "style": "sync",
        "origin": "published",
        "published_row": "A way",
        "pinned": "one=1; two=2",
        "dataset": "lineitem",
        "rows": 12,
        "bytes": 3_400,
        "pass_number": 2,
        "order": 5,
        "lab": "local",
    }
    assert {name: getattr(row, name) for name in expected} == expected
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", row.started_at)


def test_a_run_that_the_deadline_of_all_ends_is_to_be_done_again(perform):
    started = time.monotonic()
    row, _ = perform("endless", deadline=started + 3)  # by when it has begun
    assert (row.status, row.error) == (Status.AGAIN, "the time for all runs was up before it ended")
    assert time.monotonic() - started < 45  # it alone would take a minute


def test_what_cannot_run_here_is_unavailable_and_nothing_is_prepared_or_settled(perform, logs):
    row, words = perform(unavailable="this lab has no such address")
    assert (row.status, row.error) == (Status.UNAVAILABLE, "this lab has no such address")
    assert words == ["room", "unavailable"]
    assert logs() == {}


def test_what_turns_out_while_preparing_not_to_be_possible_here_is_unavailable_and_settled(perform, logs):
    row, words = perform(prepare=Unavailable("40 % of a file stayed in the page cache"))
    assert (row.status, row.error) == (Status.UNAVAILABLE, "40 % of a file stayed in the page cache")
    assert words == ["room", "unavailable", "revive", "prepare", "revive", "settle"]
    assert logs() == {}


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (OSError("disk on fire"), Status.ERROR, "OSError: disk on fire"),
        (LabError("the store could not be made"), Status.ERROR, "LabError: the store could not be made"),
        (KeyError("nothing"), Status.ERROR, "KeyError: 'nothing'"),
    ],
)
def test_a_run_that_cannot_be_prepared_is_an_error_and_settled(perform, raised, status, said):
    row, words = perform(prepare=raised)
    assert (row.status, row.error) == (status, said)
    assert words[-2:] == ["revive", "settle"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (["a: 1 of 3 values differ"], "a: 1 of 3 values differ"),
        (["a: 1 of 3 values differ", "b: ...", "c: ..."], "a: 1 of 3 values differ (and 2 more columns)"),
        (NotConvertible("b: Float64 changes values"), "b: Float64 changes values"),
    ],
    ids=["one", "many", "not convertible"],
)
def test_a_wrong_value_is_a_mismatch_without_numbers(perform, found, said):
    row, words = perform(check=found)
    assert (row.status, row.error) == (Status.MISMATCH, said)
    assert words[-2:] == ["revive", "settle"]


def test_a_verification_that_fails_is_an_error(perform):
    row, _ = perform(check=FileNotFoundError("expected one *.sqlite, found 0"))
    assert (row.status, row.error) == (Status.ERROR, "FileNotFoundError: expected one *.sqlite, found 0")


def test_a_good_run_after_which_nothing_comes_to_rest_is_an_error_without_numbers(perform):
    row, _ = perform(settle=TimeoutError("merges go on"))
    assert (row.status, row.error) == (Status.ERROR, "after the run: TimeoutError: merges go on")


def test_what_went_wrong_first_is_said_where_nothing_comes_to_rest_either(perform):
    row, _ = perform(check=["a: 1 of 3 values differ"], settle=TimeoutError("merges go on"))
    both = "a: 1 of 3 values differ; after the run: TimeoutError: merges go on"
    assert (row.status, row.error) == (Status.MISMATCH, both)


def test_a_server_that_died_during_the_run_takes_its_numbers_with_it(perform):
    row, words = perform(died=True, revive=[[], ["made"]])
    assert row.status is Status.ERROR
    assert row.error == "the made server died during this run and was restarted"
    assert words[-1] == "revive"


@pytest.mark.parametrize("revived", [[["made"], []], [[], ["another"]]], ids=["before the run", "another server"])
def test_a_server_that_died_at_another_time_or_place_does_not_spoil_the_run(perform, revived):
    row, words = perform(revive=revived)
    assert row.status is Status.OK
    assert words[-1] == "settle"


def test_a_failure_is_one_short_line_in_the_row_and_whole_in_the_log_and_nowhere_with_a_password(perform, logs):
    row, _ = perform("broken")
    assert row.status is Status.ERROR
    assert row.error.startswith("RuntimeError: no entry for *** in line 2 xxx")
    assert len(row.error) == 500
    ((name, log),) = logs().items()
    assert name == "0005-made.up.broken.log"
    assert "tried with ***" in log
    assert 1000 * "x" in log
    assert "geheim99" not in log
