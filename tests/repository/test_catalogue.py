"""The catalogue: every transport once, on the page of its client, and an index that counts them."""

import inspect
import json
import re
from collections import Counter
from types import SimpleNamespace

import pytest

from harness import registry
from harness.datasets.hostile.common_kinds import KINDS
from harness.docs import catalogue, reference, tables
from harness.lab.packages import NOT_ON_PYPI, packages_of
from harness.model import LabError
from harness.report.figures import significant
from harness.settings import ROOT
from tests.every import every

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
