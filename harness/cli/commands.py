"""The application with all of its commands: each module adds its own."""

from harness.cli import catalogue, labs, pages, recommend, reports, runs, verifying  # noqa: F401
from harness.cli.app import app

__all__ = ["app"]

_FIRST = ("recommend", "example", "run", "report", "compare", "merge", "list", "show", "doctor", "serve")
_names = [*_FIRST, "verify", "docs"]  # the last two are for the lab's developers
app.registered_commands.sort(key=lambda one: _names.index(str(one.name or getattr(one.callback, "__name__", ""))))
