"""The worker with made-up stores and files: the order of its calls, the data that it hands over, wrong answers."""

from dataclasses import replace

import polars as pl
import pyarrow as pa
import pytest

from harness import registry
from harness.model import Status
from harness.worker.contracts import stores
from harness.worker.contracts.parquet import ParquetJob
from harness.worker.contracts.stores import StoreJob
from harness.worker.measure import Stopwatch
from harness.worker.messages import Failed, Measured
from tests.made_up import MadeUp

LOGICAL_TYPES = {"a": "int64", "b": "int64"}
UP = """
@contextmanager
def connect(folder):
    log("connect", folder)
    yield folder
    log("close", folder)

def create(frame):
    def function(store, data):
        first = data.slice(0, 1).to_pylist() if frame == "pyarrow" else data[0]
        log(type(data).__module__, type(data).__name__, len(data), first, store)
    function.__name__, function.__module__ = f"create_{frame}", __name__
    transport("", "", operation="create", frame=frame, requires=["needed"])(function)

for frame in ("dicts", "tuples", "pyarrow"):
    create(frame)

@transport("", "", frame="tuples", requires=["needed"])
def read(store):
    log("read", store)
    return [(1, 4), (2, 5), (3, 6)]

@transport("", "", frame="pyarrow", requires=["needed"])
def query(store):
    import pyarrow
    log("query", store)
    return pyarrow.table({"id": [1], "a": [2], "b": [5]})

@transport("", "", frame="tuples")
def read_lists(store):
    return [[1, 4], [2, 5]]
"""
UP_ASYNC = """
@asynccontextmanager
async def connect(folder):
    log("connect", folder)
    yield folder
    log("close", folder)

@transport("", "", frame="tuples", requires=["needed"])
async def read(store):
    log("read", store)
    return [(1, 4), (2, 5), (3, 6)]
"""


@pytest.fixture
def made(tmp_path):
    """Made-up stores, and the data that they are made of: three rows, and two for the warm-up."""
    pl.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]}).write_parquet(tmp_path / "data.parquet")
    pl.DataFrame({"a": [7, 8], "b": [9, 10]}).write_parquet(tmp_path / "warmup.parquet")
    return MadeUp(tmp_path, up=UP, up_async=UP_ASYNC)


def measure(made, function, module="up"):
    return made.run(job(made.folder, f"made.{module}.{function}"))


def job(folder, transport, result=""):
    return StoreJob(
        transport=transport,
        result=str(result),
        folder="store",
        warmup_folder="small",
        dataset=str(folder / "data.parquet"),
        warmup_dataset=str(folder / "warmup.parquet"),
        rows=3,
        logical_types=LOGICAL_TYPES,
    )


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(
    ("frame", "small", "whole"),
    [
        ("dicts", "builtins list 2 {'a': 7, 'b': 9} small", "builtins list 3 {'a': 1, 'b': 4} store"),
        ("tuples", "builtins list 2 (7, 9) small", "builtins list 3 (1, 4) store"),
        ("pyarrow", "pyarrow.lib Table 2 [{'a': 7, 'b': 9}] small", "pyarrow.lib Table 3 [{'a': 1, 'b': 4}] store"),
    ],
)
def test_a_create_warms_up_on_its_own_store_and_measures_one_create_of_all_rows(made, frame, small, whole):
    answer = measure(made, f"create_{frame}")
    words, times = made.events()
    assert words == ["import", "connect small", small, "close small", "connect store", whole, "close store"]
    assert times[4] < answer.measured.report.started_ns < times[5] < answer.measured.report.ended_ns < times[6]
    assert (answer.status, answer.converted) == (Status.OK, {})
    assert not made.result.exists()


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(("function", "module"), [("read", "up"), ("read", "up_async"), ("query", "up")])
def test_a_read_or_query_warms_up_on_the_small_store_over_its_own_connection(made, function, module):
    answer = measure(made, function, module)
    words, times = made.events()
    assert words == [
        "import",
        *("connect small", f"{function} small", "close small"),
        *("connect store", f"{function} store", "close store"),
    ]
    assert times[4] < answer.measured.report.started_ns < times[5] < answer.measured.report.ended_ns < times[6]
    assert (answer.status, answer.converted) == (Status.OK, {})
    assert answer.measured.connect_seconds < 1
    assert pl.read_ipc(made.result).rows() == {"read": [(1, 4), (2, 5), (3, 6)], "query": [(2, 5)]}[function]


@pytest.mark.process
def test_an_answer_of_a_wrong_type_is_a_mismatch_and_leaves_no_frame(made):
    answer = measure(made, "read_lists")
    assert answer.status == Status.MISMATCH
    assert "the transport did not return a list of tuples; return one with 2 values in each tuple" in answer.error
    assert not made.result.exists()


@pytest.fixture
def hand_over(tmp_path):
    """Hand over the data that a store returned, as the worker does; return the answer and the rows that were left."""

    def call(frame, returned):
        entry = replace(registry.one("stores_published.sqlite.read"), frame=frame)
        result = tmp_path / "result.arrow"
        with Stopwatch() as stopwatch:
            pass
        measured = Measured(0.0, stopwatch.report(), {})
        answer = stores.hand_over(entry, returned, job(tmp_path, entry.id, result), measured)
        if not result.exists():
            return answer, None
        assert answer.measured is measured
        left = pl.read_ipc(result)
        assert left.schema == {"a": pl.Int64, "b": pl.Int64}
        return answer, left.rows()

    return call


def with_id(*numbers):
    return pa.table({"id": list(numbers), "a": [1, 2, 3], "b": [4, 5, 6]})


@pytest.mark.parametrize(
    ("frame", "returned", "rows", "converted"),
    [
        ("tuples", [(1, 4), (2, 5)], [(1, 4), (2, 5)], {}),
        ("tuples", [], [], {}),
        ("tuples", [(1, None)], [(1, None)], {"b": "Null"}),
        ("tuples", [(1, 4.0), (2, 5.0)], [(1, 4), (2, 5)], {"b": "Float64"}),
        ("tuples", [(1, "4")], [(1, 4)], {"b": "String"}),
        ("pyarrow", pa.table({"a": [1], "b": [4]}), [(1, 4)], {}),
        ("pyarrow", pa.schema([("a", pa.int64()), ("b", pa.int64())]).empty_table(), [], {}),
        ("pyarrow", pa.table({"a": pa.array([1], pa.int32()), "b": [4]}), [(1, 4)], {"a": "Int32"}),
        ("pyarrow", pa.table({"b": [4], "a": [1]}), [(1, 4)], {"columns": "in another order"}),
        ("pyarrow", with_id(2, 0, 1), [(1, 4), (2, 5), (3, 6)], {}),
        ("pyarrow", with_id(2, 0, 1).slice(1, 1), [(2, 5)], {}),  # a query keeps the numbers of its rows
    ],
)
def test_what_a_store_returned_is_left_as_a_canonical_frame_without_the_numbers_of_its_rows(
    hand_over, frame, returned, rows, converted
):
    answer, left = hand_over(frame, returned)
    assert (answer.status, answer.converted, left) == (Status.OK, converted, rows)


@pytest.mark.parametrize(
    ("frame", "returned", "said"),
    [
        ("tuples", [(1, 4), (2, 5.5)], "b: Float64 changes values when converted to int64"),
        ("tuples", [(1, "four")], "b: String does not convert to int64"),
        ("tuples", [(1, 2**63)], "b: Int128 does not convert to int64"),
        ("tuples", [(1, b"4")], "b: Binary does not convert to int64"),
        ("tuples", [[1, 4], [2, 5]], "did not return a list of tuples; return one with 2 values"),
        ("tuples", ((1, 4), (2, 5)), "did not return a list of tuples"),
        ("tuples", iter([(1, 4), (2, 5)]), "did not return a list of tuples"),
        ("tuples", [(1, 4), (2,)], "did not return a list of tuples"),
        ("tuples", [(1, 4, 9)], "did not return a list of tuples"),
        ("tuples", [1, 2], "did not return a list of tuples"),
        ("tuples", None, "did not return a list of tuples"),
        ("tuples", with_id(0, 1, 2), "did not return a list of tuples"),
        ("pyarrow", [(1, 4)], "the transport returned a list; return a pyarrow Table"),
        ("pyarrow", None, "the transport returned a NoneType; return a pyarrow Table"),
        ("pyarrow", with_id(0, 1, 2).to_batches()[0], "the transport returned a RecordBatch; return a pyarrow Table"),
        ("pyarrow", with_id(0, 1, 2).to_reader(), "the transport returned a RecordBatchReader; return a pyarrow Table"),
        ("pyarrow", pl.DataFrame({"a": [1], "b": [4]}), "the transport returned a DataFrame; return a pyarrow Table"),
        ("pyarrow", pa.table({"a": [1], "b": [4], "c": [7]}), "the columns are a, b, c instead of a, b"),
        ("pyarrow", pa.table({"a": [1]}), "the columns are a instead of a, b"),
        ("pyarrow", pa.table({"a": [1], "B": [4]}), "the columns are a, B instead of a, b"),
        ("pyarrow", pa.table([[1], [1], [4]], names=["a", "a", "b"]), "the columns are a, a, b instead of a, b"),
        ("pyarrow", pa.table({"a": [1.0, 2.5], "b": [4, 5]}), "a: Float64 changes values"),
        ("pyarrow", with_id(0, 1, 1), "return different whole numbers from 0 to 2"),
        ("pyarrow", with_id(1, 2, 3), "return different whole numbers from 0 to 2"),
        ("pyarrow", with_id(-1, 0, 1), "return different whole numbers from 0 to 2"),
        ("pyarrow", with_id(0, None, 1), "return different whole numbers from 0 to 2"),
        ("pyarrow", with_id("0", "1", "2"), "return different whole numbers from 0 to 2"),
        ("pyarrow", with_id(0.0, 0.5, 1.0), "return different whole numbers from 0 to 2"),
    ],
)
def test_what_is_not_the_rows_of_the_store_is_a_mismatch_and_leaves_no_frame(hand_over, frame, returned, said):
    answer, left = hand_over(frame, returned)
    assert answer.status == Status.MISMATCH
    assert said in answer.error
    assert left is None


SCANS = """
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
def scans(tmp_path):
    return MadeUp(tmp_path, up=SCANS)


def scan_of(function):
    return ParquetJob(transport=f"made.up.{function}", folder="scratch", files=FILES, warmup_files=["tiny.parquet"])


@pytest.mark.process
def test_a_scan_warms_up_on_the_small_files_over_the_same_connection_and_measures_one_scan_of_all(scans):
    answer = scans.run(scan_of("scan"))
    words, times = scans.events()
    assert words == [
        "import",
        "connect scratch",
        "scan connection tiny.parquet",
        "scan connection one.parquet it's two.parquet one.parquet",
        "close",
    ]
    assert times[2] < answer.measured.report.started_ns < times[3] < answer.measured.report.ended_ns < times[4]
    assert (answer.status, answer.count) == (Status.OK, 7)


@pytest.mark.process
def test_no_row_that_passes_is_an_answer(scans):
    answer = scans.run(scan_of("none_pass"))
    assert (answer.status, answer.count) == (Status.OK, 0)


@pytest.mark.process
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
def test_what_is_no_whole_number_is_an_error_that_shows_it(scans, function, found):
    answer = scans.run(scan_of(function))
    assert answer == Failed(Status.ERROR, f"the transport returned {found}; return the number of rows, an int")
