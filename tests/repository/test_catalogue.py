"""The catalogue: every transport once, on the page of its client, and an index that counts them."""

import inspect
import re
from collections import Counter
from types import SimpleNamespace

import pytest

from harness import registry
from harness.docs import catalogue, words
from harness.model import LabError
from tests.every import every

PAGES = dict(catalogue.clients())
SECTIONS = {name: re.split(r"^### ", text, flags=re.MULTILINE)[1:] for name, text in PAGES.items()}


def section(entry):
    (found,) = [part for part in SECTIONS[catalogue.name(entry)] if part.split("\n")[0] == entry.id.rpartition(".")[2]]
    return found


@every(registry.select("*"))
def test_a_transport_stands_once_on_its_clients_page_with_what_it_says_and_declares(entry):
    text = section(entry)
    assert f"\n`{entry.id}`\n" in text
    assert words.prose(entry.summary) in text
    declared = [entry.frame, entry.path, entry.payload, entry.published, *entry.lossy, *entry.needs]
    declared += [f"`{name}={value}`" for name, value in entry.settings.items()]
    assert [one for one in declared if one and one not in text] == []


@every(entry for entry in registry.select("postgres.*,clickhouse.*") if entry.moves_a_frame)
def test_what_a_transport_loses_is_said_by_its_declarations_alone_with_the_mark_of_how(entry):
    (line,) = re.findall(r"^- \[loses\]\(../reference/values.md\): (.*)$", section(entry), re.MULTILINE)
    assert ("†" in line) == ("changed" in entry.lossy.values())
    assert ("‡" in line) == bool(set(entry.lossy.values()) - {"changed"})
    assert (line == "nothing that `lab verify` tries") == (not entry.lossy)
    assert "No value is lost" not in (inspect.getdoc(entry.function) or "")


def test_the_index_leads_to_every_page_and_counts_its_transports_by_operation():
    counted = Counter()
    for part in re.split(r"^## ", catalogue.index(), flags=re.MULTILINE)[1:]:
        lines = [re.split(r" *\| *", line)[1:-1] for line in part.splitlines() if line.startswith("|")]
        for row in lines[2:]:
            page = re.search(r"\(catalogue/(.+)\.md\)", row[0])[1]
            counted.update(
                {(page, name): int(count) for name, count in zip(lines[0][2:], row[2:], strict=True) if count}
            )
    assert counted == Counter((catalogue.name(entry), str(entry.operation)) for entry in registry.select("*"))


def test_a_client_that_says_nothing_of_itself_is_refused(monkeypatch):
    empty = SimpleNamespace(__doc__=None, __name__="empty")
    monkeypatch.setattr(catalogue.importlib, "import_module", lambda name: empty)
    with pytest.raises(LabError, match="expected a docstring that says what the client is, found none"):
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
    assert words.prose(text) == escaped
