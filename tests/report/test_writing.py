"""Writing and reading: all files of a run from its folder alone, and environments of other versions of the lab."""

import copy
import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import registry, report
from harness.cli.app import echo
from harness.model import Fate, Finding, LabError, Status
from harness.report import comparing, fidelity, recommendation
from harness.report.rankings import rankings
from harness.report.sections import write
from harness.report.summary import summarise, write_summaries
from harness.report.terminal import printable
from harness.results import folder as folders
from harness.results import runs_csv
from harness.settings import ROOT
from harness.suites import suite_files
from harness.suites.suite import Picture, PublishedFigure
from tests.report.cases import ENVIRONMENT, RUN, environment, printed, row, run_folder, scan, suite
from tests.report.test_page import Elements

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
    report.write(folder, suite(FIGURE, pictures=[TIMES, NOTHING]))
    return folder


def strings(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("runs.csv", "environment.json")
    }


def test_everything_is_written(written):
    assert list(strings(written)) == ["pictures/times.svg", "report.html", "report.md", "summary.csv"]
    assert all(strings(written).values())


def test_every_format_has_the_figures_the_reason_and_the_authors_figure(written):
    markdown, html = (strings(written)[name].decode() for name in ("report.md", "report.html"))
    for text in (markdown, html):
        assert "The quick way" in text
        assert "7.5 ×1.0" in text
        assert "A. Uthor" in text
        assert "What nobody ran" in text  # no run fits this picture, and the report says so
    assert "a &lt; b & c" in markdown
    assert "a &lt; b &amp; c" in html
    assert "](pictures/times.svg)" in markdown
    assert b"a < b & c" in strings(written)["summary.csv"]


def test_the_same_run_gives_the_same_bytes_and_goes_over_a_report_of_before(written, tmp_path):
    folder = run_folder(tmp_path / written.name, ROWS)
    (folder / "report.md").write_text("of before")
    report.write(folder, suite(FIGURE, pictures=[TIMES, NOTHING]))
    assert strings(folder) == strings(written)


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
    ("other", "facts", "expected"),
    [
        ({"environment": "ffffffffffff"}, {}, f"2 environments \\({ENVIRONMENT}, ffffffffffff\\)"),
        ({"environment": None}, {}, f"2 environments \\({ENVIRONMENT}, none\\)"),
        ({"run_id": "another-run"}, {}, f"2 runs \\({RUN}, another-run\\)"),
        ({}, {"fingerprint": "ffffffffffff"}, f"2 environments \\(ffffffffffff, {ENVIRONMENT}\\)"),
    ],
    ids=["of another row", "of no environment", "of another run", "of another environment.json"],
)
def test_rows_of_two_environments_or_runs_are_refused_and_nothing_is_written(tmp_path, other, facts, expected):
    rows = [row("a", seconds=1.0), row("b", seconds=1.0, **other)]
    folder = run_folder(tmp_path, rows, environment(**facts))
    with pytest.raises(LabError, match=expected):
        report.write(folder, suite(pictures=[TIMES]))
    assert strings(folder) == {}


NEEDED = ("fingerprint", "run_id", "plan", "machine", "lab", "python")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "") for text in ("", "{", "[]", "null", '{"plan": 3}')),
        *(
            (
                json.dumps({of: fact for of, fact in environment().items() if of != name}),
                f": the entry '{name}' is missing",
            )
            for name in NEEDED
        ),
    ],
    ids=["empty", "torn", "a list", "null", "a number for the plan", *NEEDED],
)
def test_a_damaged_environment_is_refused_in_one_line_by_the_name_of_what_is_missing(tmp_path, text, said):
    folder = run_folder(tmp_path, [])
    (folder / "environment.json").write_text(text)
    with pytest.raises(LabError, match=rf"environment\.json{said}"):
        report.write(folder, suite())


def test_a_folder_without_runs_is_refused(tmp_path):
    (tmp_path / "environment.json").write_text(json.dumps(environment()))
    with pytest.raises(LabError, match=r"ended before its first call; continue it with --resume"):
        report.write(tmp_path, suite())


def test_a_report_that_cannot_be_written_is_refused_in_one_line(tmp_path):
    folder = run_folder(tmp_path, [row("a", seconds=1.0)])
    (folder / "report.md").mkdir()
    with pytest.raises(LabError, match=f"cannot write the report to {folder}: Is a directory"):
        report.write(folder, suite())


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (
            "import sys, harness.cli, harness.report.terminal; "
            "print('vl_convert' in sys.modules, 'jinja2' in sys.modules)",
            "False False\n",
        ),
        (
            "import sys; from pathlib import Path; from harness import report; from tests.report.cases import suite; "
            "report.write(Path(sys.argv[1]), suite()); "
            "print([name for name in sys.modules if name.startswith(('harness.registry', 'harness.transports'))])",
            "[]\n",
        ),
    ],
    ids=["no plotting library for the command line", "neither the registry nor a transport for reports"],
)
def test_what_takes_long_to_load_is_loaded_only_where_it_is_needed(tmp_path, code, printed):
    folder = run_folder(tmp_path / "run", [row("a", seconds=1.0)])
    done = subprocess.run((sys.executable, "-c", code, folder), cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_a_run_whose_plan_is_of_another_version_is_reported(tmp_path):
    """`lab report` and `lab compare` read the same runs: neither resumes the run."""
    facts = environment()
    facts["plan"] = {"suite": "example", "passes": 1, "of_another_version": True}
    folder = run_folder(tmp_path / "run", [row("a", seconds=1.0)], facts)
    assert [one.transport for one in report.write(folder, suite()).summaries] == ["a"]
    assert folders.read(folder).suite == "example"


# All facts that an environment may have; a few names and versions suffice.
OF_REFERENCE = folders.members(folders.environment(folders.reference(ROOT / "results", "matrix")))[0]
FACTS = OF_REFERENCE | environment(plan=OF_REFERENCE["plan"] | {"suite": "example"}, machine=OF_REFERENCE["machine"])
FACTS.pop("together", None)
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


ONE = replace(registry.one("postgres.psycopg.read_polars_rows"), lossy={"nan": "changed", "tab": "refused"})
TWO = replace(registry.one("clickhouse.httpx.read_polars_parquet"), lossy={})


def finding(entry, kind, fate, detail=""):
    return Finding(entry, kind, fate, entry.lossy.get(kind, ""), detail)


AS_DECLARED = [
    finding(ONE, "nulls", Fate.CONVERTED, "int_value (Int64)"),
    finding(ONE, "nan", Fate.CHANGED, "expected nan, found None"),
    finding(ONE, "tab", Fate.REFUSED, "no tabs"),
    finding(TWO, "nulls", Fate.EXACT),
    finding(TWO, "nan", Fate.UNAVAILABLE, "no server"),
]
BETTER = [finding(ONE, "nan", Fate.EXACT), finding(ONE, "tab", Fate.REFUSED)]
WORSE = [finding(TWO, "nulls", Fate.CHANGED, "expected None, found 0"), finding(TWO, "nan", Fate.HANGS)]
FORBIDDEN = Finding(TWO, "nul_character", Fate.REFUSED, "refused")


def test_the_grid_has_a_mark_for_each_pair_and_none_where_there_is_no_pair():
    *head, one, two, blank = fidelity.grid(AS_DECLARED, 200)[:8]
    left = max(len(ONE.id), len(TWO.id)) + 1
    assert [line[left:] for line in head] == ["n", "u", "l n t", "l a a", "s n b"]
    assert one == f"{ONE.id:<{left}}c X r"
    assert two == f"{TWO.id:<{left}}· -"
    assert blank == ""


def test_a_grid_that_is_too_wide_is_broken_between_kinds():
    lines = fidelity.grid(AS_DECLARED, len(TWO.id) + 5)
    assert sum(line.startswith(ONE.id) for line in lines) == 2
    assert all(len(line) <= len(TWO.id) + 5 for line in lines if line.startswith((ONE.id, TWO.id)))


def test_what_is_not_as_declared_is_marked_in_the_grid():
    assert f"{ONE.id} ·!r" in fidelity.grid(BETTER, 200)


def test_a_declared_loss_that_no_longer_happens_and_a_loss_that_is_not_declared_are_said():
    assert fidelity.deviations([*BETTER, *WORSE]) == [
        f"{ONE.id}: nan: declared changed, found exact",
        f"{TWO.id}: nulls: declared exact or converted, found changed: expected None, found 0",
        f"{TWO.id}: nan: declared exact or converted, found hangs",
    ]


def test_the_files_have_every_pair_and_every_transport(tmp_path: Path):
    csv_path, md_path, page = fidelity.write(tmp_path / "new", [*AS_DECLARED, *WORSE], "lab: none")
    with csv_path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["outcome"] for row in rows] == [
        "converted",
        "changed",
        "refused",
        "exact",
        "unavailable",
        "changed",
        "hangs",
    ]
    assert rows[1] == dict(
        zip(fidelity.COLUMNS, (ONE.id, "nan", "changed", "changed", "expected nan, found None"), strict=True)
    )
    assert page.read_text(encoding="utf-8") == fidelity.page([*AS_DECLARED, *WORSE], "lab: none")
    text = md_path.read_text(encoding="utf-8")
    assert f"| `{ONE.id}` | 1 converted | changed: nan; refused: tab |" in text
    assert "changed: nulls!; hangs: nan!" in text
    assert "declared exact or converted, found hangs" in text
    assert "All as declared." in fidelity.markdown(AS_DECLARED, "lab: none")


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="cannot write"):
        fidelity.write(tmp_path / "file", AS_DECLARED, "")


def test_the_page_has_a_cell_for_each_pair_with_its_outcome_and_detail():
    page = fidelity.page([*AS_DECLARED, replace(FORBIDDEN, detail="<script>\"'")], "conditions of <this> run")
    assert page.count("<tr>") == 3  # the head, two transports
    assert '<td class="converted" title="nulls: converted: int_value (Int64)">c</td>' in page
    assert '<td class="refused" title="nul_character: refused: &lt;script&gt;&#34;&#39;">r</td>' in page
    assert page.count("<td></td>") == 2  # pairs that were not tried
    assert "conditions of &lt;this&gt; run" in page
    assert "All as declared." in page


def test_the_page_says_what_is_not_as_declared():
    page = fidelity.page(WORSE, "conditions")
    assert '<td class="hangs" title="nan: hangs">H!</td>' in page
    assert "<li>" in page.split('id="declared"')[1].split("</section>")[0]
    assert "All as declared." not in page


EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>\x1b]0;owned\x07\x1b[2J\x9b31m=\u202e'
FORMULA = '=HYPERLINK("http://localhost/","click")'
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e")


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    facts = environment(python=EVIL, packages={"polars": EVIL}, servers={f"p{EVIL}": {"version": EVIL}}, lab=EVIL)
    facts["machine"] |= {"cpu": EVIL, "system": EVIL, "kernel": EVIL}
    facts["plan"]["size"] = EVIL
    about = {"client": EVIL, "experiment": EVIL, "path": EVIL, "dataset": EVIL, "system": EVIL}
    rows = [row(f"a{EVIL}", seconds=0.5, **about), row("b", Status.ERROR, error=EVIL, **about)]
    return run_folder(tmp_path / "foreign", rows, facts)


def test_markdown_and_pages_of_a_foreign_run_have_no_tag_of_it_and_nothing_for_a_terminal(foreign: Path) -> None:
    write(foreign, suite())
    text = (foreign / "report.md").read_text()
    assert Elements(text).found == []
    assert "&lt;script" in text
    assert not [one for one in OBEYED if one in text]
    page = (foreign / "report.html").read_text()
    assert "<img src=x" not in page
    assert "<script>alert(2)" not in page
    assert not [one for one in OBEYED if one in page]


def test_what_is_printed_of_foreign_rows_has_nothing_for_a_terminal_to_obey(capsys: pytest.CaptureFixture[str]) -> None:
    summaries = summarise([row(f"a{EVIL}", seconds=0.5), row("b", Status.ERROR, error=EVIL)], ())
    shown = printed([printable(table, 200) for table in rankings(summaries)], 200)
    echo(f"error\t{EVIL}\nnext")
    said = shown + capsys.readouterr().out
    assert r"\x1b]0;owned" in said
    assert "\nnext\n" in said
    assert not [one for one in OBEYED if one in said]


@pytest.mark.parametrize(
    "text", [FORMULA, "+1+cmd|' /C calc'!A0", "-2+3+cmd|x", "@SUM(1)", "\t=1", " =1", "\uff1d1", "=1+1", "-", "\n=1"]
)
def test_what_a_spreadsheet_would_compute_is_a_text_in_tables_for_it(text: str) -> None:
    assert runs_csv.as_cell(text) == "'" + runs_csv.as_text(text)
    assert runs_csv.as_cell({"=a": text}) == "'" + runs_csv.as_text({"=a": text})


@pytest.mark.parametrize(
    "value", [-1.5, -3, 0, "-1.5", "+7", "1e-9", "text", "a=b", "=", "", None, "files=8; cache=-1"]
)
def test_numbers_stay_numbers_and_words_words(value: object) -> None:
    assert runs_csv.as_cell(value) == runs_csv.as_text(value)


def test_a_summary_of_foreign_rows_has_no_formula(tmp_path: Path) -> None:
    write_summaries(tmp_path / "summary.csv", summarise([row(FORMULA, seconds=0.5, client=FORMULA, path=FORMULA)], ()))
    with (tmp_path / "summary.csv").open(newline="") as file:
        (cells,) = csv.DictReader(file)
    assert cells["transport"] == f"'{FORMULA}"
    assert not [cell for cell in cells.values() if cell.startswith("=")]


FOLDER = ROOT / "results" / "reference"
NAMES = sorted(path.stem for path in (ROOT / "suites").glob("*.toml"))


# The largest takes a minute of a core while other tests run.
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",  # the report of elt takes least
    [pytest.param(name, marks=[] if name == "elt" else [pytest.mark.long]) for name in NAMES],
)
def test_its_report_made_again_is_the_committed_one(name, tmp_path):
    for file in ("runs.csv", "environment.json"):
        shutil.copy(FOLDER / name / file, tmp_path)
    if (FOLDER / name / "traces").is_dir():
        shutil.copytree(FOLDER / name / "traces", tmp_path / "traces")
    report.write(tmp_path, suite_files.load(ROOT / "suites", name))
    for file in ("report.md", "summary.csv"):
        assert (tmp_path / file).read_bytes() == (FOLDER / name / file).read_bytes()
    pictures = sorted(path.name for path in (FOLDER / name / "pictures").iterdir())
    assert pictures == sorted(path.name for path in (tmp_path / "pictures").iterdir())
