"""Calls before the measured one, and the pauses of a worker: after each of them, and before a common start."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model import Status
from harness.worker.contracts.databases import DatabaseAnswer
from tests.worker.made import Lab

pytestmark = pytest.mark.process


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def executed(lab: Lab, function: str, module: str = "up", **more: object) -> tuple[DatabaseAnswer, list[int]]:
    """Run a made-up transport; return what came out and how many events there were at every pause."""
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
def test_who_begins_together_with_others_pauses_when_it_is_connected_and_warm(lab: Lab, module: str) -> None:
    found, pauses = executed(lab, "read_polars", module, together=True)
    words = lab.events()[0]
    assert words[1:] == ["connect made://up", "read connection warmup", "read connection measured", "close"]
    assert pauses == [3]
    assert found.status is Status.OK
