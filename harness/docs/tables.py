"""The pages of columns and settings, and .env.example."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from harness.docs.words import COMMENT, GENERATED
from harness.report import summary
from harness.report.markdown import table
from harness.results import row
from harness.settings import ROOT, Settings

_INSTALLED = """\
If pip installed the lab, `datasets` and `results` are in the current folder. The suites are those of the package, and
the state is in `~/.cache/dataframe-io-lab/state`."""


def columns() -> str:
    """Return the page of the columns of runs.csv and summary.csv."""
    runs = table(
        ("column", "type", "unit", "meaning"),
        ((f"`{c.name}`", c.type, c.unit, c.meaning) for c in row.COLUMNS),
    )
    summaries = table(("column", "meaning"), ((f"`{name}`", text) for name, text in summary.COLUMNS.items()))
    return (
        f"# Columns of the result files\n\n{COMMENT}\n\nA missing figure is an empty cell, never 0.\n\n"
        f"## runs.csv: one row a run\n\n{runs}\n## summary.csv: one row a transport\n\n{summaries}"
    )


def settings() -> str:
    """Return the page of all settings."""
    head = ("variable", "default", "meaning")
    of_harness, of_compose = (
        table(head, ((f"`{n}`", f"`{d}`" if d else "", m) for n, d, m in rows))
        for rows in (_setting_rows(), _compose_rows())
    )
    return (
        f"# Settings\n\n{COMMENT}\n\nPaths in defaults are relative to the checkout. {_INSTALLED}\n\n"
        f"## Of the command `lab`: environment variables\n\n{of_harness}\n"
        f"## Of the Compose lab: in `.env`, or environment variables of `make`\n\n{of_compose}"
    )


def env_example() -> str:
    """Return .env.example: every setting, empty, with its meaning."""
    lines = [f"# {GENERATED}", "# Every setting of the lab; an empty value means the default.", ""]
    for title, rows in (("The Compose lab", _compose_rows()), ("The command lab", _setting_rows())):
        lines += [f"## {title}", ""]
        for name, default, meaning in rows:
            lines += [f"# {meaning}" + (f" (default: {default})" if default else ""), f"{name}=", ""]
    return "\n".join(lines[:-1]) + "\n"


def compose_settings() -> dict[str, str]:
    """Return the variables of the Compose lab with their defaults."""
    return {name: default for name, default, _ in _compose_rows()}


def _setting_rows() -> Iterator[tuple[str, str, str]]:
    for name, field in Settings.model_fields.items():
        default = field.default
        if isinstance(default, Path):
            default = default.relative_to(ROOT) if default.is_relative_to(ROOT) else default
        yield f"LAB_{name.upper()}", "" if default is None else str(default), field.description or ""


def _compose_rows() -> Iterator[tuple[str, str, str]]:
    settings = tomllib.loads((ROOT / "compose" / "settings.toml").read_text(encoding="utf-8"))
    for name, setting in settings.items():
        yield name, setting["default"], setting["meaning"]
