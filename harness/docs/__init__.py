"""The generated pages: catalogue, commands, columns and settings from code, answers from the reference runs."""

from collections.abc import Iterator
from pathlib import Path

import typer

from harness.docs import catalogue, excerpts, readme, reference, tables
from harness.docs.reference import adopt
from harness.settings import ROOT
from harness.suites import suite_files

__all__ = ["adopt", "pages", "stale", "write"]


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
    yield excerpts.differences()
    for name in excerpts.PAGES:
        yield ROOT / name, excerpts.page(ROOT / name)


def _of_clients() -> Path:
    return ROOT / "docs" / "catalogue"
