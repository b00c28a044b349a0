"""Several tables in one job: a call for each, one after the other on one connection."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from harness.model import Status
from harness.worker.contracts.several_tables import SeveralTablesAnswer, SeveralTablesJob
from harness.worker.messages import Failed
from tests.worker.made import Lab

pytestmark = pytest.mark.process


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def asked(lab: Lab, function: str, module: str = "up", tables: tuple[str, ...] = ("one", "two", "three")) -> object:
    one = replace(lab.job(function, module), warmup_table="")
    jobs = [replace(one, table=table, result=str(lab.folder / table)) for table in tables]
    return lab.run(SeveralTablesJob(transport=one.transport, jobs=jobs))


@pytest.mark.long
@pytest.mark.parametrize("module", ["up", "up_async"])
def test_every_table_is_read_over_one_connection_to_a_place_of_its_own(lab: Lab, module: str) -> None:
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
        ("read_arrow", Status.ERROR, "expected a polars DataFrame"),
    ],
)
def test_what_fails_with_one_table_fails(lab: Lab, function: str, status: Status, error: str) -> None:
    answer = asked(lab, function)
    assert isinstance(answer, Failed)
    assert answer.status is status
    assert error in answer.error
