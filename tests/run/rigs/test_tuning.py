"""The tuning rig: every job with its data, verified answers and files; each wrong answer has its message."""

import pytest

from harness import registry
from harness.datasets import benchmark_input
from harness.lab.packages import not_installed
from harness.model import LabError, Run, Status
from harness.results import folder as folders
from harness.run import runner
from harness.run.rigs import tuning, tuning_answers
from tests.made_up import MadeUp
from tests.run.rigs import orders

TABLE = {"rows": 20_000, "files": 3}


def case(transport, **values):
    """Return a case of a transport with these parameters."""
    return orders.case(transport, "benchmark_input", **values)


def fine(rows):
    """Say whether all runs are ok."""
    return [(row.status, row.error) for row in rows] == [(Status.OK, "")] * len(rows)


S3 = TABLE | {"threads": 2}


@pytest.mark.long
@pytest.mark.process
def test_the_queries_are_ok_from_a_table_and_from_files_with_several_threads(perform):
    cases = [
        case("tuning.duckdb.group_by", **TABLE, source=source, threads=threads)
        for source in ("table", "parquet")
        for threads in (1, 4)
    ]
    rows = perform(tuning, *cases, case("tuning.duckdb.jaro_winkler", **TABLE, source="table", threads=2))
    assert fine(rows)
    assert {(row.rows, row.lab) for row in rows} == {(20_000, "local")}
    assert len({row.bytes for row in rows}) == 1


@pytest.mark.long
@pytest.mark.process
def test_queries_side_by_side_and_in_a_row_are_ok(perform):
    values = TABLE | {"source": "parquet", "queries": 2, "threads": 2}
    assert fine(perform(tuning, case("tuning.duckdb.side_by_side", **values), case("tuning.duckdb.in_a_row", **values)))


@pytest.mark.long
@pytest.mark.process
def test_disk_writes_are_ok_with_what_they_wrote_and_as_many_bytes_for_the_limit(perform):
    names = ("duckdb.create_table", "duckdb.create_table_with_wal", "posix.sequential_write")
    rows = perform(tuning, *(case(f"tuning.{name}", **TABLE, source="parquet") for name in names))
    assert fine(rows)
    without, with_log, limit = (row.details for row in rows)
    assert without.keys() == with_log.keys() > {"ctas_seconds", "checkpoint_seconds", "output_bytes"}
    assert limit["bytes_per_s"] * rows[2].seconds == pytest.approx(without["output_bytes"], rel=0.6)
    assert without["output_files"] == 1


@pytest.mark.long
@pytest.mark.process
def test_a_triad_is_ok_and_its_extent_is_its_arrays(perform):
    name = "tuning.numexpr.triad"
    (row,) = perform(tuning, case(name, elements=100_000, threads=1))
    if reason := not_installed(registry.one(name).requires):
        assert (row.status, row.error) == (Status.UNAVAILABLE, reason)
        return
    assert fine([row])
    assert (row.rows, row.bytes) == (100_000, 2_400_000)


S3_WAYS = [
    *(("tuning.duckdb.copy_to_s3", "table"), ("tuning.duckdb.group_by", "s3")),
    *(
        (f"tuning.{client}.{way}", source)
        for client in ("boto3", "awscrt", "obstore")
        for way, source in (("upload", "table"), ("download", "s3"))
    ),
]


@pytest.mark.long
@pytest.mark.usefixtures("has_s3")
def test_every_way_to_and_from_s3_is_ok(perform):
    rows = perform(tuning, *(case(name, **S3, source=source) for name, source in S3_WAYS))
    missing = {name: text for name, _ in S3_WAYS if (text := not_installed(registry.one(name).requires))}
    without = {row.transport: (row.status, row.error) for row in rows if row.transport in missing}
    assert without == {name: (Status.UNAVAILABLE, text) for name, text in missing.items()}
    there = [row for row in rows if row.transport not in missing]
    assert fine(there)
    assert {row.lab for row in there} == {"embedded"}
    uploads = {name for name, source in S3_WAYS if source == "table"}
    moved = {way: {f"{way}_seconds", f"{way}_bytes_per_s"} for way in ("upload", "download")}
    assert all(moved.get(row.transport.rpartition(".")[2], set()) <= row.details.keys() for row in there)
    for row in (row for row in there if row.transport in uploads):
        found = row.details
        assert found["output_bytes"] == pytest.approx(found["output_bytes_per_s"] * row.seconds, rel=1e-6)
        assert found["output_files"] >= 1


@pytest.mark.long
@pytest.mark.process
def test_the_peak_of_the_disk_is_announced_before_the_start_and_is_one(settings, monkeypatch, tmp_path):
    said, largest, settle = [], [0], tuning.TuningRig.settle
    one = case("tuning.duckdb.create_table", rows=200_000, files=3, source="parquet")

    def measured(rig, case):
        largest.append(sum(path.stat().st_size for path in rig.folder.rglob("*") if path.is_file()))
        settle(rig, case)

    monkeypatch.setattr(tuning.TuningRig, "settle", measured)
    with tuning.opened(orders.order(settings, one, say=said.append)) as rig:
        runner.perform(orders.running(rig, tmp_path), [Run(one, 1, 1)], lambda row: said.append(row.status))
    assert said[0].startswith("tuning: up to 0.0 GB of disk, 0.0 GB of it removed at the end")
    assert said[-1] is Status.OK
    assert 1_000_000 < max(largest) < tuning._made_bytes(one, False) + 2 * tuning._FILE_BYTES


@pytest.mark.long
def test_after_an_error_everything_but_the_dataset_is_gone(settings):
    order = orders.order(settings, case("tuning.duckdb.group_by", **TABLE, source="table", threads=1))
    with pytest.raises(ZeroDivisionError), tuning.opened(order) as rig:
        1 / (len(list(rig.folder.glob("*.duckdb"))) - 2)  # the table and that of the warm-up are there
    assert not (settings.state_dir / "tuning").exists()


@pytest.mark.long
@pytest.mark.process
def test_a_trace_of_a_run_has_the_cores_it_used(perform, tmp_path):
    (row,) = perform(
        tuning, case("tuning.duckdb.jaro_winkler", rows=1_000_000, files=3, source="table", threads=1), traces=True
    )
    trace = folders.load_trace(folders.trace_path(tmp_path / "run", 1, row.transport))
    assert fine([row])
    assert all(0 < seconds <= row.seconds for seconds, _ in trace)
    busy = sum(cores for _, cores in trace) / len(trace)
    assert 0 < busy < 1.6  # one thread; on a busy machine it has less than a core


# Transports with names that the rig knows; each but the first of its sort is wrong in one respect.
MADE_UP = """
@contextmanager
def connect(folder, s3):
    yield s3

def top(source):
    from harness.transports.tuning import duckdb
    with duckdb.connect("", None) as connection:
        return duckdb.group_by(connection, source, 1)
"""
QUERIES = {
    "good": "return top(source)",
    "short": "return top(source)[:-1]",
    "swapped": "found = top(source); return [found[1], found[0], *found[2:]]",
    "more": "found = top(source); found[9][2] += 1; return found",
    "text": "return 'ten groups'",
    "nothing": "return None",
    "details": "return {'answer': top(source), 'details': {'stage_seconds': 0.25, 'bytes_per_s': 7}}",
    "words": "return {'answer': top(source), 'details': {'stage': 'fast'}}",
    "unsupported": "raise Unsupported('not on this machine')",
}
WRITES = {
    "less": "open(path, 'wb').write(bytes(size - 1)); return size",
    "silent": "open(path, 'wb').write(bytes(size))",
    "none": "return size",
    "full": "open(path, 'wb').write(bytes(size)); return size",
}
TABLES = {
    "kept": "SELECT * FROM '{source}'",
    "lost": "SELECT * FROM '{source}' LIMIT 19999",
    "changed": "SELECT col_1, col_2, amount + 1 AS amount FROM '{source}'",
    "mixed": "SELECT a.col_1, a.col_2, b.amount FROM (SELECT *, row_number() OVER () AS n FROM '{source}') a "
    "JOIN (SELECT *, row_number() OVER () AS n FROM '{source}') b ON b.n = 20001 - a.n",
}


def module(name, arguments, body):
    """The source of a module with one job of this name."""
    head = f"@transport('', '', operation='job')\ndef {name}(connection, {arguments}):"
    return f"{MADE_UP}\n{head}\n    {body}\n"


CREATE = """import duckdb
    with duckdb.connect(database) as made:
        made.execute('CREATE TABLE benchmark_input AS ' + {query!r}.format(source=source))
    return 20_000"""


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    modules = {name: module("group_by", "source", body) for name, body in QUERIES.items()}
    modules |= {name: module("sequential_write", "path, size", body) for name, body in WRITES.items()}
    modules |= {
        name: module("create_table", "source, database", CREATE.format(query=query)) for name, query in TABLES.items()
    }
    modules["unknown"] = module("other", "source", "pass")
    MadeUp(tmp_path, **modules).join(monkeypatch)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.usefixtures("made_up")
def test_a_wrong_answer_is_a_mismatch_and_details_are_in_their_column(perform):
    made = perform(tuning, *(case(f"made.{name}.group_by", **TABLE, source="parquet") for name in QUERIES))
    rows = dict(zip(QUERIES, made, strict=True))
    said = {
        "short": "expected the 10 largest groups",
        "swapped": "largest group 1: expected",
        "more": "largest group 10: expected",
        "text": "expected the 10 largest groups, found 'ten groups'",
        "nothing": "expected the 10 largest groups, found None",
    }
    for name, text in said.items():
        assert (rows[name].status, rows[name].seconds) == (Status.MISMATCH, None)
        assert text in rows[name].error
    assert fine([rows["good"], rows["details"]])
    assert rows["details"].details == {"stage_seconds": 0.25, "bytes_per_s": 7.0}
    assert (rows["words"].status, "return an answer, and numbers as details" in rows["words"].error) == (
        Status.ERROR,
        True,
    )
    assert (rows["unsupported"].status, rows["unsupported"].error) == (Status.UNSUPPORTED, "not on this machine")


@pytest.mark.long
@pytest.mark.process
@pytest.mark.usefixtures("made_up")
def test_a_file_of_another_size_than_asked_for_is_a_mismatch(perform):
    rows = perform(tuning, *(case(f"made.{name}.sequential_write", **TABLE) for name in WRITES))
    assert [row.status for row in rows] == [Status.MISMATCH] * 3 + [Status.OK]
    assert all("expected one file of" in row.error for row in rows[:3])


@pytest.mark.long
@pytest.mark.process
@pytest.mark.usefixtures("made_up")
def test_lost_and_changed_rows_of_a_table_are_a_mismatch(perform):
    rows = perform(tuning, *(case(f"made.{name}.create_table", **TABLE, source="parquet") for name in TABLES))
    said = ["", "expected 20000 rows, found 19999", "amount: other values", "all columns together: other values"]
    assert [row.status for row in rows] == [Status.OK] + [Status.MISMATCH] * 3
    assert all(text in (row.error or "") for row, text in zip(rows, said, strict=True))


@pytest.fixture
def table(settings):
    return benchmark_input.ensure(settings.datasets_dir, 20_000, 3, 1, print)


@pytest.mark.long
@pytest.mark.parametrize("name", ["side_by_side", "in_a_row"])
def test_every_one_of_several_answers_counts(name, table):
    top = table.answers.top
    values = TABLE | {"source": "parquet", "queries": 2, "threads": 2}
    said = []
    for answer in ([top, top], [top, top[::-1]], [top], [top, top, top], None):
        done = tuning_answers.Done(case(f"tuning.duckdb.{name}", **values), table, answer, {}, [], table.folder)
        said.append(" ".join(tuning_answers.differences(done)))
    assert said[0] == ""
    assert said[1].startswith("largest group 1: expected")
    assert all(text.startswith("expected the answers of 2 queries, found ") for text in said[2:])


@pytest.mark.parametrize("wrong", [0.0, 1e-8, None, "3"])
def test_a_sum_of_similarities_counts_to_nine_digits(wrong, table):
    right = table.answers.similarity_sum
    answer = right * (1 + wrong) if isinstance(wrong, float) else wrong
    jaro = case("tuning.duckdb.jaro_winkler", **TABLE, source="table", threads=1)
    done = tuning_answers.Done(jaro, table, answer, {}, [], table.folder)
    assert bool(tuning_answers.differences(done)) == (wrong != 0.0)


@pytest.mark.usefixtures("made_up")
def test_a_job_without_a_known_answer_is_refused(settings):
    order = orders.order(settings, case("made.unknown.other", **TABLE, source="table"))
    with pytest.raises(LabError, match="has no known answer"), tuning.opened(order):
        pass
