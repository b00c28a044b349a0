"""The command `lab`: the only room that prints or exits; its exit codes are in `app.py`.

Nothing is imported before `main` has taken Ctrl-C: the imports of the commands take some tenths of a second.
"""

import os
import signal
import sys
from contextlib import suppress

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
        with suppress(OSError):
            os.write(2, f"lab: {error}\n".encode(errors="replace"))
        os._exit(2)
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
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _stop_at_once(number: int, frame: object) -> None:
    """Stop where nothing was begun yet that would have to be ended."""
    with suppress(OSError):
        os.write(2, b"lab: stopped\n")
    os._exit(128 + number)


def _leave(code: int) -> None:
    """End the process here, everything being in order: threads of native libraries may crash an interpreter that ends.

    Seen: a segmentation fault of one run in some hundred that were stopped, and an abort in 3 of 156 scripts (pyarrow
    26.0.1).
    """
    from harness.cli.output import CannotWrite

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except CannotWrite:
            if not code:
                raise
        except (OSError, ValueError):  # who read it has gone
            continue
    os._exit(code)
