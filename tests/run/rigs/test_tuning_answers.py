"""Wrong answers and wrong files of jobs are found, each fault by its own words."""

import pytest

from harness.datasets import benchmark_input
from harness.model import LabError, Status
from harness.run.rigs import tuning, tuning_answers
from tests.made_up import MadeUp
from tests.run.rigs import orders, tuning_runs
from tests.run.rigs.tuning_runs import TABLE, case, fine

# Ways with the names that the rig knows, each wrong in one respect but for the first of its sort.
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


@pytest.fixture
def perform(settings, tmp_path):
    """Run cases in a rig of their own; returns the rows."""
    return lambda *cases: tuning_runs.perform(settings, tmp_path / "run", *cases)


def module(name, arguments, body):
    """The text of a module with one job of this name."""
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
def test_a_wrong_answer_is_a_mismatch_and_details_stand_in_their_column(perform):
    rows = dict(
        zip(
            QUERIES,
            perform(*(case(f"made.{name}.group_by", **TABLE, source="parquet") for name in QUERIES)),
            strict=True,
        )
    )
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
    assert (rows["words"].status, "details in numbers" in rows["words"].error) == (Status.ERROR, True)
    assert (rows["unsupported"].status, rows["unsupported"].error) == (Status.UNSUPPORTED, "not on this machine")


@pytest.mark.long
@pytest.mark.process
@pytest.mark.usefixtures("made_up")
def test_a_file_of_another_size_than_asked_for_is_a_mismatch(perform):
    rows = perform(*(case(f"made.{name}.sequential_write", **TABLE) for name in WRITES))
    assert [row.status for row in rows] == [Status.MISMATCH] * 3 + [Status.OK]
    assert all("expected one file of" in row.error for row in rows[:3])


@pytest.mark.long
@pytest.mark.process
@pytest.mark.usefixtures("made_up")
def test_lost_and_changed_rows_of_a_table_are_a_mismatch(perform):
    rows = perform(*(case(f"made.{name}.create_table", **TABLE, source="parquet") for name in TABLES))
    said = ["", "expected 20000 rows, found 19999", "amount: other values", "all columns together: other values"]
    assert [row.status for row in rows] == [Status.OK] + [Status.MISMATCH] * 3
    assert all(text in (row.error or "") for row, text in zip(rows, said, strict=True))


@pytest.fixture
def table(settings):
    return benchmark_input.ensure(settings.datasets_dir, 20_000, 3, 1, print)


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
def test_a_job_whose_answer_nobody_knows_is_refused(settings):
    order = orders.order(settings, case("made.unknown.other", **TABLE, source="table"))
    with pytest.raises(LabError, match="nobody knows its answer"), tuning.opened(order):
        pass
