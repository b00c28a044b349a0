"""Pictures of traces: a line with a description for each run of the last pass that has a trace."""

import xml.etree.ElementTree as ET

import pytest

from harness.model import Status
from harness.report.charts import chart
from harness.results import folder as folders
from harness.suites.suite import Picture
from tests.report.cases import changed, row
from tests.report.test_charts import titles, words

PICTURE = Picture(
    "cores",
    "Cores",
    "traces",
    y="cpu_seconds",
    x="seconds",
    colour="parameter:threads",
    where={"experiment": ["threads"]},
)


def runs(folder, threads, status=Status.OK, traced=(1, 2), experiment="threads"):
    found = []
    for number in (1, 2):
        order = threads * 10 + number
        one = row("a.b.c", status, 1.0, experiment=experiment, parameters=f"threads={threads}", **{"pass": number})
        found.append(changed(one, order=order))
        if number in traced:
            path = folders.trace_path(folder, order, "a.b.c")
            folders.write_trace(path, [(0.05, threads * 0.5), (0.1, threads * 0.9), (0.15, 0.2)])
    return found


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pictures").mkdir()
    return tmp_path


def test_each_run_of_the_last_pass_is_a_line_in_the_order_of_its_value(folder):
    rows = [*runs(folder, 16), *runs(folder, 2), *runs(folder, 4, experiment="another")]
    found = chart(PICTURE, rows, (), folder)
    root = ET.fromstring(found.svg)
    assert titles(root) == ["a.b.c\nthreads=2\n1 s", "a.b.c\nthreads=16\n1 s"]
    assert [text for text in words(root) if text in ("2", "4", "16")][-2:] == ["2", "16"]
    assert {"CPU cores in use", "time since the start of the call"} <= set(words(root))
    assert "one run each of pass 2" in found.caption


def test_runs_without_a_trace_have_no_line_and_the_caption_says_so(folder):
    rows = [*runs(folder, 2), *runs(folder, 4, traced=())]
    found = chart(PICTURE, rows, (), folder)
    assert len(titles(ET.fromstring(found.svg))) == 1
    assert found.caption.endswith("Runs too short for two samples have no line.")


def test_without_any_trace_or_ok_run_there_is_no_picture(folder):
    assert chart(PICTURE, runs(folder, 2, traced=()), (), folder) is None
    assert chart(PICTURE, runs(folder, 2, Status.TIMEOUT), (), folder) is None


def test_a_detail_can_be_drawn_over_a_parameter(folder):
    picture = Picture("rates", "Rates", "lines", y="detail:bytes_per_s", x="parameter:threads")
    rows = [
        row("a.b.c", seconds=1.0, parameters=f"threads={threads}", details=f"bytes_per_s={threads}e9")
        for threads in (1, 2, 4)
    ]
    root = ET.fromstring(chart(picture, rows, (), folder).svg)
    assert [text.splitlines()[-1] for text in titles(root)] == [
        f"median rate: {threads} GB/s (n = 1)" for threads in (1, 2, 4)
    ]
