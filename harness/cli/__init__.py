"""The command `lab`: the only room that prints or exits; its exit codes stand in `app.py`."""

import io
import os
import sys
from contextlib import suppress

# Each module adds its commands to the application.
from harness.cli import catalogue, labs, pages, recommend, runs, several, verifying  # noqa: F401
from harness.cli.app import app
from harness.machine import variables
from harness.systems import SYSTEMS

__all__ = ["app", "call", "main"]


def main() -> None:
    """Run the command line, and end the process."""
    _leave(call())


def call() -> int:
    """Run the command that this process was called with, and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without † is no reason to lose a table
    variables.forget_clients(name for system in SYSTEMS.values() for name in system.variables)
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _leave(code: int) -> None:
    """End the process here, everything being in order: threads of native libraries may crash an interpreter that ends.

    Seen: a segmentation fault of one run in some hundred that were stopped, and an abort in 3 of 156 scripts (pyarrow
    26.0.1).
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # who read it has gone
            stream.flush()
    os._exit(code)
