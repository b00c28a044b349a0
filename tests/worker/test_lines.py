"""A job comes out of its line as it went in; one with fields too many or too few is refused with their names."""

import json
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
