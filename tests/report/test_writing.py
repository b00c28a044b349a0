"""Writing and reading: all files of a run from its folder alone, and environments of other versions of the lab."""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from harness import report
from harness.model import LabError, Status
from harness.report import comparing, recommendation
from harness.results import folder as folders
from harness.settings import ROOT
from harness.suites.suite import Picture, PublishedFigure
from tests.report.cases import ENVIRONMENT, RUN, environment, row, run_folder, scan, suite

TIMES = Picture("times", "Time by size", "lines", y="seconds", x="bytes", where={"system": ["parquet"]})
NOTHING = Picture("nothing", "What nobody ran", "bars", y="rows_per_s", where={"system": ["nobody"]})
ROWS = [
    scan("quick", 1, seconds=0.5, peak_rss_bytes=40_000_000, published_row="The quick way"),
    scan("quick", 2, seconds=1.5, peak_rss_bytes=60_000_000, published_row="The quick way"),
    scan("broken", 1, Status.ERROR, error="a < b & c"),
]
FIGURE = PublishedFigure("The quick way", "many_files", bytes=10**11, mean_seconds=7.5)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = run_folder(tmp_path_factory.mktemp("run"), ROWS)
    return report.write(folder, suite(FIGURE, pictures=[TIMES, NOTHING]))


def strings(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("runs.csv", "environment.json")
    }


def test_everything_is_written_and_named(written):
    names = sorted(path.relative_to(written.folder).as_posix() for path in written.paths)
    assert names == ["pictures/times.svg", "report.html", "report.md", "summary.csv"]
    assert list(strings(written.folder)) == names
    assert all(strings(written.folder).values())


def test_every_format_has_the_figures_the_reason_and_the_authors_figure(written):
    markdown, html = (strings(written.folder)[name].decode() for name in ("report.md", "report.html"))
    for text in (markdown, html):
        assert "The quick way" in text
        assert "7.5 ×1.0" in text
        assert "A. Uthor" in text
        assert "What nobody ran" in text  # no run fits this picture, and the report says so
    assert "a &lt; b & c" in markdown
    assert "a &lt; b &amp; c" in html
    assert "](pictures/times.svg)" in markdown
    assert b"a < b & c" in strings(written.folder)["summary.csv"]


def test_the_same_run_gives_the_same_bytes_and_goes_over_a_report_of_before(written, tmp_path):
    folder = run_folder(tmp_path / written.folder.name, ROWS)
    (folder / "report.md").write_text("of before")
    report.write(folder, suite(FIGURE, pictures=[TIMES, NOTHING]))
    assert strings(folder) == strings(written.folder)


def test_experiments_are_in_the_order_of_the_plan(tmp_path):
    plan = environment()["plan"] | {"experiments": [{"name": "second"}, {"name": "first"}]}
    rows = [row("a", seconds=1.0, experiment=name) for name in ("first", "second")]
    done = report.write(run_folder(tmp_path, rows, environment(plan=plan)), suite())
    assert [one.experiment for one in done.summaries] == ["second", "first"]


def test_a_run_that_has_not_begun_has_a_report_that_says_so(tmp_path):
    done = report.write(run_folder(tmp_path, []), suite(FIGURE, pictures=[TIMES]))
    assert (done.rows, done.summaries) == ([], [])
    for name in ("report.md", "report.html"):
        assert (tmp_path / name).read_text().count("No run is there yet.") == 1


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("environment", "ffffffffffff", f"2 environments \\({ENVIRONMENT}, ffffffffffff\\)"),
        ("environment", None, f"2 environments \\({ENVIRONMENT}, none\\)"),
        ("run_id", "another-run", f"2 runs \\({RUN}, another-run\\)"),
    ],
)
def test_rows_of_two_environments_or_runs_are_refused_and_nothing_is_written(tmp_path, column, value, expected):
    folder = run_folder(tmp_path, [row("a", seconds=1.0), row("b", seconds=1.0, **{column: value})])
    with pytest.raises(LabError, match=expected):
        report.write(folder, suite(pictures=[TIMES]))
    assert strings(folder) == {}


def test_rows_that_agree_with_each_other_but_not_with_the_environment_next_to_them_are_refused(tmp_path):
    folder = run_folder(tmp_path, [row("a", seconds=1.0)], environment(fingerprint="ffffffffffff"))
    with pytest.raises(LabError, match=f"2 environments \\(ffffffffffff, {ENVIRONMENT}\\)"):
        report.write(folder, suite())


@pytest.mark.parametrize("entry", ["fingerprint", "run_id", "plan", "machine", "lab", "python"])
def test_an_environment_without_what_a_report_needs_is_refused_by_name(tmp_path, entry):
    facts = environment()
    del facts[entry]
    with pytest.raises(LabError, match=f"environment.json: the entry '{entry}' is missing"):
        report.write(run_folder(tmp_path, [], facts), suite())


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"plan": 3}'])
def test_a_damaged_environment_is_refused_in_one_line(tmp_path, text):
    folder = run_folder(tmp_path, [])
    (folder / "environment.json").write_text(text)
    with pytest.raises(LabError, match=r"environment\.json"):
        report.write(folder, suite())


def test_a_folder_without_runs_is_refused(tmp_path):
    (tmp_path / "environment.json").write_text(json.dumps(environment()))
    with pytest.raises(LabError, match=r"runs\.csv: No such file"):
        report.write(tmp_path, suite())


def test_a_report_that_cannot_be_written_is_refused_in_one_line(tmp_path):
    folder = run_folder(tmp_path, [row("a", seconds=1.0)])
    (folder / "report.md").mkdir()
    with pytest.raises(LabError, match=f"cannot write the report to {folder}: Is a directory"):
        report.write(folder, suite())


@pytest.mark.long
@pytest.mark.process
def test_the_command_line_starts_without_the_plotting_library():
    code = (
        "import sys, harness.cli, harness.report.terminal; print('vl_convert' in sys.modules, 'jinja2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_run_whose_plan_is_of_another_version_is_reported(tmp_path):
    """`lab report` and `lab compare` read the same runs: neither resumes the run."""
    facts = environment()
    facts["plan"] = {"suite": "example", "passes": 1, "of_another_version": True}
    folder = run_folder(tmp_path / "run", [row("a", seconds=1.0)], facts)
    assert [one.transport for one in report.write(folder, suite()).summaries] == ["a"]
    assert folders.read(folder).suite == "example"


@pytest.mark.long
@pytest.mark.process
def test_reports_load_neither_the_registry_nor_a_transport(tmp_path):
    folder = run_folder(tmp_path / "run", [row("a", seconds=1.0)])
    code = (
        "import sys; from pathlib import Path; from harness import report; from tests.report.cases import suite; "
        "report.write(Path(sys.argv[1]), suite()); "
        "print([name for name in sys.modules if name.startswith(('harness.registry', 'harness.transports'))])"
    )
    done = subprocess.run((sys.executable, "-c", code, folder), cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


# All facts that an environment may have; a few names and versions suffice.
OF_REFERENCE = folders.environment(folders.reference(ROOT / "results", "matrix"))
FACTS = OF_REFERENCE | environment(plan=OF_REFERENCE["plan"] | {"suite": "example"}, machine=OF_REFERENCE["machine"])
FACTS |= {name: dict(list(OF_REFERENCE[name].items())[:2]) for name in ("packages", "uses")}


def places(facts: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every entry of an environment, and every entry of those, down to single facts."""
    for name in facts if isinstance(facts, dict) else range(len(facts)):
        yield (*above, name)
        if isinstance(facts[name], dict | list):
            yield from places(facts[name], (*above, name))


def changed(place: tuple[Any, ...], value: Any = None, gone: bool = False) -> dict[str, Any]:
    facts = copy.deepcopy(FACTS)
    *above, name = place
    found: Any = facts
    for part in above:
        found = found[part]
    if gone:
        del found[name]
    else:
        found[name] = value
    return facts


CHANGES = [(place, of) for place in places(FACTS) if len(place) < 4 for of in ({"gone": True}, {"value": None})]


@pytest.mark.long
def test_what_compare_reads_report_reads(tmp_path):
    rows = [row("a", seconds=1.0)]
    refused = []
    for place, of in CHANGES:
        folder = run_folder(tmp_path / "run", rows, changed(place, **of))
        try:
            run = folders.read(folder)
            comparing.compared(suite(), run, run, anyway=True)
        except Exception:
            continue
        try:
            report.write(folder, suite())
        except Exception as error:
            refused.append((place, of, repr(error)))
    assert "\n".join(map(str, refused)) == ""
    assert len(CHANGES) > 100


def test_what_neither_can_go_without_is_asked_for_by_name(tmp_path):
    """No change of an environment causes a traceback of `lab compare`."""
    rows, wrong = [row("a", seconds=1.0)], []
    for place in (place for place in places(FACTS) if len(place) == 1):
        folder = run_folder(tmp_path / "run", rows, changed(place, gone=True))
        try:
            with suppress(LabError):
                run = folders.read(folder)
                comparing.compared(suite(), run, run, anyway=True)
        except Exception as error:
            wrong.append((place, repr(error)))
    assert wrong == []


@pytest.mark.parametrize("text", ["{}", "", '{"fastest": 3}'])
def test_a_race_whose_recommendation_is_of_another_version_is_reported_from_its_rows(tmp_path, text):
    folder = run_folder(tmp_path / "run", [row("a", seconds=1.0)], FACTS)
    (folder / recommendation.FILE).write_text(text)
    written = report.write(folder, suite())
    assert [one.transport for one in written.summaries] == ["a"]
    assert str(folder / recommendation.FILE) in written.unread
    assert written.unread.endswith("made of the rows of the race alone")
    with pytest.raises(LabError, match=recommendation.FILE):
        recommendation.read(folder)
    assert json.loads((folder / "environment.json").read_text()) == FACTS
