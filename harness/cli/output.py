"""Standard output and error: if they cannot be written to, a command ends with one line."""

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

from harness.model import LabError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class CannotWrite(LabError):
    """Standard output takes nothing any more."""


class _Output(io.FileIO):
    def write(self, data: "ReadableBuffer", /) -> int:
        """Write. Raises CannotWrite with the reason."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.EAGAIN):  # its reader has gone, or is slow
                raise
            raise CannotWrite(f"cannot write to standard output: {error.strerror}; make room, or redirect it") from None


def open_streams() -> None:
    """Let standard output and error take all characters. Raises CannotWrite if standard output is closed.

    /dev/null takes a closed descriptor, because the next opened file would get its number.
    """
    closed = [number for number in range(3) if not _is_open(number)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)
    if 1 in closed or sys.stdout is None:
        raise CannotWrite("standard output is closed: redirect it to a file, or to /dev/null")
    if 2 in closed or sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without † is no reason to lose a table
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        told = io.BufferedWriter(_Output(1, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(told, sys.stdout.encoding, "replace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
