"""Runs of several machines side by side: only comparable ones, unless requested, and then with a label."""

import copy
import csv
from dataclasses import replace

import pytest

from harness.model import LabError
from harness.report import merging
from tests.report.cases import environment, row, stored, suite


def a_run(host, seconds, **facts):
    known = environment(
        run_id=f"20260101T000000Z-{host}", data=[{"name": "raw_csv", "rows": 1_000}], servers={}, **facts
    )
    known |= {"packages": {"polars": "2.1.0", "psycopg": "3.3.9"}, "code": {"commit": "a" * 40, "modified": False}}
    known["uses"] = {"postgres.psycopg.write_polars_copy_text": ["polars", "psycopg"]}
    known["machine"] = {**copy.deepcopy(known["machine"]), "host": host, "maker": "A maker", "virtual": True}
    known["plan"] = {**known["plan"], "suite": "example"}
    rows = [
        row("postgres.psycopg.write_polars_copy_text", seconds=value, bytes=2_000_000, **{"pass": number})
        for number, value in enumerate(seconds, start=1)
    ]
    return stored(known, rows)


def lines_of(table):
    return [dict(zip(table.head, line, strict=True)) for line in table.rows]


LAPTOP, SERVER = a_run("laptop", [1.0, 2.0, 4.0]), a_run("server", [0.5, 0.5, 0.5])


def test_machines_are_side_by_side_with_their_figures():
    runs = merging.merged(suite(), [LAPTOP, SERVER], anyway=False)
    lines = lines_of(merging.figures(runs))
    assert [(line["environment"], line["median s"], line["MB/s"], line["differs"]) for line in lines] == [
        ("laptop", "2.00", "1.00", ""),
        ("server", "0.500", "4.00", ""),
    ]
    assert [(line["environment"], line["maker"]) for line in lines_of(merging.machines(runs))] == [
        ("laptop", "A maker virtual machine"),
        ("server", "A maker virtual machine"),
    ]


def changed(run, **facts):
    return replace(run, environment=run.environment | facts)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (changed(SERVER, data=[{"name": "raw_csv", "rows": 2_000}]), "data"),
        (changed(SERVER, packages=SERVER.environment["packages"] | {"polars": "0.1"}), r"polars \(.* and 0.1\)"),
        (changed(SERVER, servers={"s3": {"version": "Other"}}), r"s3 server \(None and Other\)"),
        (changed(SERVER, code={"commit": "f" * 40, "modified": False}), "commit of the lab"),
    ],
)
def test_what_differs_is_refused_unless_asked_for_and_then_labelled(other, said):
    with pytest.raises(LabError, match=f"differ in .*{said}.*--anyway"):
        merging.merged(suite(), [LAPTOP, other], anyway=False)
    first, second = merging.merged(suite(), [LAPTOP, other], anyway=True)
    assert first.differs == ()
    assert len(second.differs) >= 1
    assert lines_of(merging.figures([first, second]))[1]["differs"] == "; ".join(second.differs)


def test_a_package_that_no_way_uses_makes_no_difference():
    other = changed(SERVER, packages=SERVER.environment["packages"] | {"never-used": "9"})
    assert merging.merged(suite(), [LAPTOP, other], anyway=False)[1].differs == ()


def test_a_run_that_does_not_say_what_its_transports_use_is_held_to_all_packages():
    runs = [
        changed(run, packages=run.environment["packages"] | {"maybe-used": number})
        for run, number in ((LAPTOP, 8), (SERVER, 9))
    ]
    assert merging.merged(suite(), runs, anyway=False)[1].differs == ()
    old = [stored({name: fact for name, fact in run.environment.items() if name != "uses"}, run.rows) for run in runs]
    with pytest.raises(LabError, match=r"differ in maybe-used \(8 and 9\)"):
        merging.merged(suite(), old, anyway=False)


def test_one_run_or_another_suite_is_refused():
    with pytest.raises(LabError, match="1 run to merge; name two or more"):
        merging.merged(suite(), [LAPTOP], anyway=True)
    foreign = changed(SERVER, plan={**SERVER.environment["plan"], "suite": "another"})
    with pytest.raises(LabError, match="runs of different suites: another, example"):
        merging.merged(suite(), [LAPTOP, foreign], anyway=True)


def test_the_files_hold_both_tables(tmp_path):
    runs = merging.merged(suite(), [LAPTOP, SERVER], anyway=False)
    table, text = merging.write(tmp_path / "new", suite(), runs)
    with table.open(newline="") as file:
        assert [line["environment"] for line in csv.DictReader(file)] == ["laptop", "server"]
    assert "| laptop |" in text.read_text()
    assert "## Machines" in text.read_text()
