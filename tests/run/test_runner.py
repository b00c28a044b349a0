"""The runner on a made-up rig: what it asks of it in which order, and that whatever happens becomes one row."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import registry
from harness.check.canonical import NotConvertible
from harness.model import Case, LabError, Run, Status
from harness.results import runs_csv
from harness.results.row import OF_MEASUREMENT
from harness.run import blame, runner
from harness.run.rigs.rig import Checked, Unavailable
from harness.worker.contracts.parquet import ParquetJob
from tests.made_up import MadeUp

UP = """
@contextmanager
def connect(folder):
    yield folder

@transport("scan", path="a path", payload="a payload", settings={"one": "1", "two": "2"}, published="A way")
def scan(connection, files):
    return 7

@transport("scan", path="", payload="")
def broken(connection, files):
    print("tried with geheim99")
    raise RuntimeError("no entry for geheim99\\nin line 2 " + 1000 * "x")

@transport("scan", path="", payload="")
def without_space(connection, files):
    raise OSError(28, "No space left on device", "/somewhere")

@transport("scan", path="", payload="")
def greedy(connection, files):
    with open(connection + "/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))
    return len(bytes(range(256)) * 4_000_000)
"""
NUMBERS = (*OF_MEASUREMENT, "rows_per_s", "cpu_seconds")


class Rig:
    """Everything that a rig offers; writes down what it is asked, and says or raises what a test wants."""

    lab_name, secrets, headline = "local", ("postgresql://user:geheim99@host/db",), ""

    def __init__(self, says):
        self.words, self.says = [], says

    def _say(self, word, otherwise=None):
        self.words.append(word)
        said = self.says.get(word, otherwise)
        if isinstance(said, Exception):
            raise said
        return said

    def extent(self, case):
        return 12, 3_400

    def room(self, case):
        return self._say("room", 0)

    def unavailable(self, case):
        return self._say("unavailable")

    def prepare(self, case):
        folder = self.says.get("folder", "")
        return self._say(
            "prepare", ParquetJob(transport=case.transport.id, folder=str(folder), files=[], warmup_files=[])
        )

    def check(self, case, job, answer):
        assert answer.count == 7
        return Checked(self._say("check", []))

    def died(self, case):
        return self.says.get("died", False)

    def revive(self):
        return self._say("revive", [[], []]).pop(0)

    def settle(self, case):
        self._say("settle")


@pytest.fixture
def perform(tmp_path, monkeypatch):
    """Perform one run of a made-up transport on a rig that says what a test wants; returns its row and the words."""
    made = MadeUp(tmp_path, up=UP)
    made.join(monkeypatch, runner)
    folder = tmp_path / "run"
    folder.mkdir()

    def call(function="scan", starved=(), **says):
        rig, told = Rig(says), []
        case = Case(registry.one(f"made.up.{function}"), "growing", "lineitem", {"files": 1, "page_cache": "warm"})
        session = runner.Session("the-run", "scan", rig, "0123456789ab", folder, 30.0, starved=frozenset(starved))
        runner.perform(session, [Run(case, 2, 5)], told.append)
        (row,) = runs_csv.load(folder / "runs.csv")
        assert [line.status for line in told] == [row.status]
        assert not (folder / "result.arrow").exists()
        if row.status is not Status.OK:
            assert row.error
            assert not [name for name in NUMBERS if getattr(row, name) is not None]
        return row, rig.words

    return call


@pytest.fixture
def logs(tmp_path):
    """What the logs of the run say, by file name."""
    return lambda: {path.name: path.read_text() for path in (tmp_path / "run" / "logs").iterdir()}


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


def test_a_results_disk_without_room_for_what_a_run_hands_over_stops_the_suite_before_it(perform, tmp_path):
    with pytest.raises(LabError, match=r'GB of free disk in .*/run, found .*then "lab run --resume the-run" goes on'):
        perform(room=10**18)
    assert not (tmp_path / "run" / "runs.csv").exists()


def test_a_run_that_met_a_full_disk_is_to_be_done_again(perform):
    row, words = perform("without_space")
    assert row.status is Status.AGAIN
    assert "no space left during this run; OSError: [Errno 28] No space left on device: '/somewhere'" in row.error
    assert words[-2:] == ["revive", "settle"]


def test_a_disk_with_room_for_no_segment_of_a_log_is_full_whatever_the_server_says(perform, monkeypatch):
    """Postgres says of it only that its checkpoint failed, and frees some megabytes when its table is dropped."""
    monkeypatch.setattr(blame, "free_bytes", lambda place: 20_000_000)
    with pytest.raises(LabError, match=r"no space left on the disk of .*/run \(a disk .*checkpoint request failed"):
        perform(settle=RuntimeError("checkpoint request failed"))


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group whose processes may have 200 MB of memory together."""
    root = Path("/sys/fs/cgroup/memory" if Path("/sys/fs/cgroup/memory").is_dir() else "/sys/fs/cgroup")
    group, limit = root / f"lab-test-{os.getpid()}", "memory.limit_in_bytes" if root.name == "memory" else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text("200000000")
    except OSError as error:
        pytest.skip(f"this user may not make a control group with a limit of memory: {error}")
    yield group
    group.rmdir()


def test_a_run_whose_worker_the_kernel_ended_for_memory_is_to_be_done_again(perform, small_group):
    row, _ = perform("greedy", folder=small_group)
    assert (row.status, row.error) == (
        Status.AGAIN,
        "the kernel ended a process for want of memory during this run; the worker was killed by SIGKILL",
    )


def test_a_run_that_the_kernel_ends_for_memory_twice_needs_too_much(perform, small_group):
    key = ("made.up.greedy", "growing", "files=1; page_cache=warm", 2)
    row, _ = perform("greedy", starved={key}, folder=small_group)
    assert row.status is Status.KILLED
    assert row.error.startswith("the kernel ended a process for want of memory during this run, for the second time")


def test_a_results_folder_that_is_renamed_under_a_run_is_what_the_message_says(perform, tmp_path):
    folder = tmp_path / "run"

    class Renaming(list):
        def __len__(self) -> int:  # asked for when the values are compared
            folder.rename(tmp_path / "elsewhere")
            return 0

    with pytest.raises(LabError, match=r"run was removed or renamed while this run wrote to it; put it back, then "):
        perform(check=Renaming())
    assert not folder.exists()
