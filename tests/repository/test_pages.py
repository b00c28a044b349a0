"""Generated pages: whole, the same each time, and stale ones are found; every transport is once in the catalogue."""

import inspect
import json
import re
from collections import Counter
from functools import cache
from types import SimpleNamespace

import pytest
from typer import Exit

from harness import docs, registry
from harness.cli import commands
from harness.cli.commands import app
from harness.datasets.hostile.common_kinds import KINDS
from harness.docs import catalogue, reference, tables
from harness.docs.tables import compose_settings
from harness.lab.packages import NOT_ON_PYPI, packages_of
from harness.model import LabError, Operation
from harness.report import summary
from harness.report.figures import significant
from harness.results.row import NAMES as COLUMN_NAMES
from harness.settings import ROOT, Settings
from tests.every import every


@cache
def made():
    """The text of every page by its path in the repository."""
    return {path.relative_to(ROOT).as_posix(): text for path, text in docs.pages(app)}


def page(name):
    """The text of a page that is no client's."""
    return next(text for path, text in made().items() if path.rpartition("/")[2] == name)


def of_clients():
    return {path: text for path, text in made().items() if path.startswith("docs/catalogue/")}


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Two pages in a separate folder for the test instead of the real ones."""
    written = [(tmp_path / "a.md", "first\n"), (tmp_path / "docs" / "catalogue" / "b.md", "second é\n")]
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "pages", lambda app: iter(written))
    return [path for path, _ in written]


def test_the_generated_pages_are_these_and_one_for_each_client():
    names = "catalogue.md values.md cli.md columns.md settings.md .env.example runs.md matrix.csv README.md findings.md"
    assert {path.rpartition("/")[2] for path in made().keys() - of_clients()} == {
        *names.split(),
        "choose-by-hand.md",
        "__init__.py",
    }  # of the gateway
    assert of_clients()


def test_every_column_of_both_files_is_in_the_page_of_columns():
    names = re.findall(r"^\| `(\w+)`", page("columns.md"), re.MULTILINE)
    assert names == [*COLUMN_NAMES, *summary.COLUMNS]


def test_every_setting_is_in_the_page_and_in_the_example_file():
    of_harness = [f"LAB_{name.upper()}" for name in Settings.model_fields]
    of_compose = list(compose_settings())
    assert re.findall(r"^\| `(\w+)`", page("settings.md"), re.MULTILINE) == of_harness + of_compose
    assert re.findall(r"^(\w+)=$", page(".env.example"), re.MULTILINE) == of_compose + of_harness


def test_the_example_file_is_comments_and_empty_variables_only():
    assert all(re.fullmatch(r"#.*|\w+=|", line) for line in page(".env.example").splitlines())


def test_no_page_names_a_path_of_this_machine():
    assert [path for path, text in made().items() if str(ROOT) in text] == []


def test_no_operation_is_left_out():
    heads = {word for text in of_clients().values() for word in re.findall(r"^## (\w+) \(\d+\)$", text, re.MULTILINE)}
    assert heads == {str(operation) for operation in Operation}


def test_missing_and_changed_pages_are_stale_and_written_and_then_fresh(pages):
    assert docs.stale(app) == pages
    assert docs.write(app) == pages
    assert docs.stale(app) == []
    pages[1].write_text("edited by hand\n")
    assert docs.stale(app) == [pages[1]]
    assert docs.write(app) == [pages[1]]
    assert pages[1].read_text(encoding="utf-8") == "second é\n"


def test_the_page_of_a_client_that_is_gone_is_stale_and_removed(pages):
    docs.write(app)
    left = pages[1].with_name("gone.md")
    left.write_text("of a client that was\n")
    assert docs.stale(app) == [left]
    assert docs.write(app) == [left]
    assert not left.exists()
    assert docs.stale(app) == []


def test_the_check_fails_if_a_transport_of_readme_has_other_code_than_its_figure(pages, monkeypatch, capsys):
    docs.write(app)
    commands.docs(check=True)
    sources = reference.of("matrix")[1].environment["sources"]
    monkeypatch.setitem(sources, "postgres.psycopg.read_pandas_rows", "changed")  # in no row of README
    commands.docs(check=True)
    monkeypatch.setitem(sources, "postgres.psycopg.write_polars_tuned", "changed")
    with pytest.raises(Exit, match="2"):
        commands.docs(check=True)
    assert "older than the code of postgres.psycopg.write_polars_tuned; replace" in capsys.readouterr().err


def test_writing_what_is_fresh_touches_nothing(pages):
    docs.write(app)
    before = [path.stat().st_mtime_ns for path in pages]
    assert docs.write(app) == []
    assert [path.stat().st_mtime_ns for path in pages] == before


PAGES = dict(catalogue.clients())
SECTIONS = {name: re.split(r"^### ", text, flags=re.MULTILINE)[1:] for name, text in PAGES.items()}


def section(entry):
    (found,) = [part for part in SECTIONS[catalogue.name(entry)] if part.split("\n")[0] == entry.id.rpartition(".")[2]]
    return found


@every(registry.select("*"))
def test_a_transport_is_once_on_its_clients_page_with_what_it_says_and_declares(entry):
    text = section(entry)
    assert f"\n`{entry.id}`\n" in text
    assert f"<code>lab show {entry.id}</code>" in text.partition("<details markdown data-search-exclude>")[2]
    assert re.search(rf"```python\n(async )?def {entry.function.__name__}\(", text)
    assert text.count("```") == 2
    assert ("    pip install " in text) == bool(packages_of(entry) - NOT_ON_PYPI.keys())
    assert tables.prose(entry.summary) in text
    declared = [entry.frame, entry.path, entry.payload, entry.published, *entry.lossy, *entry.needs]
    declared += [f"`{name}={value}`" for name, value in entry.settings.items()]
    assert [one for one in declared if one and one not in text] == []


@every(registry.select("*"))
def test_a_transport_that_no_server_of_the_daily_tests_takes_says_what_tests_it(entry):
    assert ("- tested: by the Compose check alone, " in section(entry)) == ("pg_parquet" in entry.needs)


def test_every_transport_that_the_reference_run_measured_is_once_in_a_table_with_its_median():
    _, _, summaries = reference.of("matrix")
    wanted = Counter(
        (case.transport, significant(case.median_seconds))
        for case in summaries
        if case.experiment == "matrix" and case.origin in ("published", "beyond") and case.frame and case.n
    )
    found = Counter(
        (f"{name.replace('-', '.', 1)}.{function}", median)
        for name, text in PAGES.items()
        for function, median in re.findall(r"\| \[(\w+)\]\(#\w+\)[ †‡]* \| (\S+) \|", text)
    )
    assert found == wanted


@every(entry for entry in registry.select("postgres.*,clickhouse.*") if entry.moves_a_frame)
def test_what_a_transport_loses_is_said_by_its_declarations_alone_with_the_mark_of_how(entry):
    (line,) = re.findall(r"^- \[loses\]\(../reference/values.md\): (.*)$", section(entry), re.MULTILINE)
    assert ("†" in line) == ("changed" in entry.lossy.values())
    assert ("‡" in line) == bool(set(entry.lossy.values()) - {"changed"})
    assert (line == "nothing that `lab verify` tries") == (not entry.lossy)
    assert "No value is lost" not in (inspect.getdoc(entry.function) or "")


def test_no_page_has_anything_else():
    assert sum(map(len, SECTIONS.values())) == len(registry.select("*"))


def test_the_index_leads_to_every_page_and_counts_its_transports_by_operation():
    counted = Counter()
    for part in re.split(r"^## ", catalogue.index(), flags=re.MULTILINE)[1:]:
        lines = [re.split(r" *\| *", line)[1:-1] for line in part.splitlines() if line.startswith("|")]
        if lines and lines[0][0] == "database":
            continue  # of the reference run's figures
        for row in lines[2:]:
            page = re.search(r"\(catalogue/(.+)\.md\)", row[0])[1]
            counted.update(
                {(page, name): int(count) for name, count in zip(lines[0][2:], row[2:], strict=True) if count}
            )
    assert counted == Counter((catalogue.name(entry), str(entry.operation)) for entry in registry.select("*"))


def test_the_index_has_all_that_the_reference_run_measured_once():
    measured = [
        line for text in PAGES.values() for line in re.findall(r"^\| (?:read|write) \| .*\[.*$", text, re.MULTILINE)
    ]
    listed = re.findall(r"^\| (?:postgres|clickhouse) \| (.*)$", catalogue.index(), re.MULTILINE)
    assert len(listed) == len(measured) > 200
    assert {re.sub(r"\[.*?\]\(.*#", "(#", line) for line in listed} == {
        re.sub(r"\[.*?\]\(#", "(#", line.removeprefix("| ")) for line in measured
    }


def test_a_page_filters_by_columns_that_the_table_has():
    script = (ROOT / "website/filter.js").read_text("utf-8")
    names = json.loads(re.search(r"for \(const name of (\[.*\])\)", script)[1])
    (head,) = re.findall(r"^\| (database \| .*) \|$", catalogue.index(), re.MULTILINE)
    assert set(names) - set(head.split(" | ")) == set()


def test_every_kind_of_values_is_on_its_page():
    assert re.findall(r"^\| `(\w+)`", catalogue.kinds(), re.MULTILINE) == list(KINDS)


def test_a_client_that_says_nothing_of_itself_is_refused(monkeypatch):
    empty = SimpleNamespace(__doc__=None, __name__="empty")
    monkeypatch.setattr(catalogue.importlib, "import_module", lambda name: empty)
    with pytest.raises(LabError, match="no docstring describes the client"):
        catalogue.introduction(registry.one("postgres.psycopg.write_polars_copy_text"))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("SELECT * FROM t", r"SELECT \* FROM t"),
        ("`a * b <c>` and *", r"`a * b <c>` and \*"),
        ("results/<id>", "results/&lt;id>"),
        (r"marks \N, or \.", r"marks \\N, or \\."),
        ("_control of write_rows", r"\_control of write_rows"),
        ("[1]", r"\[1\]"),
    ],
)
def test_a_docstring_is_shown_letter_by_letter(text, escaped):
    assert tables.prose(text) == escaped
