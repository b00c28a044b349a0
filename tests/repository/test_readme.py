"""README: the answers of the reference run, on a page whose links lead somewhere."""

import re
from dataclasses import replace

import pytest

from harness.docs import readme, reference
from harness.model import LabError, Operation
from harness.report.answers import answers
from harness.report.cells import significant
from harness.report.crossing_tables import curves
from harness.report.summarising import summarise
from harness.settings import ROOT
from harness.suites import suite_files
from harness.systems import SYSTEMS
from tests.report.curves import line, runs

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")]
)


def block():
    return readme.page().partition(readme.BEGIN)[2].partition(readme.END)[0]


def rows():
    """Return the cells of each answer: its first row, and those of its usual transports."""
    lines = [line for line in block().splitlines() if line.startswith("|")]
    parted = []
    for cells in ([cell.strip() for cell in text.split("|")[1:-1]] for text in lines[2:]):
        if cells[0] == "usual":
            parted[-1].append(cells)
        else:
            parted.append([cells])
    return parted


def found():
    suite, run, summaries = reference.of(readme.SUITE)
    return answers(suite.answers, run.rows, summaries)


def test_every_database_operation_and_frame_has_an_answer():
    cells = len(SYSTEMS) * len((Operation.WRITE, Operation.READ)) * len(("pandas", "polars"))
    assert len(rows()) == len({first[0] for first, *_ in rows()}) == cells
    assert all(usual for _, *usual in rows())


def test_a_row_says_what_the_answer_says():
    for (first, *usual), one in zip(rows(), found(), strict=True):
        assert [first[2], first[3]] == [significant(one.fastest.median_seconds), ""]
        for row, of in zip(usual, one.usual, strict=True):
            assert row[2] == significant(of.case.median_seconds)
            assert row[3].startswith(f"×{significant(of.factor, 2)} ({significant(of.interval[0], 2)}-")
        cases = [one.fastest, *(of.case for of in one.usual)]
        for row, case in zip([first, *usual], cases, strict=True):
            assert case.client in row[1]
            assert row[1].endswith("†") == bool(case.lossy)


def test_each_link_of_a_row_leads_to_the_page_on_which_the_transport_stands():
    targets = dict(re.findall(r"^\[(\d+)\]: (\S+)$", block(), re.MULTILINE))
    for (first, *_), one in zip(rows(), found(), strict=True):
        page = ROOT / targets[re.search(r"\]\[(\d+)\]", first[1])[1]]
        assert f"\n`{one.fastest.transport}`\n" in page.read_text(encoding="utf-8")


def test_it_says_where_the_figures_of_an_embedded_server_were_made():
    said = " ".join(block().split())
    assert "lab: embedded" in said
    assert "Median seconds for 100,000 rows." in said
    assert "The figures of ClickHouse are those of its engine inside a Python process" in said


def test_a_database_that_came_after_the_reference_run_is_not_in_it(monkeypatch):
    as_it_is = readme.page()
    third = replace(next(iter(SYSTEMS.values())), name="third", embedded="Something of a third one.")
    monkeypatch.setattr(readme, "SYSTEMS", SYSTEMS | {"third": third})
    assert readme.page() == as_it_is


@pytest.mark.parametrize("text", ["no marks", f"{readme.BEGIN}{readme.END}{readme.BEGIN}{readme.END}"])
def test_a_readme_without_its_two_marks_is_refused(text, tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text(text)
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    with pytest.raises(LabError, match="expected the lines <!-- reference:begin --> and"):
        readme.page()


def test_each_crossing_that_the_runs_show_has_a_line():
    names = {"one": "postgres.psycopg.write_polars_rows", "other": "postgres.psycopg.write_polars_copy_text"}
    few, many = line(0.01, 1e-4, (1, 100, 1_000)), line(0.05, 1e-6, (1, 100, 1_000))
    rows = runs(names["one"], few) + runs(names["other"], many)
    suite, summaries = suite_files.load(ROOT / "suites", "crossings"), summarise(rows, ())
    (said,) = readme.crossing_lines(curves(suite, rows, summaries), summaries)
    assert re.fullmatch(
        r"- polars to Postgres: psycopg write_rows, from 4\d0 rows on \([\d ,to]+\) psycopg copy_text", said
    )
    always = runs(names["one"], few) + runs(names["other"], line(0.001, 1e-6, (1, 100, 1_000)))
    assert readme.crossing_lines(curves(suite, always, summarise(always, ())), summaries) == []


def test_its_lines_fit_a_terminal():
    assert [line for line in README.splitlines() if len(line) > (100 if line.startswith("|") else 80)] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_link_to_a_file_leads_to_one(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", text, re.MULTILINE)
    paths = [(inline or below).partition("#")[0] for inline, below in links]
    missing = [
        path for path in paths if path and "://" not in path and not (ROOT / name).parent.joinpath(path).exists()
    ]
    assert missing == []
