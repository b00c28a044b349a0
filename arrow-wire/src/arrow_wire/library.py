"""The compiled library, and its structures and functions as ctypes sees them: `zig/library.zig` has the same ones."""

import ctypes
from ctypes import POINTER, Structure, c_bool, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from arrow_wire.errors import CheckFailed

NAME = "libarrow_wire.so"  # on every system: Python loads it by its path
VERSION = 2  # of the interface between the two: `version` in `zig/library.zig`


class Buffer(Structure):
    """Bytes that another object owns."""

    _fields_ = [("address", c_void_p), ("size", c_size_t)]


class Array(Structure):
    """An Arrow array: `arrow.Array` in `zig/arrow.zig`."""


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


class Shape(Structure):
    """The layout of a column to write into: `builders.Shape`."""


Shape._fields_ = [
    ("layout", c_uint32),
    ("width", c_uint32),
    ("children", POINTER(Shape)),
    ("child_count", c_size_t),
]


class ArrowArray(Structure):
    """An array of the Arrow C data interface, which pyarrow imports."""

    _fields_ = [(name, c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")] + [
        (name, c_void_p) for name in ("buffers", "children", "dictionary", "release", "private_data")
    ]


class Column(Structure):
    """A column to encode for Postgres: `postgres_column.Column`."""


Column._fields_ = [
    ("array", POINTER(Array)),
    ("item", POINTER(Column)),
    ("encoder", c_uint32),
    ("oid", c_uint32),
    ("multiply", c_int64),
    ("divide", c_int64),
    ("shift", c_int64),
    ("low", c_int64),
    ("high", c_int64),
    ("digits", c_int32),
    ("scale", c_int32),
    ("array_scale", c_int32),
]


class Progress(Structure):
    """Where encoding ended: `postgres_encode.Progress`."""

    _fields_ = [
        ("row", c_size_t),
        ("written", c_size_t),
        ("needs", c_size_t),
        ("reason", c_uint32),
        ("column", c_uint32),
        ("wrong", c_size_t),
    ]


class ReadColumn(Structure):
    """How a column of Postgres is decoded: `postgres_fields.Column`."""


ReadColumn._fields_ = [
    ("item", POINTER(ReadColumn)),
    ("decoder", c_uint32),
    ("digits", c_int32),
    ("scale", c_int32),
    ("multiply", c_int64),
    ("shift", c_int64),
]


class ReadProgress(Structure):
    """Where decoding ended: `postgres_decode.Progress`."""

    _fields_ = [
        ("position", c_size_t),
        ("rows", c_size_t),
        ("end", c_uint32),
        ("reason", c_uint32),
        ("column", c_uint32),
        ("row", c_size_t),
    ]


_SHARED = (Buffer, Array, Shape, ArrowArray, Column, Progress, ReadColumn, ReadProgress)


@cache
def library() -> ctypes.CDLL:
    """Return the library. Raises ImportError if it was not compiled, or was compiled from other sources."""
    path = Path(__file__).parent / NAME
    try:
        loaded = ctypes.CDLL(str(path))  # releases the interpreter's lock during a call
        version = int(loaded.arrow_wire_version())
    except (OSError, AttributeError) as error:
        raise ImportError(f"the compiled library does not load: {error}; install the package again") from None
    if version != VERSION:
        raise ImportError(
            f"the compiled library is of version {version} instead of {VERSION}; install the package again"
        )
    loaded.arrow_wire_size.restype = c_size_t
    loaded.arrow_wire_size.argtypes = [c_char_p, c_size_t]
    for structure in _SHARED:
        require_size(loaded, structure.__name__, structure)
    declare(loaded, "postgres_encode", [
        POINTER(Column), c_size_t, c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, POINTER(Progress),
    ])  # fmt: skip
    declare(loaded, "postgres_keys", [POINTER(Column), c_void_p, c_size_t, POINTER(c_uint32)])
    declare(loaded, "postgres_decode", [
        POINTER(ReadColumn), c_size_t, c_void_p, c_uint32, c_void_p, c_size_t, c_size_t, POINTER(ReadProgress),
    ])  # fmt: skip
    declare(loaded, "columns_new", [POINTER(Shape), c_size_t, POINTER(c_void_p)])
    declare(loaded, "columns_take", [c_void_p, c_size_t, POINTER(ArrowArray), POINTER(c_uint32)])
    declare(loaded, "columns_free", [c_void_p])
    declare(loaded, "fail", [c_char_p, c_size_t])
    for name in ("postgres_encoder", "postgres_decoder", "clickhouse_encoder", "clickhouse_decoding"):
        function = getattr(loaded, f"arrow_wire_{name}")
        function.restype, function.argtypes = c_int32, [c_char_p, c_size_t]
    loaded.arrow_wire_failure.restype = c_size_t
    loaded.arrow_wire_failure.argtypes = [c_char_p, c_size_t]
    return loaded


def require_size(loaded: ctypes.CDLL, name: str, structure: type[Structure]) -> None:
    """Raise ImportError if the library has a structure of another size under this name."""
    found, size = loaded.arrow_wire_size(name.encode(), len(name)), ctypes.sizeof(structure)
    if found != size:
        raise ImportError(
            f"{name} has {found} bytes instead of {size} in the compiled library; install the package again"
        )


def declare(loaded: ctypes.CDLL, name: str, arguments: list[Any]) -> None:
    """Declare a function that returns whether all of its checks passed; if one fails, the call raises an error."""
    function = getattr(loaded, f"arrow_wire_{name}")
    function.restype, function.argtypes, function.errcheck = c_bool, arguments, _require


def _require(done: bool, function: Any, arguments: Any) -> bool:
    if not done:
        said = ctypes.create_string_buffer(200)
        size = library().arrow_wire_failure(said, len(said))
        raise CheckFailed(f"a check inside failed: {said.raw[:size].decode(errors='replace')}; nothing was written")
    return done


@cache
def number_of(what: str, name: str) -> int:
    """Return the number of an encoder or decoder by its name. Raises LookupError for an unknown name."""
    text = name.encode()
    found = int(getattr(library(), f"arrow_wire_{what}")(text, len(text)))
    if found < 0:
        raise LookupError(f"the compiled library has no {what} {name}")
    return found
