"""The generated pages: catalogue, commands, columns and settings from code, answers from the reference runs."""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import typer

from harness.docs import catalogue, readme, reference, tables
from harness.docs.readme import outdated
from harness.docs.reference import adopt
from harness.model import LabError
from harness.report import markdown
from harness.report.conclusions import conclusions
from harness.report.figures import numbered
from harness.settings import ROOT
from harness.suites import suite_files

# Copies of code between two marks, in files that are otherwise written by hand.
#
# Tables and comparisons of the reports of reference runs, README's answers, and the differences from a server that the
# tests of the gateway show.

PAGES = ("docs/findings.md", "docs/how-to/choose-by-hand.md")
_GATEWAY = "harness/systems/*/gateway/__init__.py"
_SHOWN = "tests/systems/*/gateway/test_gateway_differences.py"
_LISTED = re.compile(r"(\(the list is made of its docstrings\):\n\n).*?(?=\"\"\")", re.DOTALL)
_WIDTH = 120
_MARKED = re.compile(r"(<!-- table of (\w+): (.+?) -->\n).*?(<!-- end of table -->\n)", re.DOTALL)


_COMPARED = re.compile(r"(<!-- comparisons of (\w+)(?:: (.+?))? -->\n).*?(<!-- end of comparisons -->\n)", re.DOTALL)
_DIFFERS = re.compile(r"took (\d+) % (longer|less)")


def page(path: Path) -> str:
    """Return the page with its marked parts copied again. Raises LabError for one that its report does not have."""
    return _COMPARED.sub(_compared, _MARKED.sub(_copied, path.read_text(encoding="utf-8")))


def _compared(found: re.Match[str]) -> str:
    begin, suite, titles, end = found.groups()
    said = [_in_short(suite, title) for title in titles.split("; ")] if titles else [readme.in_short(suite)]
    return "\n".join([begin, *(textwrap.fill(text, _WIDTH, break_on_hyphens=False) for text in said if text), "", end])


def _in_short(name: str, title: str) -> str:
    """Return what the comparisons of a reference run whose titles begin so have shown, in a sentence."""
    suite, run, _ = reference.of(name)
    chosen = [one for one in suite.comparisons if getattr(one, "title", "").startswith(title)]
    said = conclusions(run.rows, chosen)
    if not said:
        raise LabError(f'no comparison "{title}" in the report of {name}: name another after "comparisons of {name}:"')
    shown = [match.groups() for text in said if (match := _DIFFERS.search(text))]
    parts = []
    for word in dict.fromkeys(word for _, word in shown):
        of_word = sorted(int(percent) for percent, each in shown if each == word)
        ends = " to ".join(dict.fromkeys(f"{percent} %" for percent in (of_word[0], of_word[-1])))
        parts.append(f"{ends} {word} in {len(of_word)} of {len(said)}")
    rest = "no difference is shown" + (" in the others" if shown else f" in {numbered(len(said), 'case')}")
    parts += [rest] if len(shown) < len(said) else []
    return f"- {title[:1].upper()}{title[1:].removesuffix(' it').rstrip(':,')}: {'; '.join(parts)}."


def _copied(found: re.Match[str]) -> str:
    begin, suite, title, end = found.groups()
    table = next((one for one in reference.tables(suite) if one.title.startswith(title)), None)
    if table is None:
        raise LabError(f'no table "{title}" in the report of {suite}: name another after "table of {suite}:"')
    lines = [line for line in markdown.text_table(table).splitlines() if line.startswith("|")]
    return "\n".join([begin, *lines, "", end])


def differences() -> tuple[Path, str]:
    """Return the gateway's file and its text, with the docstrings of the tests that show a difference from a server."""
    (gateway,), (shown,) = ROOT.glob(_GATEWAY), ROOT.glob(_SHOWN)
    tests = ast.parse(shown.read_text(encoding="utf-8"))
    told = (ast.get_docstring(one) for one in tests.body if isinstance(one, ast.FunctionDef))
    wrap = textwrap.TextWrapper(_WIDTH, "- ", "  ", break_long_words=False, break_on_hyphens=False)
    items = "".join(wrap.fill(" ".join(text.split())) + "\n" for text in told if text)
    return gateway, _LISTED.sub(lambda found: found[1] + items, gateway.read_text(encoding="utf-8"))


__all__ = ["adopt", "outdated", "pages", "stale", "write"]


def stale(app: typer.Typer) -> list[Path]:
    """Return the pages whose file differs from the code, and those of clients that no longer exist."""
    return _stale(dict(pages(app)))


def write(app: typer.Typer) -> list[Path]:
    """Write the stale pages, remove those of clients that no longer exist, and return both."""
    made = dict(pages(app))
    paths = _stale(made)
    for path in paths:
        if path in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[path], encoding="utf-8")
        else:
            path.unlink()
    return paths


def _stale(made: dict[Path, str]) -> list[Path]:
    changed = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    return changed + [path for path in sorted(_of_clients().glob("*.md")) if path not in made]


def pages(app: typer.Typer) -> Iterator[tuple[Path, str]]:
    """Yield path and text of every generated page; `app` is the command line, which this package may not import."""
    docs = ROOT / "docs"
    yield docs / "catalogue.md", catalogue.index()
    for name, text in catalogue.clients():
        yield _of_clients() / f"{name}.md", text
    yield docs / "reference" / "values.md", catalogue.kinds()
    yield docs / "reference" / "cli.md", tables.page(app, "lab")
    yield docs / "reference" / "columns.md", tables.columns()
    yield docs / "reference" / "settings.md", tables.settings()
    yield ROOT / ".env.example", tables.env_example()
    yield docs / "reference" / "runs.md", reference.results()
    yield suite_files.left_out_path(ROOT / "suites", "matrix"), reference.left_out("matrix")
    yield ROOT / "README.md", readme.page()
    yield differences()
    for name in PAGES:
        yield ROOT / name, page(ROOT / name)


def _of_clients() -> Path:
    return ROOT / "docs" / "catalogue"
