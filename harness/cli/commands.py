"""The application with all of its commands: each module adds its own."""

from harness.cli import catalogue, labs, pages, recommend, runs, several, verifying  # noqa: F401
from harness.cli.app import app

__all__ = ["app"]
