"""The clock adds nothing to a call, and memory is seen where it is: anonymous or file-backed, also when given back."""

import ast
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from dataclasses import dataclass

import pytest

from harness.model import Bucket, ObjectStore, SharedFolder, Status
from harness.run.execution import Worker
from harness.worker.contracts.databases import Addresses, DatabaseJob
from harness.worker.contracts.elt import EltJob
from harness.worker.contracts.parquet import ParquetJob
from harness.worker.contracts.several_tables import SeveralTablesJob
from harness.worker.contracts.stores import StoreJob
from harness.worker.contracts.tuning import TuningJob
from harness.worker.lines import line, made
from harness.worker.measure import (
    Memory,
    Sample,
    Stopwatch,
    StopwatchReport,
    cores_used,
    peaks_above_start,
    read_cpu_seconds,
    read_memory,
    read_steal_seconds,
    read_throttled_seconds,
    wait_for_other_threads,
)

MB = 1_000_000
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells anonymous from file-backed memory")


BODIES = """
import mmap, sys, time
import numpy as np
from harness.worker.measure import Sample, Stopwatch, peaks_above_start, read_memory, reset_high_water

MB = 1_000_000


def sample_now():
    return Sample(time.monotonic_ns(), read_memory())


with Stopwatch() as busy:
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
with Stopwatch() as idle:
    time.sleep(0.1)

with Stopwatch() as allocating:
    held = np.ones(8 * MB)
    samples = {"allocating": [sample_now()]}
del held

with open(sys.argv[1], "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
    with Stopwatch() as reading:
        total = sum(mapped[at] for at in range(0, len(mapped), mmap.PAGESIZE))
        samples["reading"] = [sample_now()]

np.ones(1)
with Stopwatch() as taking:
    np.ones(8 * MB)
with Stopwatch() as after_taking:
    np.ones(1)

watches = {name: watch for name, watch in globals().items() if isinstance(watch, Stopwatch)}
print({
    name: {
        "seconds": watch.seconds,
        "cpu": watch.cpu_user_seconds + watch.cpu_system_seconds,
        "grown": watch.after.rss - watch.before.rss,
        "peaks": peaks_above_start(watch.report(), samples.get(name, [])),
    }
    for name, watch in watches.items()
} | {"resets": reset_high_water()})
"""


@pytest.fixture(scope="module")
def bodies(tmp_path_factory):
    """The figures of six bodies, in a process that did nothing else: a used process would reuse memory."""
    path = tmp_path_factory.mktemp("bodies") / "data"
    path.write_bytes(bytes(32 * MB))
    done = subprocess.run((sys.executable, "-c", BODIES, str(path)), capture_output=True, text=True, check=True)
    return ast.literal_eval(done.stdout)


def report_of(before, after, high_water=None, started_ns=100, ended_ns=200):
    clocks = {"seconds": 1e-7, "cpu_user_seconds": 0.0, "cpu_system_seconds": 0.0}
    taken = {"steal_seconds": None, "throttled_seconds": None}
    times = {"started_ns": started_ns, "ended_ns": ended_ns}
    return StopwatchReport(
        **clocks, **taken, **times, before=Memory(*before), after=Memory(*after), high_water=high_water
    )


def sample(at_ns, *sizes):
    return Sample(at_ns, Memory(*sizes))


@pytest.mark.long
@pytest.mark.process
def test_a_body_that_does_nothing_takes_less_than_50_microseconds():
    code = textwrap.dedent("""
        import statistics
        from harness.worker.measure import Stopwatch
        seconds = []
        for _ in range(101):
            with Stopwatch() as stopwatch:
                pass
            seconds.append(stopwatch.seconds)
        print(statistics.median(seconds))
    """)
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert 0 <= float(done.stdout) < 50e-6


@linux
@pytest.mark.parametrize(("thread_seconds", "least", "most"), [(0.0, 0.0, 0.05), (0.2, 0.15, 0.45), (2.0, 0.45, 1.5)])
def test_the_clock_starts_when_no_other_thread_runs_or_after_half_a_second(thread_seconds, least, most):
    zeros, until = bytes(50 * MB), time.monotonic() + thread_seconds

    def compute():
        while time.monotonic() < until:
            zlib.crc32(zeros)  # releases the interpreter's lock, for which it would wait asleep

    thread = threading.Thread(target=compute)
    thread.start()
    started = time.monotonic()
    wait_for_other_threads()
    waited = time.monotonic() - started
    thread.join()
    assert least <= waited <= most


@pytest.mark.process
def test_wall_and_cpu_time_are_distinguished(bodies):
    assert bodies["busy"]["cpu"] >= 0.08
    assert bodies["idle"]["seconds"] >= 0.1
    assert bodies["idle"]["cpu"] < 0.05


def test_a_body_that_raises_is_not_swallowed():
    with pytest.raises(ZeroDivisionError), Stopwatch():
        _ = 1 / 0


@linux
@pytest.mark.process
def test_an_allocation_is_seen_as_anonymous_memory(bodies):
    rss, anon, file = bodies["allocating"]["peaks"]
    assert 64 * MB <= rss < 80 * MB
    assert 64 * MB <= anon < 80 * MB
    assert file < 8 * MB


@linux
@pytest.mark.process
def test_a_mapped_file_that_is_read_is_seen_as_file_backed_memory(bodies):
    _, anon, file = bodies["reading"]["peaks"]
    assert 32 * MB <= file < 40 * MB
    assert anon < 8 * MB


@linux
@pytest.mark.process
@pytest.mark.parametrize(("body", "least", "most"), [("taking", 60, 80), ("after_taking", -80, 8)])
def test_memory_that_is_given_back_is_in_the_peak_of_the_call_that_took_it_even_between_samples(
    bodies, body, least, most
):
    if not bodies["resets"]:
        pytest.skip("this system does not let a process reset its high-water mark")
    rss, _, _ = bodies[body]["peaks"]
    assert bodies[body]["grown"] < 8 * MB
    assert least * MB <= rss < most * MB


START = (1_000, 600, 400)


@pytest.mark.parametrize(
    ("before", "after", "high_water", "samples", "peaks"),
    [
        (START, (1_100, 650, 450), None, [(99, 9_000, 8_000, 1_000), (201, 9_000, 8_000, 1_000)], (100, 50, 50)),
        (START, START, None, [(100, 1_500, 1_100, 400)], (500, 500, 0)),  # from the first nanosecond
        (START, START, None, [(200, 1_500, 600, 900)], (500, 0, 500)),  # to the last
        (START, START, None, [(120, 1_300, 900, 400), (150, 1_200, 600, 600)], (300, 300, 200)),  # not together
        (START, START, 1_700, [], (700, 0, 0)),
        (START, START, 1_200, [(150, 1_900, 1_500, 400)], (900, 900, 0)),  # the mark is below the samples
        (START, (200, 100, 100), 1_000, [(150, 500, 300, 200)], (0, 0, 0)),  # it only gives memory back
        ((1_000,), (1_400,), None, [(150, 1_500)], (500, None, None)),  # the system does not split memory
    ],
)
def test_peaks_are_those_of_the_samples_within_the_call_and_of_the_high_water_mark(
    before, after, high_water, samples, peaks
):
    assert peaks_above_start(report_of(before, after, high_water), [sample(*one) for one in samples]) == peaks


@pytest.mark.process
def test_a_process_that_has_ended_has_no_memory():
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ProcessLookupError):  # not reaped yet: a zombie
        read_memory(process.pid)
    process.wait()
    with pytest.raises(ProcessLookupError):
        read_memory(process.pid)


def test_the_memory_of_another_process_is_read():
    assert 0 < read_memory(os.getppid()).rss != read_memory().rss


@pytest.mark.process
def test_the_cpu_time_of_a_process_is_that_of_all_its_threads():
    code = "import threading, time; work = lambda: [hash(str(n)) for n in range(10**5)]; "
    code += "t = threading.Thread(target=work); t.start(); t.join(); print(time.process_time(), flush=True); input()"
    with subprocess.Popen((sys.executable, "-c", code), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        own = float(process.stdout.readline())
        assert read_cpu_seconds(process.pid) == pytest.approx(own, abs=0.03)
        process.communicate(b"\n")
        process.wait()
    with pytest.raises(ProcessLookupError):
        read_cpu_seconds(process.pid)


def test_the_cores_in_use_are_cpu_time_by_time_between_samples_within_the_call():
    samples = [
        Sample(at, Memory(1), cpu)
        for at, cpu in (
            (50, 0.0),
            (1_000_000_000, 1.0),
            (1_500_000_000, 2.0),
            (2_500_000_000, 2.5),
            (9_000_000_000, 9.0),
        )
    ]
    report = report_of((1,), (1,), started_ns=1_000_000_000, ended_ns=3_000_000_000)
    assert cores_used(report, samples) == [(0.5, 2.0), (1.5, 0.5)]
    assert cores_used(report, samples[:2]) == []
    assert cores_used(report, [Sample(2_000_000_000, Memory(1)), Sample(2_500_000_000, Memory(1))]) == []


def test_steal_is_the_eighth_number_of_all_cores_in_seconds(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 250 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n")
    assert read_steal_seconds(stat) == 250 / os.sysconf("SC_CLK_TCK")
    stat.write_text("cpu  1 2 3 4\n")
    assert read_steal_seconds(stat) is None
    assert read_steal_seconds(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("groups", "stats", "seconds"),
    [
        ("0::/lab/run\n", {"lab/run": "usage_usec 5\nthrottled_usec 1500000\n"}, 1.5),
        ("0::/not/ours\n", {".": "throttled_usec 2000000\n"}, 2.0),  # of a container, whose own group is the root
        ("0::/\n", {".": "usage_usec 5\n"}, None),  # no limit can be set on the root of a machine
        ("3:cpu,cpuacct:/lab\n1:name=systemd:/\n", {"cpu,cpuacct/lab": "throttled_time 250000000\n"}, 0.25),
        ("5:cpuset:/\n1:cpu:/\n0::/\n", {"cpu": "nr_throttled 0\nthrottled_time 0\n"}, 0.0),
        ("0::/lab\n", {}, None),
        (None, {}, None),
    ],
    ids=["version 2", "container", "root", "version 1", "both versions", "nothing there", "no control groups"],
)
def test_throttling_is_read_from_the_own_control_group(tmp_path, groups, stats, seconds):
    for folder, text in stats.items():
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "cpu.stat").write_text(text)
    if groups:
        (tmp_path / "groups").write_text(groups)
    assert read_throttled_seconds(tmp_path / "groups", tmp_path) == seconds


def test_what_others_took_is_the_difference_over_the_body(monkeypatch):
    taken = iter([(1.25, None), (1.5, 3.0)])
    monkeypatch.setattr("harness.worker.measure._taken", lambda: next(taken))
    with Stopwatch() as stopwatch:
        pass
    report = stopwatch.report()
    assert (report.steal_seconds, report.throttled_seconds) == (0.25, None)


STORE = ("http://h:1", "here", "key", "secret")
JOBS = [
    DatabaseJob(
        transport="a.b.c",
        result="result.arrow",
        stays=True,
        server_pids=[1, 2],
        dataset="data.parquet",
        logical_types={"é\n": "int64", "dataset": "uuid"},
        addresses=Addresses("postgresql://u:p@h", SharedFolder("/here", "/there"), Bucket(*STORE, "a bucket")),
        table="t",
        source="s",
    ),
    DatabaseJob(transport="a.b.c", dataset="data.parquet", logical_types={}),
    ParquetJob(transport="a.b.c", folder="f", files=["it's one", "two"], warmup_files=[]),
    EltJob(
        transport="a.b.c",
        folder="f",
        s3=ObjectStore(*STORE),
        source="s",
        destination="d",
        warmup_source="s",
        warmup_destination="d",
    ),
    TuningJob(
        transport="a.b.c", folder="f", s3=None, arguments={"threads": 2, "x": 0.5, "to": "d"}, warmup_arguments={}
    ),
    StoreJob(
        transport="a.b.c",
        folder="f",
        warmup_folder="w",
        dataset="data.parquet",
        warmup_dataset="w.parquet",
        rows=3,
        logical_types={"a": "int64"},
    ),
    SeveralTablesJob(
        transport="a.b.c",
        jobs=[
            DatabaseJob(
                transport="a.b.c",
                dataset="data.parquet",
                logical_types={},
                addresses=Addresses("postgresql://h"),
                table=t,
            )
            for t in ("t", "u")
        ],
    ),
]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.contract)
def test_a_job_comes_out_of_its_line_as_it_went_in(job):
    sent = line(job)
    assert (sent.count(b"\n"), sent[-1:]) == (1, b"\n")
    assert made(type(job), json.loads(sent)) == job


def test_what_has_no_json_is_not_sent():
    with pytest.raises(TypeError, match="Object of type set is not JSON serializable"):
        line({"a": {1}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"file": []}, r"ParquetJob: an unknown file; its fields are transport, .*, files, warmup_files$"),
        ({"files": ...}, r"^ParquetJob: no files; its fields are "),
        ({"files": ..., "file": [], "colour": 1}, "no files, an unknown colour, an unknown file; its fields are "),
    ],
)
def test_fields_too_many_or_too_few_are_named(change, said):
    fields = {name: value for name, value in {**vars(JOBS[2]), **change}.items() if value is not ...}
    with pytest.raises(ValueError, match=said):
        made(ParquetJob, fields)


def test_fields_that_are_missing_within_a_job_are_named():
    fields = json.loads(line(JOBS[0]))
    del fields["addresses"]["s3"]["region"]
    with pytest.raises(ValueError, match=r"^Bucket: no region; its fields are "):
        made(DatabaseJob, fields)


@pytest.mark.process
def test_a_worker_that_is_handed_a_job_of_another_version_says_so_and_ends(tmp_path):
    @dataclass(frozen=True, kw_only=True)
    class NewerJob(ParquetJob):
        contract = "parquet"
        colour: str = "red"

    worker = Worker(tmp_path / "log")
    answer = worker.ask(NewerJob(transport="a.b.c", folder="", files=[], warmup_files=[], stays=True), 120).answer
    assert answer.status is Status.ERROR
    assert answer.error.startswith("ValueError: ParquetJob: an unknown colour; its fields are transport, ")
    assert worker.ended
