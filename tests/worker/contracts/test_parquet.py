"""The worker with made-up transports of files: what it calls in which order; only a whole number is an answer."""

import pytest

from harness.model import Status
from harness.worker.contracts.parquet import ParquetJob
from harness.worker.messages import Failed
from tests.made_up import MadeUp

pytestmark = pytest.mark.process

UP = """
@contextmanager
def connect(folder):
    log("connect", folder)
    yield "connection"
    log("close")

def scan(name, returned):
    def function(connection, files):
        log(name, connection, *files)
        return returned()
    function.__name__ = name
    function.__module__ = __name__
    transport("", "", operation="scan", requires=["needed"])(function)

class Number(int):
    pass

def refuse():
    raise Unsupported("no decimals")

def numpy_number():
    import numpy
    return numpy.int64(7)

scan("scan", lambda: 7)
scan("none_pass", lambda: 0)
scan("float_count", lambda: 7.0)
scan("bool_count", lambda: True)
scan("text_count", lambda: "7")
scan("subclass_count", lambda: Number(7))
scan("numpy_count", numpy_number)
scan("no_count", lambda: None)
scan("rows", lambda: [(1,), (2,)])
scan("refused", refuse)
"""
FILES = ["one.parquet", "it's two.parquet", "one.parquet"]


@pytest.fixture
def made(tmp_path):
    return MadeUp(tmp_path, up=UP)


def job(function):
    return ParquetJob(transport=f"made.up.{function}", folder="scratch", files=FILES, warmup_files=["tiny.parquet"])


def test_a_scan_warms_up_on_the_small_files_over_the_same_connection_and_measures_one_scan_of_all(made):
    answer = made.run(job("scan"))
    words, times = made.events()
    assert words == [
        "import",
        "connect scratch",
        "scan connection tiny.parquet",
        "scan connection one.parquet it's two.parquet one.parquet",
        "close",
    ]
    assert times[2] < answer.measured.report.started_ns < times[3] < answer.measured.report.ended_ns < times[4]
    assert (answer.status, answer.count) == (Status.OK, 7)


def test_no_row_that_passes_is_an_answer(made):
    answer = made.run(job("none_pass"))
    assert (answer.status, answer.count) == (Status.OK, 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "found"),
    [
        ("float_count", "7.0"),
        ("bool_count", "True"),
        ("text_count", "'7'"),
        ("subclass_count", "7"),
        ("numpy_count", "np.int64(7)"),
        ("no_count", "None"),
        ("rows", "[(1,), (2,)]"),
    ],
)
def test_what_is_no_whole_number_is_an_error_that_shows_it(made, function, found):
    answer = made.run(job(function))
    assert answer == Failed(Status.ERROR, f"expected a number of rows, found {found}")


def test_an_engine_that_cannot_do_it_says_so(made):
    assert made.run(job("refused")) == Failed(Status.UNSUPPORTED, "no decimals")
