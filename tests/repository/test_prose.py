"""Words and sentences of pages, docstrings, comments and messages; Harper finds words by the rules in words/."""

import json
import re
import subprocess
import sys
import zipfile
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.settings import ROOT
from tests.repository.prose import (
    comments,
    docstrings,
    messages,
    names_of_tests,
    pages,
    remarks,
    sentences,
)

RULES = Path(__file__).with_name("words")
FOLDERS = ("harness", "arrow-wire/src/arrow_wire", "benchmarks", "environments", "tests", "website")
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
}
EXAMPLES = {
    rule.stem: re.findall(r'^test "(.*)" "(.*)"$', rule.read_text("utf-8"), re.MULTILINE)
    for rule in RULES.glob("*.weir")
}
NO_PAGES = ("*Makefile", "*.yml", "*.toml", "*.zig", ".ci", "compose", "environments", "images", "arrow-wire/install")
LONGEST = 35


def found(strings: Mapping[str, str], page: Path) -> list[tuple[str, str, str]]:
    """Return the findings of Harper by the rules, each as path, rule and words. It reads all from one file."""
    pack = page.with_name("words.weirpack")
    with zipfile.ZipFile(pack, "w") as archive:
        for rule in RULES.iterdir():
            archive.write(rule, rule.name)
    lines: list[str] = []
    begins: list[int] = []
    for text in strings.values():
        begins.append(len(lines) + 1)
        lines += [*text.splitlines(), ""]
    page.write_text("\n".join(lines), "utf-8")
    words = [str(Path(sys.executable).with_name("harper")), "lint", "--quiet", "--keep-overlapping-lints"]
    words += ["--format", "json", "--weirpacks", str(pack), "--only", ",".join(EXAMPLES), str(page)]
    done = subprocess.run(words, capture_output=True, text=True)
    (report,) = json.loads(done.stdout)
    paths = list(strings)
    where = (paths[bisect_right(begins, lint["line"]) - 1] for lint in report["lints"])
    return sorted((path, lint["rule"], lint["matched_text"]) for path, lint in zip(where, report["lints"], strict=True))


def said(path: str, source: str) -> str:
    """Return the words of Python source without code. Tests have their names instead of strings, which are data."""
    words = [*docstrings(source), *comments(source)]
    words += names_of_tests(source) if path.startswith("tests/") else messages(source)
    return without_code("\n\n".join(words))


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "x", text)


def test_no_page_says_a_word_that_has_a_better_one(tmp_path):
    assert found(pages(), tmp_path / "pages.md") == []


@pytest.mark.long
def test_no_source_says_a_word_that_has_a_better_one(tmp_path):
    assert found({path: said(path, source) for path, source in SOURCES.items()}, tmp_path / "sources.txt") == []


def test_no_comment_of_a_script_says_a_word_that_has_a_better_one(tmp_path):
    listed = subprocess.run(("git", "ls-files", "-z", *NO_PAGES), cwd=ROOT, capture_output=True, text=True, check=True)
    paths = listed.stdout.split("\0")[:-1]
    read = {path: without_code(remarks((ROOT / path).read_text("utf-8"))) for path in paths}
    assert {"Makefile", "arrow-wire/zig/arrow.zig", ".ci/run", "docker-compose.yml"} <= read.keys()
    assert found(read, tmp_path / "scripts.txt") == []


def test_each_rule_finds_its_examples_and_nothing_else(tmp_path):
    examples = {f"{rule}: {before}": before for rule, pairs in EXAMPLES.items() for before, _ in pairs}
    wrong = {
        (f"{rule}: {before}", rule) for rule, pairs in EXAMPLES.items() for before, after in pairs if before != after
    }
    assert {(path, rule) for path, rule, _ in found(examples, tmp_path / "examples.md")} == wrong
    assert {rule for _, rule in wrong} == EXAMPLES.keys()


def too_long(text: str) -> list[str]:
    return [one for one in sentences(text) if len(one.split()) > LONGEST]


def test_no_sentence_of_a_page_is_too_long():
    assert {path: long for path, text in pages().items() if (long := too_long(text))} == {}


def test_no_sentence_of_a_docstring_is_too_long():
    all_of = {path: [one for text in docstrings(source) for one in too_long(text)] for path, source in SOURCES.items()}
    assert {path: long for path, long in all_of.items() if long} == {}
