"""The command `lab`: the only package that prints or exits; its exit codes are in `app.py`.

`main` handles Ctrl-C before any slow import: importing the commands takes tenths of a second, and even `signal`
imports `enum`.
"""

import _signal as signal  # type: ignore[import-not-found]
import os
import sys

__all__ = ["call", "main"]


def main() -> None:
    """Run the command line, and end the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop_at_once)
    from harness.cli import output

    try:
        output.open_streams()
        _leave(call())
    except output.CannotWrite as error:
        _leave_with(2, f"lab: {error}\n")
    except KeyboardInterrupt:
        _stop_at_once(signal.SIGINT, None)


def call() -> int:
    """Run the command that this process was called with, and return its exit code."""
    from harness.cli.commands import app
    from harness.machine import variables
    from harness.systems import SYSTEMS

    variables.forget_clients(name for system in SYSTEMS.values() for name in system.variables)
    if signal.getsignal(signal.SIGINT) is _stop_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app(prog_name="lab")  # not python -m harness.cli
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _stop_at_once(number: int, frame: object) -> None:
    """Stop before the lab has begun anything that it would have to end."""
    _leave_with(128 + number, "lab: stopped\n")


def _leave_with(code: int, said: str) -> None:
    try:
        os.write(2, said.encode(errors="replace"))
    finally:
        os._exit(code)


def _leave(code: int) -> None:
    """End the process here, after all work: threads of native libraries may crash an interpreter that ends.

    Seen: a segmentation fault in one of about a hundred stopped runs, and an abort in 3 of 156 scripts (pyarrow
    26.0.1).
    """
    from harness.cli.output import CannotWrite

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except CannotWrite:
            if not code:
                raise
        except (OSError, ValueError):  # its reader has gone
            continue
    os._exit(code)
