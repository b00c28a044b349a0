"""Linux perf, which reads the memory controllers' counters: https://perfwiki.github.io/main/"""

from contextlib import contextmanager

from harness.registry import Unsupported, transport
from harness.transports.tuning.queries import TOP

EVENTS = ("uncore_imc/cas_count_read/", "uncore_imc/cas_count_write/")


@contextmanager
def connect(folder, s3):
    """Yield a connection to an empty database in memory."""
    import duckdb

    with duckdb.connect(config={"temp_directory": folder}) as connection:
        yield connection


@contextmanager
def _counted():
    """Yield a list that contains, after the block, the bytes that all memory controllers moved during it.

    perf scales these events to MiB. Raises Unsupported if it cannot read them.
    """
    import glob
    import shutil
    import signal
    import subprocess

    if not glob.glob("/sys/bus/event_source/devices/uncore_imc*") or not shutil.which("perf"):
        raise Unsupported(
            "no perf, or no counters of the memory controllers (/sys/bus/event_source/devices/uncore_imc*): only "
            "Intel servers that are not virtual have these"
        )
    command = ["perf", "stat", "--all-cpus", "--field-separator", ",", "--event", ",".join(EVENTS)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    counted: list[float] = []
    try:
        yield counted
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    lines = [line.split(",") for line in said.splitlines() if "cas_count" in line]
    if len(lines) != len(EVENTS) or any(unit != "MiB" for _, unit, *_ in lines):
        raise Unsupported(f"perf could not read the counters of the memory controllers: {said.strip():.200}")
    counted.append(sum(float(value) for value, *_ in lines) * 2**20)


@transport("GROUP BY, perf stat", "Parquet files", operation="job", origin="published")
def bandwidth_of_group_by(connection, source, elements, threads):
    """Return the group-by query's answer, its memory bandwidth in bytes per second, and its share of a triad's.

    Both come from the memory controllers' counters of the whole machine (cas_count). They cover the query, and rounds
    of a STREAM triad over three arrays of this many elements.
    """
    import time

    import numexpr
    import numpy

    if int(threads) > numexpr.MAX_THREADS:
        raise Unsupported(f"numexpr has at most {numexpr.MAX_THREADS} threads; set NUMEXPR_MAX_THREADS={threads}")
    numexpr.set_num_threads(int(threads))
    connection.execute(f"SET threads = {int(threads)}")
    b, c = numpy.full(int(elements), 2.0), numpy.full(int(elements), 0.5)
    result = numpy.zeros(int(elements))
    started = time.perf_counter()
    with _counted() as most:
        for _ in range(10):
            numexpr.evaluate("b + 3 * c", local_dict={"b": b, "c": c}, out=result)
    middle = time.perf_counter()
    with _counted() as used:
        rows = connection.execute(TOP, {"source": source}).fetchall()
    rate, most_rate = used[0] / (time.perf_counter() - middle), most[0] / (middle - started)
    details = {"memory_bytes_per_s": rate, "share_of_triad": rate / most_rate}
    return {"answer": [list(row) for row in rows], "details": details}
