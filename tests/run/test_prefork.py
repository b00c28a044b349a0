"""The next worker starts while the last result is verified: never beside a call, and never without being ended."""

import time

import pytest

from harness import registry
from harness.model import Case, Run, Status
from harness.results import runs_csv
from harness.run import runner
from harness.run.prefork import Ahead
from harness.run.rigs.rig import Checked, Unavailable
from tests.made_up import MadeUp
from tests.run.conftest import Rig
from tests.run.rigs.orders import running

pytestmark = pytest.mark.process

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
    """A rig whose first check waits, at most so many seconds, until the next worker has imported its client."""

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
def perform(tmp_path, monkeypatch):
    """Perform runs of these transports with the next worker started ahead, or not; returns the rig and the rows."""
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
        session = running(rig, folder, ahead=Ahead() if ahead else None)
        runner.perform(session, runs, lambda row: None)
        return rig, runs_csv.load(folder / "runs.csv")

    return call


def test_the_next_worker_imports_while_the_last_result_is_verified(perform):
    rig, rows = perform("one", "one")
    assert [row.status for row in rows] == [Status.OK, Status.OK]
    assert rig.seen[0] == 2
    events, _ = rig.made.events()
    with_warmup = ["import", *["call", "called"] * 2]
    assert events == with_warmup * 2  # nothing beside a call


def test_turned_off_it_starts_when_its_turn_comes(perform):
    rig, rows = perform("one", "one", ahead=False, patience=1.0)
    assert [row.status for row in rows] == [Status.OK, Status.OK]
    assert rig.seen == [1, 2]


def test_a_worker_whose_run_cannot_be_prepared_is_ended_and_the_next_one_is_its_own(perform, tmp_path):
    rig, rows = perform("one", "one", "one", unavailable=("files=2",), patience=1.0)
    assert [row.status for row in rows] == [Status.OK, Status.UNAVAILABLE, Status.OK]
    assert rig.made.events()[0].count("import") == 3
    assert list((tmp_path / "run" / "logs").iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "said"), [("broken", "No module named 'no_such_module'"), ("dying", "ended with exit code 3")]
)
def test_what_cannot_be_imported_ahead_is_told_as_ever(perform, function, said):
    _, (first, ahead) = perform("one", function, patience=1.0)
    assert (first.status, ahead.status) == (Status.OK, Status.ERROR)
    assert said in ahead.error


def test_nobody_waits_when_a_run_ends_the_suite(perform, monkeypatch):
    ended = []
    monkeypatch.setattr(Ahead, "end", lambda self, real=Ahead.end: ended.append(self._waiting) or real(self))

    def refused(self, case):
        raise KeyboardInterrupt

    monkeypatch.setattr(Looking, "settle", refused)
    with pytest.raises(KeyboardInterrupt):
        perform("one", "one", patience=5.0)
    _, worker, log = ended[-1]
    assert worker.ended
    assert not log.exists()
