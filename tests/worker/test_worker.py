"""The worker without any database: its events in order, its messages of failures; it outlives no parent."""

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from harness import registry
from harness.model import Status
from harness.run.execution import Worker
from harness.worker.contracts.databases import Addresses, DatabaseAnswer, DatabaseJob
from harness.worker.contracts.several_tables import SeveralTablesAnswer, SeveralTablesJob
from harness.worker.messages import Failed, Job
from tests.made_up import MadeUp

LOGICAL_TYPES = {"k": "uuid", "i": "int32"}
UP = """
@contextmanager
def connect(uri):
    log("connect", uri)
    yield "connection"
    log("close")

@transport("", "", requires=["needed"])
def write_polars(connection, frame, table):
    log("write", connection, len(frame), table)

@transport("", "")
def write_pandas(connection, frame, table):
    log("write", type(frame).__module__, len(frame), table)

@transport("", "", requires=["needed"])
def read_polars(connection, table):
    import polars
    log("read", connection, table)
    return polars.DataFrame({"k": ["a"], "i": [7]})

@transport("", "", frame="polars")
def read_arrow(connection, table):
    import polars
    return polars.DataFrame({"k": ["a"], "i": [7]}).to_arrow()

@transport("", "", frame="polars")
def read_half(connection, table):
    import polars
    return polars.DataFrame({"k": ["a"], "i": [7.5]})

@transport("", "", frame="polars")
def read_unsupported(connection, table):
    raise Unsupported("no such format")

@transport("", "", frame="polars")
def read_error(connection, table):
    raise RuntimeError("server said: \\udcff no")

class Panic(BaseException):
    pass

@transport("", "", frame="polars")
def read_panic(connection, table):
    raise Panic("out of range")

@transport("", "", frame="polars")
def read_exit(connection, table):
    raise SystemExit("left")

@transport("", "", frame="polars", requires=["no_such_package"])
def read_missing(connection, table):
    pass

@transport("", "", frame="polars")
def read_noisy(connection, table):
    print("from Python")
    os.system("echo from a child")
    os.write(1, b"from C\\n")
    return read_polars(connection, table)

@transport("", "", frame="polars")
def read_forever(connection, table):
    pipe = open(os.environ["LAB_ALIVE"], "w")
    print(os.getpid(), file=pipe, flush=True)
    time.sleep(60)

@transport("", "", frame="polars")
def read_in_phases(connection, table):
    import polars
    from harness.registry import phase
    with phase("encode" if table == "warmup" else "decode"):
        return polars.DataFrame({"k": ["a"], "i": [7]})
"""
UP_ASYNC = """
@asynccontextmanager
async def connect(uri):
    log("connect", uri)
    yield "connection"
    log("close")

@transport("", "", requires=["needed"])
async def read_polars(connection, table):
    import asyncio, polars
    await asyncio.sleep(0)
    log("read", connection, table)
    return polars.DataFrame({"k": ["a"], "i": [7]})

@transport("", "", frame="polars")
async def read_watched(connection, table):
    import polars
    polars.DataFrame.__repr__ = lambda frame: log("printed") or "a frame"
    return polars.DataFrame({"k": ["a"], "i": [7]})

@transport("", "", frame="polars")
async def read_in_phases(connection, table):
    import polars
    from harness.registry import phase
    with phase("encode" if table == "warmup" else "decode"):
        return polars.DataFrame({"k": ["a"], "i": [7]})
"""


class Lab(MadeUp):
    """Made-up transports of a database, and the frame that writes are given."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, up=UP, up_async=UP_ASYNC)
        frame = pl.DataFrame({"k": [str(n) for n in range(1_500)], "i": range(1_500)}, schema_overrides={"i": pl.Int32})
        frame.write_parquet(folder / "data.parquet")

    def job(self, function: str, module: str = "up") -> DatabaseJob:
        return DatabaseJob(
            transport=f"made.{module}.{function}",
            dataset=str(self.folder / "data.parquet"),
            logical_types=LOGICAL_TYPES,
            addresses=Addresses("made://up"),
            table="measured",
            warmup_table="warmup",
        )

    def measure(self, function: str, module: str = "up") -> DatabaseAnswer | Failed:
        return self.run(self.job(function, module))


pytestmark = pytest.mark.process


@dataclass(frozen=True, kw_only=True)
class OfNoContract(Job[DatabaseAnswer]):
    contract = "nothing"


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


class Staying(Lab):
    """The same with one worker for all jobs, for tests of which nothing but the answer counts."""

    worker = None

    def run(self, job):
        if self.worker is None or self.worker.ended:
            self.worker = Worker(self.log, self.command)
        self.result.unlink(missing_ok=True)
        return self.worker.ask(replace(job, result=str(self.result), stays=True), 120).answer


@pytest.fixture(scope="module")
def staying(tmp_path_factory):
    lab = Staying(tmp_path_factory.mktemp("staying"))
    yield lab
    lab.worker.end()


def test_a_write_imports_connects_warms_up_with_1000_rows_and_measures_all_rows_once(lab):
    answer = lab.measure("write_polars")
    words, times = lab.events()
    assert words == [
        "import",
        "connect made://up",
        "write connection 1000 warmup",
        "write connection 1500 measured",
        "close",
    ]
    assert answer.status == Status.OK
    assert times[2] < answer.measured.report.started_ns < times[3] < answer.measured.report.ended_ns < times[4]


@pytest.mark.long
def test_a_pandas_transport_is_handed_a_pandas_frame(lab):
    lab.measure("write_pandas")
    assert lab.events()[0][1:3] == ["write pandas 1000 warmup", "write pandas 1500 measured"]


@pytest.mark.parametrize("module", ["up", "up_async"])
def test_a_read_warms_up_on_the_small_table_and_measures_one_read_of_the_other(lab, module):
    answer = lab.measure("read_polars", module)
    words, times = lab.events()
    assert words == ["import", "connect made://up", "read connection warmup", "read connection measured", "close"]
    assert times[2] < answer.measured.report.started_ns < times[3] < answer.measured.report.ended_ns < times[4]
    assert answer.measured.connect_seconds >= 0


@pytest.mark.parametrize("module", ["up", "up_async"])
def test_of_the_phases_only_those_of_the_measured_call_are_reported(staying, module):
    details = staying.measure("read_in_phases", module).measured.details
    assert [name for name in ("encode_seconds", "decode_seconds") if name in details] == ["decode_seconds"]
    assert details["decode_seconds"] >= 0


def test_no_frame_is_printed_which_polars_cannot_do_with_every_date(lab):
    assert lab.measure("read_watched", "up_async").status == Status.OK
    assert lab.events()[0] == ["connect made://up", "close"]


def test_a_read_leaves_its_canonical_frame_and_names_what_was_converted(staying):
    answer = staying.measure("read_polars")
    assert answer.converted == {"i": "Int64"}
    assert pl.read_ipc(staying.result).to_dicts() == [{"k": "a", "i": 7}]


@pytest.mark.parametrize(
    ("function", "status", "said"),
    [
        ("read_arrow", Status.ERROR, "by its name it must return a polars one"),  # its conversion was not timed
        ("read_half", Status.MISMATCH, "i: Float64 changes values when converted to int32"),
        ("read_unsupported", Status.UNSUPPORTED, "no such format"),
        ("read_missing", Status.ERROR, "no_such_package"),
        ("read_nothing", Status.ERROR, 'no transport "made.up'),
        ("read_panic", Status.ERROR, "Panic: out of range"),
    ],
)
def test_what_is_no_answer_has_a_status_and_a_reason_and_leaves_no_frame(staying, function, status, said):
    answer = staying.measure(function)
    assert answer.status is status
    assert said in answer.error
    assert not staying.result.exists()


def test_a_transport_that_raises_is_an_error_with_a_traceback_in_the_log(staying):
    answer = staying.measure("read_error")
    assert (answer.status, answer.error) == (Status.ERROR, "RuntimeError: server said: \udcff no")
    assert "in read_error" in staying.log.read_text()


def test_a_transport_that_leaves_the_process_is_an_error(lab):
    said = 'the worker ended with exit code 1 and no answer: "left"'
    assert lab.measure("read_exit") == Failed(Status.ERROR, said)


def test_a_contract_that_does_not_exist_is_an_error_that_names_it(staying):
    answer = staying.run(OfNoContract(transport="made.up.read_polars"))
    assert answer.status == Status.ERROR
    assert "harness.worker.contracts.nothing" in answer.error


def test_what_a_client_prints_is_in_the_log_and_not_in_the_answer(lab):
    assert lab.measure("read_noisy").status == Status.OK
    log = lab.log.read_text()
    assert all(log.count(text) == 2 for text in ("from Python", "from a child", "from C"))


def test_a_worker_ends_itself_when_its_parent_is_killed(lab):
    os.mkfifo(lab.folder / "alive")
    parent = textwrap.dedent(f"""
        import pathlib
        from harness.run.execution import Worker
        from harness.worker.contracts.databases import Addresses, DatabaseJob
        job = DatabaseJob(transport="made.up.read_forever", dataset="", logical_types={{}}, addresses=Addresses("made://up"))
        Worker(pathlib.Path({str(lab.log)!r}), {lab.command!r}).ask(job, 60)
    """)
    environment = os.environ | {"LAB_ALIVE": str(lab.folder / "alive")}
    with (
        subprocess.Popen((sys.executable, "-c", parent), env=environment) as process,
        (lab.folder / "alive").open() as alive,
    ):
        worker = int(alive.readline())
        process.kill()
        assert ends(worker, alive)


def test_a_worker_that_stays_answers_one_job_after_the_other_and_imports_once(lab):
    worker = Worker(lab.log, lab.command)
    job = replace(lab.job("read_polars"), result=str(lab.result), stays=True)
    try:
        answers = [
            worker.ask(replace(job, transport=f"made.up.{name}"), 120).answer for name in ("read_polars", "read_error")
        ]
        answers.append(worker.ask(job, 120).answer)
        assert [answer.status for answer in answers] == [Status.OK, Status.ERROR, Status.OK]
        assert lab.events()[0].count("import") == 1
        assert not worker.ended
        panicked = worker.ask(replace(job, transport="made.up.read_panic"), 120)
        assert panicked.answer == Failed(Status.ERROR, "Panic: out of range")
        assert worker.ended  # a panic leaves a client in an unknown state
    finally:
        worker.end()
    assert worker.ended


def ends(worker, alive):
    """Wait for the pipe that the worker holds to close; end a worker that stays."""
    if wait([alive], 60):
        return alive.read() == ""
    os.kill(worker, signal.SIGKILL)
    return False


def executed(lab: Lab, function: str, module: str = "up", **more: object) -> tuple[DatabaseAnswer, list[int]]:
    """Run a made-up transport; return its answer and the number of events at every pause."""
    pauses: list[int] = []
    job = replace(lab.job(function, module), **more)
    found = lab.run(job, paused=lambda: pauses.append(len(lab.events()[0])))
    assert isinstance(found, DatabaseAnswer), found
    return found, pauses


def test_the_third_call_is_measured_after_two_of_the_same_and_a_pause_after_each(lab: Lab) -> None:
    found, pauses = executed(lab, "write_polars", call=3, warmup_table="")
    words, times = lab.events()
    assert words[2:] == [*["write connection 1500 measured"] * 3, "close"]
    assert pauses == [3, 4]
    assert found.status is Status.OK
    assert times[3] < found.measured.report.started_ns < times[4]


@pytest.mark.parametrize("module", ["up", "up_async"])
def test_a_first_call_has_nothing_before_it(lab: Lab, module: str) -> None:
    found, pauses = executed(lab, "read_polars", module, call=1, warmup_table="")
    assert lab.events()[0][1:] == ["connect made://up", "read connection measured", "close"]
    assert pauses == []
    assert found.status is Status.OK


@pytest.mark.parametrize("module", ["up", "up_async"])
def test_a_worker_that_begins_together_with_others_pauses_when_connected_and_warm(lab: Lab, module: str) -> None:
    found, pauses = executed(lab, "read_polars", module, together=True)
    words = lab.events()[0]
    assert words[1:] == ["connect made://up", "read connection warmup", "read connection measured", "close"]
    assert pauses == [3]
    assert found.status is Status.OK


def asked(lab: Lab, function: str, module: str = "up", tables: tuple[str, ...] = ("one", "two", "three")) -> object:
    one = replace(lab.job(function, module), warmup_table="")
    jobs = [replace(one, table=table, result=str(lab.folder / table)) for table in tables]
    return lab.run(SeveralTablesJob(transport=one.transport, jobs=jobs))


@pytest.mark.long
@pytest.mark.parametrize("module", ["up", "up_async"])
def test_every_table_is_read_over_one_connection_to_its_own_place(lab: Lab, module: str) -> None:
    answer = asked(lab, "read_polars", module)
    assert isinstance(answer, SeveralTablesAnswer), answer
    assert answer.converted == [{"i": "Int64"}] * 3
    calls = [f"read connection {table}" for table in ("one", "two", "three")]
    assert lab.events()[0][1:] == ["connect made://up", *calls, "close"]
    for table in ("one", "two", "three"):
        assert pl.read_ipc(lab.folder / table).rows() == [("a", 7)]


def test_every_table_is_written(lab: Lab) -> None:
    answer = asked(lab, "write_polars", tables=("one", "two"))
    assert isinstance(answer, SeveralTablesAnswer), answer
    assert answer.converted == [{}, {}]
    calls = [f"write connection 1500 {table}" for table in ("one", "two")]
    assert lab.events()[0][1:] == ["connect made://up", *calls, "close"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "status", "error"),
    [
        ("read_half", Status.MISMATCH, "Float64 changes values"),
        ("read_error", Status.ERROR, "server said"),
        ("read_arrow", Status.ERROR, "by its name it must return a polars one"),
    ],
)
def test_what_fails_with_one_table_fails(lab: Lab, function: str, status: Status, error: str) -> None:
    answer = asked(lab, function)
    assert isinstance(answer, Failed)
    assert answer.status is status
    assert error in answer.error


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets; no phase of another test is left."""
    now = [0.0]
    monkeypatch.setattr(registry.phases, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    registry.forget_phases()
    yield now
    registry.forget_phases()


def test_parts_of_a_phase_add_up_in_the_order_in_which_phases_first_ended_and_what_is_forgotten_does_not_count(clock):
    for name, at in (("encode", 1.0), ("send", 3.0), ("encode", 7.0)):
        with registry.phase(name):
            clock[0] = at
    assert list(registry.phase_seconds().items()) == [("encode", 1.0 + 4.0), ("send", 2.0)]
    registry.forget_phases()
    assert registry.phase_seconds() == {}


def test_a_phase_that_overlaps_another_counts_in_both_and_one_that_fails_counts(clock):
    with suppress(KeyError), registry.phase("receive"):
        clock[0] = 1.0
        with registry.phase("decode"):
            clock[0] = 3.0
            raise KeyError
    assert registry.phase_seconds() == {"decode": 2.0, "receive": 3.0}
