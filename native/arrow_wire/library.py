"""The compiled library, and its structures and functions as ctypes sees them: `src/library.zig` has the same ones."""

import ctypes
from ctypes import POINTER, Structure, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path

NAME = "libarrow_wire.so"  # on every system: Python loads it by its path


class Buffer(Structure):
    """Bytes that somebody else owns."""

    _fields_ = [("address", c_void_p), ("size", c_size_t)]


class Array(Structure):
    """An Arrow array: `arrow.Array` in `src/arrow.zig`."""


Array._fields_ = [
    ("layout", c_uint32),
    ("width", c_uint32),
    ("length", c_size_t),
    ("offset", c_size_t),
    ("validity", Buffer),
    ("values", Buffer),
    ("data", Buffer),
    ("more", POINTER(Buffer)),
    ("more_count", c_size_t),
    ("children", POINTER(Array)),
    ("child_count", c_size_t),
]


class Column(Structure):
    """A column for Postgres: its array, and the number of its encoder."""

    _fields_ = [("array", POINTER(Array)), ("encoder", c_uint32)]


class Progress(Structure):
    """Where encoding came to: `postgres_encode.Progress`."""

    _fields_ = [("row", c_size_t), ("written", c_size_t), ("needs", c_size_t), ("wrong", c_int64)]


@cache
def library() -> ctypes.CDLL:
    """Return the library. Raises ImportError where it was not compiled."""
    path = Path(__file__).parent / NAME
    try:
        loaded = ctypes.CDLL(str(path))  # which lets go of the interpreter's lock during a call
    except OSError as error:
        raise ImportError(f"expected a compiled library, found: {error}; install the package again") from None
    loaded.arrow_wire_postgres_encode.restype = None
    loaded.arrow_wire_postgres_encode.argtypes = [
        POINTER(Column), c_size_t, c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, POINTER(Progress),
    ]  # fmt: skip
    return loaded
