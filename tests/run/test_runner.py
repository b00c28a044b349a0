"""The runner on a made-up rig: the order of its calls, one row for each run, and workers ahead."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from polars.exceptions import PanicException

from harness import registry
from harness.check.canonical import NotConvertible
from harness.machine.stopping import on_signals
from harness.model import Case, LabError, Run, Status
from harness.results import runs_csv
from harness.run import fault_attribution, runner
from harness.run.ahead import Ahead
from harness.run.rigs.rig import Checked, Unavailable
from tests.made_up import MadeUp
from tests.run.conftest import UP, Rig
from tests.run.rigs.orders import running

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


ENDS = ["revive", "settle"]
DIFFERS = "a: 1 of 3 values differ"


@pytest.mark.parametrize(
    ("says", "status", "said", "words"),
    [
        ({"unavailable": "no such address"}, Status.UNAVAILABLE, "no such address", ["room", "unavailable"]),
        (
            {"prepare": Unavailable("40 % of a file stayed in the page cache")},
            Status.UNAVAILABLE,
            "40 % of a file stayed in the page cache",
            ["room", "unavailable", "revive", "prepare", *ENDS],
        ),
        ({"prepare": OSError("disk on fire")}, Status.ERROR, "OSError: disk on fire", ENDS),
        ({"prepare": LabError("no store was made")}, Status.ERROR, "LabError: no store was made", ENDS),
        ({"check": [DIFFERS]}, Status.MISMATCH, DIFFERS, ENDS),
        ({"check": [DIFFERS, "b: ...", "c: ..."]}, Status.MISMATCH, f"{DIFFERS} (and 2 more columns)", ENDS),
        (
            {"check": NotConvertible("b: Float64 changes values")},
            Status.MISMATCH,
            "b: Float64 changes values",
            ENDS,
        ),
        ({"check": FileNotFoundError("found 0")}, Status.ERROR, "FileNotFoundError: found 0", ENDS),
        (
            {"settle": TimeoutError("merges go on")},
            Status.ERROR,
            "after the run: TimeoutError: merges go on",
            ENDS,
        ),
        (
            {"check": [DIFFERS], "settle": TimeoutError("merges go on")},
            Status.MISMATCH,
            f"{DIFFERS}; after the run: TimeoutError: merges go on",
            ENDS,
        ),
        (
            {"died": True, "revive": [[], ["made"]]},
            Status.ERROR,
            "the made server died during this run and was restarted",
            ["check", "revive"],
        ),
    ],
)
def test_whatever_a_rig_says_or_raises_becomes_one_row_without_numbers(perform, logs, says, status, said, words):
    row, found = perform(**says)
    assert (row.status, row.error) == (status, said)
    assert found[-len(words) :] == words
    assert status is not Status.UNAVAILABLE or (found, logs()) == (words, {})


def test_a_panic_of_polars_that_ctrl_c_causes_ends_the_suite_like_ctrl_c(perform):
    with on_signals():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            perform(prepare=PanicException("called `Result::unwrap()` on an `Err` value: KeyboardInterrupt"))


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
    with pytest.raises(LabError, match=r'/run: .* GB of disk needed, .*then "lab run --resume run" goes on'):
        perform(room=10**18)
    assert not (tmp_path / "run" / "runs.csv").exists()


def test_a_run_that_met_a_full_disk_is_to_be_done_again(perform):
    row, words = perform("without_space")
    assert row.status is Status.AGAIN
    assert "no space left during this run; OSError: [Errno 28] No space left on device: '/somewhere'" in row.error
    assert words[-2:] == ["revive", "settle"]


def test_a_disk_with_room_for_no_segment_of_a_log_is_full_whatever_the_server_says(perform, monkeypatch):
    """Postgres reports only that its checkpoint failed, and frees some megabytes when its table is dropped."""
    monkeypatch.setattr(fault_attribution, "free_bytes", lambda place: 20_000_000)
    with pytest.raises(LabError, match=r"no space left on the disk of .*/run \(a disk .*checkpoint request failed"):
        perform(settle=RuntimeError("checkpoint request failed"))


def test_a_results_folder_that_is_renamed_under_a_run_is_what_the_message_says(perform, tmp_path):
    folder = tmp_path / "run"

    class Renaming(list):
        def __len__(self) -> int:  # asked for when the values are compared
            folder.rename(tmp_path / "elsewhere")
            return 0

    with pytest.raises(LabError, match=r"run was removed or renamed while this run wrote to it; put it back, then "):
        perform(check=Renaming())
    assert not folder.exists()


CHANGES = {
    "removed": lambda path: path.unlink(),
    "replaced": lambda path: (path.rename(path.with_name("backup")), path.write_text("")),
    "changed": lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1])),
}


@pytest.mark.long
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("when", [1, 2])
def test_rows_that_are_removed_or_replaced_in_mid_run_stop_it_with_one_line(tmp_path, monkeypatch, how, when):
    """An editor writes a new file and gives it the old one's name: rows that were added meanwhile would be lost."""
    made = MadeUp(tmp_path, up=UP)
    made.join(monkeypatch)
    folder, told = tmp_path / "run", []
    folder.mkdir()
    case = Case(registry.one("made.up.scan"), "growing", "lineitem", {"files": 1})
    session = running(Rig({"revive": [[]] * 9}), folder, 30.0)

    def on_row(row):
        told.append(row)
        if len(told) == when:
            CHANGES[how](folder / "runs.csv")

    with pytest.raises(
        LabError, match=rf'runs\.csv was {how} while this run wrote to it; put .*, then "lab run --resume'
    ):
        runner.perform(session, [Run(case, 1, 1), Run(case, 2, 2)], on_row)
    assert len(told) == when


TWO = """
@contextmanager
def connect(folder):
    yield folder

@transport("", "", operation="scan", requires=["needed"])
def one(connection, files):
    log("call")
    time.sleep(0.2)
    log("called")
    return 7

@transport("", "", operation="scan", requires=["no_such_module"])
def broken(connection, files):
    return 7

@transport("", "", operation="scan", requires=["ends_at_once"])
def dying(connection, files):
    return 7
"""


class Looking(Rig):
    """A rig whose first check waits, for a limited time, until the next worker has imported its client."""

    def __init__(self, made, patience, unavailable=()):
        super().__init__({})
        self.made, self.patience, self.not_prepared, self.seen = made, patience, unavailable, []

    def prepare(self, case):
        if case.label in self.not_prepared:
            raise Unavailable("not this one")
        return super().prepare(case)

    def check(self, case, job, answer):
        until = time.monotonic() + (0 if self.seen else self.patience)
        while time.monotonic() < until and self.made.events()[0].count("import") <= len(self.seen) + 1:
            time.sleep(0.01)
        self.seen.append(self.made.events()[0].count("import"))
        return Checked([])


@pytest.fixture
def perform_ahead(tmp_path, monkeypatch):
    """Perform runs of these transports, with the next worker started ahead or not; return the rig and the rows."""
    made = MadeUp(tmp_path, up=TWO)
    (tmp_path / "ends_at_once.py").write_text("import os\nos._exit(3)\n")
    made.join(monkeypatch)
    folder = tmp_path / "run"
    folder.mkdir()

    def call(*functions, ahead=True, patience=20.0, unavailable=()):
        rig = Looking(made, patience, unavailable)
        runs = [
            Run(Case(registry.one(f"made.up.{name}"), "growing", "lineitem", {"files": place}), 1, place)
            for place, name in enumerate(functions, 1)
        ]
        session = running(rig, folder, ahead=Ahead(ahead))
        runner.perform(session, runs, lambda row: None)
        return rig, runs_csv.load(folder / "runs.csv")

    return call


def test_the_next_worker_imports_while_the_last_result_is_verified(perform_ahead):
    rig, rows = perform_ahead("one", "one")
    assert [row.status for row in rows] == [Status.OK, Status.OK]
    assert rig.seen[0] == 2
    events, _ = rig.made.events()
    with_warmup = ["import", *["call", "called"] * 2]
    assert events == with_warmup * 2  # nothing but a call


def test_turned_off_it_starts_when_its_turn_comes(perform_ahead):
    rig, rows = perform_ahead("one", "one", ahead=False, patience=1.0)
    assert [row.status for row in rows] == [Status.OK, Status.OK]
    assert rig.seen == [1, 2]


def test_a_worker_whose_run_cannot_be_prepared_is_ended_and_the_next_one_is_its_own(perform_ahead, tmp_path):
    rig, rows = perform_ahead("one", "one", "one", unavailable=("files=2",))
    assert [row.status for row in rows] == [Status.OK, Status.UNAVAILABLE, Status.OK]
    assert rig.made.events()[0].count("import") == 3
    assert list((tmp_path / "run" / "logs").iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "said"), [("broken", "No module named 'no_such_module'"), ("dying", "ended with exit code 3")]
)
def test_what_cannot_be_imported_ahead_is_reported_as_ever(perform_ahead, function, said):
    _, (first, ahead) = perform_ahead("one", function, patience=1.0)
    assert (first.status, ahead.status) == (Status.OK, Status.ERROR)
    assert said in ahead.error


def test_nothing_waits_when_a_run_ends_the_suite(perform_ahead, monkeypatch):
    ended = []
    monkeypatch.setattr(Ahead, "close", lambda self, real=Ahead.close: ended.append(self._waiting) or real(self))

    def refused(self, case):
        raise KeyboardInterrupt

    monkeypatch.setattr(Looking, "settle", refused)
    with pytest.raises(KeyboardInterrupt):
        perform_ahead("one", "one", patience=5.0)
    _, worker, log = ended[-1]
    assert worker.ended
    assert not log.exists()


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


KEY = ("made.up.greedy", "growing", "files=1; page_cache=warm", 2)


@pytest.mark.alone  # otherwise the lab would blame other failures on the machine, too
@pytest.mark.parametrize(
    ("excused", "status", "said"),
    [
        (set(), Status.AGAIN, "; the worker was killed by SIGKILL"),
        ({KEY}, Status.KILLED, ", for the second time"),
    ],
)
def test_the_kernel_excuses_a_run_that_it_ends_for_memory_once(perform, small_group, excused, status, said):
    row, _ = perform("greedy", excused=excused, folder=small_group)
    assert row.status is status
    assert row.error.startswith(f"the kernel ended a process for want of memory during this run{said}")
