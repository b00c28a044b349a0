"""The runner on a made-up rig, whose answers and errors a test chooses; workers that are one line of Python."""

import math
import sys

import pytest

from harness import registry
from harness.model import Case, Run, Status
from harness.results import runs_csv
from harness.results.row import OF_MEASUREMENT
from harness.run import runner
from harness.run.execution import Worker
from harness.run.rigs.rig import Checked
from harness.run.rigs.rig import Rig as AnyRig
from harness.worker.contracts.parquet import ParquetJob
from tests.made_up import MadeUp
from tests.run.one_liners import Call, Descendant
from tests.run.rigs.orders import running

UP = """
@contextmanager
def connect(folder):
    yield folder

@transport("a path", "a payload", settings={"one": "1", "two": "2"}, published="A way")
def scan(connection, files):
    return 7

@transport("", "", operation="scan")
def broken(connection, files):
    print("tried with geheim99")
    raise RuntimeError("no entry for geheim99\\nin line 2 " + 1000 * "x")

@transport("", "", operation="scan")
def endless(connection, files):
    time.sleep(60)

@transport("", "", operation="scan")
def without_space(connection, files):
    raise OSError(28, "No space left on device", "/somewhere")

@transport("", "", operation="scan")
def greedy(connection, files):
    with open(connection + "/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))
    return len(bytes(range(256)) * 4_000_000)
"""
NUMBERS = (*OF_MEASUREMENT, "rows_per_s", "cpu_seconds")


class Rig(AnyRig):
    """A rig that records its calls, and answers or raises as a test chooses."""

    lab_name, secrets, headline = "local", ("postgresql://user:geheim99@host/db",), ""

    def __init__(self, says):
        self.words, self.says = [], says

    def _say(self, word, otherwise=None):
        self.words.append(word)
        said = self.says.get(word, otherwise)
        if isinstance(said, BaseException):
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
    """Perform one run of a made-up transport on a rig with chosen answers; return its row and the printed lines."""
    made = MadeUp(tmp_path, up=UP)
    made.join(monkeypatch)
    folder = tmp_path / "run"
    folder.mkdir()

    def call(function="scan", excused=(), deadline=math.inf, **says):
        rig, told = Rig(says), []
        case = Case(registry.one(f"made.up.{function}"), "growing", "lineitem", {"files": 1, "page_cache": "warm"})
        session = running(rig, folder, deadline=deadline)
        vars(session)["excused"] = frozenset(excused)
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
    """The logs of the run, by file name."""
    return lambda: {path.name: path.read_text() for path in (tmp_path / "run" / "logs").glob("*")}


@pytest.fixture
def run(tmp_path):
    """Execute a Python one-liner as the worker."""

    def run(code, time_limit=60.0, job=None, **more):
        command = (sys.executable, "-S", "-E", "-c", code)
        return Worker(tmp_path / "log", command).ask(job or Call(transport="a way"), time_limit, **more).answer

    return run


@pytest.fixture
def descendant(tmp_path):
    it = Descendant(tmp_path / "descendant")
    yield it
    it.close()
