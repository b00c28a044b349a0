"""The pages of the docs: the commands, targets, links, messages and figures in prose exist."""

import re
import shlex
import subprocess
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
import typer

from harness.cli.commands import app
from harness.docs import commands, excerpts, readme
from harness.model import LabError
from harness.registry import catalogue
from harness.settings import ROOT
from harness.suites.comparisons import Comparison
from tests.every import every
from tests.report.cases import row, suite

GROUP = typer.main.get_command(app)
TYPED = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/get-started.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/how-to/*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/explanation/*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/dev/*.md")),
)


def typed():
    """The commands of the lab in prose, by file: the code after `lab`, without its comment."""
    for name in TYPED:
        for line in re.findall(r"(?:^ {4,}(?:- run: )?|`)(?:\.venv/bin/)?(lab [a-z][^`\n]*)", *_lines(name)):
            yield pytest.param(line, id=f"{name}: {line}")


def _lines(name):
    return (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE


def typed_targets(name):
    return re.findall(r"(?:^ {4,}|`|&& )make ([a-z][a-z-]*)", *_lines(name))


def test_every_command_and_option_is_on_the_page():
    text = commands.page(app, "lab")
    for name, command in GROUP.commands.items():
        part = text.partition(f"\n## lab {name}\n")[2].partition("\n## ")[0]
        assert part.count(f"$ lab {name}") == 1
        options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
        assert options <= set(re.findall(r"`(--[a-z-]+)", part)) | {"--help"}
        assert f"](#lab-{name})" in text


def test_the_page_of_commands_shows_help_letter_by_letter():
    other = typer.Typer(help="Say <what> it is.", rich_markup_mode=None)
    other.command("one")(lambda: None)

    @other.command()
    def two(glob: str = typer.Option("*", help="Glob, such as '*.a_*'")) -> None:
        """Do the second thing."""

    text = commands.page(other, "tool")
    assert "Say &lt;what> it is." in text
    assert r"Glob, such as '\*.a\_\*'" in text


@pytest.mark.parametrize("line", list(typed()))
def test_a_command_in_prose_is_one_that_the_application_takes(line):
    words = shlex.split(line.partition("  #")[0])
    command = GROUP.commands.get(words[1])
    assert command, f"there is no command {words[1]}"
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word.partition("=")[0] for word in words[2:] if word.startswith("-")} <= known


def test_prose_has_commands_and_targets_in_it():
    assert len(list(typed())) > 10
    assert sum(len(typed_targets(name)) for name in TYPED) > 20


@pytest.mark.parametrize("name", TYPED)
def test_a_target_of_make_in_prose_is_one_of_the_makefile(name):
    there = re.findall(r"^([a-z-]+(?: [a-z-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(typed_targets(name)) <= {target for line in there for target in line.split()}


README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [" ".join(found.split()) for found in re.findall(r"(?:^ {4}\S.*\n(?:\n(?= {4}))?)+", README, re.MULTILINE)]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_make_alone_prints_four_groups_of_at_most_70_columns():
    done = subprocess.run(["make", "--silent", "-C", ROOT, "help"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line for line in lines if len(line) > 70] == []
    heads = [line for line, below in pairwise(lines) if below.startswith("  make ") and not line.startswith(" ")]
    assert heads == ["Measure, without Docker", "Compose lab", "Tests", "Maintenance"]


@pytest.mark.parametrize("command", ["make install", "make bench", "make up && make bench && make down", "make test"])
def test_a_command_that_a_newcomer_needs_is_alone_in_its_block(command):
    """A copy button pastes a whole block: not two alternatives, and no comment, which zsh takes for arguments."""
    assert command in BLOCKS


def test_readme_is_short_and_narrow():
    lines = README.splitlines()
    prose = [line for line in lines if not line.startswith(("|", "[", "    "))]  # not tables, links and screens
    assert len(lines) <= 110
    assert max(map(len, prose)) <= 80


def test_readme_says_before_any_figure_that_every_value_is_compared():
    first = " ".join(README.partition(readme.BEGIN)[0].split())
    assert "without losing a value" in first
    assert "compares every value that arrives" in first


def test_the_number_of_transports_is_that_of_the_catalogue_in_round_hundreds():
    there = sum(entry.moves_a_frame for entry in catalogue().values())
    assert re.findall(r"more than (\d+) recipes", " ".join(README.split())) == [str(there // 100 * 100)]


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


OUTSIDE = ("docs/catalogue/", "docs/upstream/")  # put below the catalogue by the hook; notes
CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_of_the_docs_has_a_place_in_the_navigation():
    listed = re.findall(r"^ +- (\S+\.md)$", CONFIGURATION, re.MULTILINE)
    pages = {path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]}
    assert {page for page in pages if not page.startswith(OUTSIDE)} == {page for page in listed if page in pages}
    assert len(listed) == len(set(listed))


def test_a_warning_ends_the_build():
    """With --quiet MkDocs counts no warning. Without the setting for links it accepts any link."""
    (build,) = re.findall(r"mkdocs build.*", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert "--strict" in build
    assert "quiet" not in build
    assert "links: {not_found: warn, anchors: warn, " in CONFIGURATION


def test_no_page_loads_anything_over_a_network():
    assert "font: false" in CONFIGURATION
    assert "iframe-worker" in re.search(r"polyfills: \[(.*)\]", CONFIGURATION)[1]


PAGE = (ROOT / "docs/how-to/troubleshooting.md").read_text("utf-8")
HEADINGS = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
OF_DOCKER = re.findall(r"^\| `(.+?)` \|", PAGE, re.MULTILINE)


def printed() -> str:
    """Return all source that prints, with the pieces of a string joined."""
    files = (path for folder in ("harness", "environments", "compose") for path in (ROOT / folder).rglob("*"))
    sources = (path.read_text("utf-8") for path in files if path.is_file() and path.suffix in ("", ".py", ".tsv"))
    return re.sub(r"[\"']\s*\n\s*f?[\"']", "", "\n".join(sources)).replace("\\", "")


def test_each_message_is_one_that_is_printed():
    parts = [part.strip() for message in [*HEADINGS, *OF_DOCKER] for part in message.split("…")]
    source = printed()
    assert len(HEADINGS) >= 15
    assert [part for part in parts if part not in source] == []


FINDINGS = (ROOT / "docs/findings.md").read_text("utf-8")
SECTIONS = {
    part.partition("\n")[0]: part.partition("\n")[2]
    for part in re.split(r"^## ", FINDINGS, flags=re.MULTILINE)[1:]
    if "/report.md)" in part
}


def figures(text: str) -> set[str]:
    """Return the numbers of the prose: not those of tables, comparisons made from runs, links, pictures and code."""
    text = re.sub(r"<!-- comparisons of .*?<!-- end of comparisons -->", "", text, flags=re.DOTALL)
    prose = re.sub(r"^\|.*$|^!.*$|<!--.*?-->|\]\([^)]*\)|`[^`]*`", "", text, flags=re.MULTILINE)
    return set(re.findall(r"\d(?:[\d,.]*\d)?", prose))


def test_each_suite_has_its_findings():
    linked = set(re.findall(r"reference/(\w+)/report\.md", FINDINGS))
    assert linked == {path.name for path in (ROOT / "results/reference").iterdir()}


@every(SECTIONS, str)
def test_every_figure_is_in_the_report_of_its_section_or_in_readme(section):
    (suite,) = set(re.findall(r"reference/(\w+)/report\.md", SECTIONS[section]))
    said = README + (ROOT / f"results/reference/{suite}/report.md").read_text("utf-8")
    there = set(re.findall(r"\d(?:[\d,.]*\d)?", said))
    assert figures(SECTIONS[section]) - there == set()


def test_comparisons_in_a_page_are_made_from_the_run_and_follow_it(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    rows = [
        row("a", experiment="x", seconds=seconds * scatter, parameters=f"tls={tls}", pass_number=number)
        for seconds, tls in ((1.0, "off"), (1.5, "on"))
        for number, scatter in enumerate((1, 1.01, 0.99), start=1)
    ]
    about = replace(suite(), comparisons=(Comparison("with TLS it", "x", {"tls": "on"}, {"tls": "off"}),))
    monkeypatch.setattr(excerpts.reference, "of", lambda name: (about, SimpleNamespace(rows=rows), []))
    page.write_text("<!-- comparisons of made: with TLS it -->\nold\n<!-- end of comparisons -->\n")
    assert "\n- With TLS: 50 % longer in 1 of 1.\n" in excerpts.page(page)
    assert "old" not in excerpts.page(page)
    page.write_text("<!-- comparisons of made: without it -->\n<!-- end of comparisons -->\n")
    with pytest.raises(LabError, match='no comparison "without it" in the report of made'):
        excerpts.page(page)


LINES = [line for line in (ROOT / "docs/assumptions.md").read_text().splitlines() if line.startswith("| `")]
ROWS = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in LINES]


def test_every_assumption_names_a_file_of_the_lab():
    assert len(ROWS) > 15
    assert [row[0] for row in ROWS if not (ROOT / row[0].strip("`")).is_file()] == []


def test_every_assumption_says_where_and_when_it_was_read_and_whether_it_holds():
    for file, assumption, source, holds, date in ROWS:
        assert assumption, file
        assert re.search(r"`[^`]+`|package index", source), f"{file}: expected a file of upstream, found {source}"
        assert re.match(r"(yes|no|newer)\b", holds), f"{file}: {holds}"
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date), f"{file}: {date}"


def test_an_assumption_that_does_not_hold_says_what_the_lab_does_instead():
    assert [row[0] for row in ROWS if row[3].startswith("no") and ": " not in row[3]] == []
