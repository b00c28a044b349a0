"""Runs compared and merged: ratios, intervals and p-values, no claim without evidence, and only what is comparable."""

import csv
from dataclasses import replace

import pytest

from harness.model import LabError, Status
from harness.report import comparing, merging
from harness.report.comparing import compared, holm, table
from tests.report.cases import environment, row, stored, suite

WAY = "postgres.psycopg.write_polars_copy_text"
MANY = [1.0 + number / 100 for number in range(8)]


def with_way(run, transport, seconds, **more):
    rows = [row(transport, seconds=value, **({"pass": place} | more)) for place, value in enumerate(seconds, start=1)]
    return replace(run, every=[*run.every, *rows])


def runs(ours, theirs):
    return a_run("laptop", ours), changed(a_run("laptop", theirs), run_id="20260102T000000Z-laptop")


def one_line(ours, theirs):
    (line,) = compared(suite(), *runs(ours, theirs), anyway=False).lines
    return line


def test_a_difference_of_enough_runs_is_shown_with_its_ratio_and_interval():
    line = one_line(MANY, [2 * value for value in MANY])
    assert line.ratio == pytest.approx(2.0)
    assert 1.8 < line.ratio_low <= 2.0 <= line.ratio_high < 2.2
    assert (line.n_a, line.n_b, line.shown) == (8, 8, "slower")
    assert line.p == line.p_corrected < 1e-6
    assert one_line([2 * value for value in MANY], MANY).shown == "faster"


def test_equal_runs_show_nothing():
    line = one_line(MANY, MANY)
    assert (line.ratio, line.p, line.shown) == (1.0, 1.0, "~")


def test_three_passes_against_three_show_a_large_difference():
    line = one_line([1.0, 1.1, 1.2], [9.0, 9.1, 9.2])
    assert (line.shown, line.p < 0.001) == ("slower", True)
    assert one_line([1.0], [9.0]).shown == "~"


def test_of_several_runs_kept_together_each_counts_once():
    calls, others = [1.0, 1.01, 1.2, 1.21, 0.8, 0.81], [2.0, 2.2, 2.1, 2.3, 2.05, 2.25]
    together, other = runs(calls, others)
    ids = [f"run{place // 2}" for place in range(6)]
    pooled = replace(together, every=[replace(one, run_id=run) for one, run in zip(together.every, ids, strict=True)])
    (one,), (few,) = (compared(suite(), run, other, anyway=False).lines for run in (together, pooled))
    assert (one.ratio, one.n_a) == (few.ratio, few.n_a)
    assert few.p > one.p  # three observations, not six


def test_p_values_are_corrected_for_the_number_of_cases():
    first, second = runs(MANY[:4], [value + 5 for value in MANY[:4]])
    for number in range(3):
        first, second = (with_way(run, f"other.{number}", MANY[:4]) for run in (first, second))
    lines = compared(suite(), first, second, anyway=False).lines
    (line,) = [line for line in lines if line.transport == WAY]
    assert line.p_corrected == pytest.approx(4 * line.p)
    assert {line.shown for line in lines if line.transport != WAY} == {"~"}


@pytest.mark.parametrize(
    ("values", "corrected"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.2, 0.9, 0.6], [0.6, 1.0, 1.0]),  # no probability is above 1
        ([], []),
    ],
)
def test_holm_is_the_method_of_holm(values, corrected):
    assert holm(values) == pytest.approx(corrected)


def test_the_geometric_mean_is_of_all_cases_also_of_those_that_show_nothing():
    first, second = runs(MANY, [2 * value for value in MANY])
    first, second = with_way(first, "other", MANY), with_way(second, "other", [value / 8 for value in MANY])
    found = compared(suite(), first, second, anyway=False)
    assert found.geometric_mean == pytest.approx(0.5)
    assert table(found).rows[-1] == ("geometric mean of 2", "", "", "", "", "×0.500", "", "", "")
    assert {len(line) for line in table(found).rows} == {len(table(found).head)}


def test_parameters_that_all_cases_share_are_in_the_title_and_the_others_in_their_rows():
    pair = runs(MANY, MANY)
    parameters = "rows=1000; profile=heap"
    first, second = (with_way(run, "other", MANY, parameters=parameters) for run in pair)
    made = table(compared(suite(), first, second, anyway=False))
    assert made.title.endswith("B: 20260102T000000Z-laptop, rows=1000")
    assert sorted(line[:2] for line in made.rows) == [
        ("geometric mean of 2", ""),
        ("other", "profile=heap"),
        (WAY, ""),
    ]


def test_what_is_in_one_run_only_or_not_ok_in_one_is_listed_with_why_in_a_line_a_reason():
    first, second = runs(MANY, MANY)
    first = with_way(with_way(first, "only.here", MANY), "only.too", MANY)
    second = replace(second, every=[*second.every, row("bad", Status.ERROR), row("half", Status.TIMEOUT)])
    first = replace(first, every=[*first.every, row("bad", Status.ERROR), row("half", seconds=1.0)])
    found = compared(suite(), first, second, anyway=False)
    assert [line.transport for line in found.lines] == [WAY]
    assert found.left_out == [
        "matrix bad rows=1000 (A and B: error: it was error)",
        "matrix half rows=1000 (B: timeout: it was timeout)",
        "matrix only.here rows=1000; matrix only.too rows=1000 (B: not in this run)",
    ]
    assert f"not compared: {found.left_out[0]}" in table(found).notes


def test_two_runs_without_a_case_in_common_have_no_mean_and_are_still_a_table():
    first, second = a_run("laptop", []), a_run("laptop", [])
    found = compared(suite(), with_way(first, "a", MANY), with_way(second, "b", MANY), anyway=False)
    assert (found.lines, found.geometric_mean, table(found).rows) == ([], None, ())
    assert found.left_out == ["matrix a rows=1000 (B: not in this run)", "matrix b rows=1000 (A: not in this run)"]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"data": [{"name": "raw_csv", "rows": 2_000}]}, "data"),
        ({"packages": {"polars": "0.1", "psycopg": "3.3.9"}}, r"polars \(2.1.0 and 0.1\)"),
        ({"servers": {"postgres": {"version": "19"}}}, r"postgres server \(None and 19\)"),
        ({"python": "3.14.0"}, r"python \(3.11.7 and 3.14.0\)"),
        ({"lab": "external"}, r"lab \(local and external\)"),
        ({"machine": {"host": "another"}}, r"machine: host \(laptop and another\)"),
    ],
)
def test_what_differs_is_refused_unless_asked_for_and_then_labelled(facts, said):
    first, second = runs(MANY, MANY)
    machine = {"machine": second.environment["machine"] | facts.get("machine", {})}
    other = changed(second, **{**facts, **machine})
    with pytest.raises(LabError, match=f"differ in {said}: .*--anyway"):
        compared(suite(), first, other, anyway=False)
    notes = table(compared(suite(), first, other, anyway=True)).notes
    assert sum(note.startswith("A and B differ: ") for note in notes) == 1


def test_another_commit_of_the_lab_may_be_the_question_and_is_labelled():
    first, second = runs(MANY, MANY)
    other = changed(second, code={"commit": "f" * 40, "modified": False})
    assert compared(suite(), first, other, anyway=False).differs == ("commit of the lab",)


@pytest.mark.parametrize(
    "read",
    [lambda *pair: compared(suite(), *pair, anyway=True), lambda *pair: merging.merged(suite(), pair, anyway=True)],
    ids=["compared", "merged"],
)
def test_runs_of_two_suites_are_refused_in_any_case(read):
    first, second = runs(MANY, MANY)
    foreign = changed(second, plan={**second.environment["plan"], "suite": "another"})
    with pytest.raises(LabError, match="runs of different suites: another, example"):
        read(first, foreign)


def test_the_same_runs_give_the_same_files(tmp_path):
    pair = runs(MANY, [1.1 * value for value in MANY])
    written = [comparing.write(tmp_path / name, suite(), compared(suite(), *pair, anyway=False)) for name in "ab"]
    assert [path.read_bytes() for path in written[0]] == [path.read_bytes() for path in written[1]]
    with written[0][0].open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert tuple(line) == tuple(comparing.COLUMNS)
    assert line["transport"] == WAY
    assert f"| {WAY} | rows=1000 | 8 |" in written[0][1].read_text()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="cannot write to"):
        comparing.write(tmp_path / "file" / "in", suite(), compared(suite(), *runs(MANY, MANY), anyway=False))


def a_run(host, seconds, **facts):
    known = environment(
        run_id=f"20260101T000000Z-{host}", data=[{"name": "raw_csv", "rows": 1_000}], servers={}, **facts
    )
    known |= {"packages": {"polars": "2.1.0", "psycopg": "3.3.9"}, "code": {"commit": "a" * 40, "modified": False}}
    known["uses"] = {"postgres.psycopg.write_polars_copy_text": ["polars", "psycopg"]}
    known["machine"] = {**known["machine"], "host": host, "maker": "A maker", "virtual": True}
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
def test_what_differs_between_merged_runs_is_refused_unless_asked_for_and_then_labelled(other, said):
    with pytest.raises(LabError, match=f"differ in .*{said}.*--anyway"):
        merging.merged(suite(), [LAPTOP, other], anyway=False)
    first, second = merging.merged(suite(), [LAPTOP, other], anyway=True)
    assert first.differs == ()
    assert len(second.differs) >= 1
    assert lines_of(merging.figures([first, second]))[1]["differs"] == "; ".join(second.differs)


def test_a_run_that_does_not_say_what_its_transports_use_is_held_to_all_packages():
    runs = [
        changed(run, packages=run.environment["packages"] | {"maybe-used": number})
        for run, number in ((LAPTOP, 8), (SERVER, 9))
    ]
    assert merging.merged(suite(), runs, anyway=False)[1].differs == ()
    old = [stored({name: fact for name, fact in run.environment.items() if name != "uses"}, run.rows) for run in runs]
    with pytest.raises(LabError, match=r"differ in maybe-used \(8 and 9\)"):
        merging.merged(suite(), old, anyway=False)


def test_one_run_is_not_merged():
    with pytest.raises(LabError, match="1 run to merge; name two or more"):
        merging.merged(suite(), [LAPTOP], anyway=True)


def test_the_files_hold_both_tables(tmp_path):
    runs = merging.merged(suite(), [LAPTOP, SERVER], anyway=False)
    table, text = merging.write(tmp_path / "new", suite(), runs)
    with table.open(newline="") as file:
        assert [line["environment"] for line in csv.DictReader(file)] == ["laptop", "server"]
    assert "| laptop |" in text.read_text()
    assert "## Machines" in text.read_text()
