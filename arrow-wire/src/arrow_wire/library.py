"""The compiled library, and its structures and functions as ctypes sees them: `zig/library.zig` has the same ones."""

import ctypes
from ctypes import POINTER, Structure, c_bool, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path

NAME = "libarrow_wire.so"  # on every system: Python loads it by its path


class Buffer(Structure):
    """Bytes that somebody else owns."""

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
    """What a column to write into is to look like: `builders.Shape`."""


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
    """A column on its way to Postgres: `postgres_column.Column`."""


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
    """Where encoding came to: `postgres_encode.Progress`."""

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
    """Where decoding came to: `postgres_decode.Progress`."""

    _fields_ = [
        ("position", c_size_t),
        ("rows", c_size_t),
        ("end", c_uint32),
        ("reason", c_uint32),
        ("column", c_uint32),
        ("row", c_size_t),
    ]


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
    loaded.arrow_wire_postgres_encoder.restype = c_int32
    loaded.arrow_wire_postgres_encoder.argtypes = [c_char_p, c_size_t]
    loaded.arrow_wire_postgres_keys.restype = c_bool
    loaded.arrow_wire_postgres_keys.argtypes = [POINTER(Column), c_void_p, c_size_t]
    loaded.arrow_wire_postgres_decoder.restype = c_int32
    loaded.arrow_wire_postgres_decoder.argtypes = [c_char_p, c_size_t]
    loaded.arrow_wire_postgres_decode.restype = None
    loaded.arrow_wire_postgres_decode.argtypes = [
        POINTER(ReadColumn), c_size_t, c_void_p, c_uint32, c_void_p, c_size_t, c_size_t, POINTER(ReadProgress),
    ]  # fmt: skip
    loaded.arrow_wire_columns_new.restype = c_void_p
    loaded.arrow_wire_columns_new.argtypes = [POINTER(Shape), c_size_t]
    loaded.arrow_wire_columns_take.restype = c_bool
    loaded.arrow_wire_columns_take.argtypes = [c_void_p, c_size_t, POINTER(ArrowArray)]
    loaded.arrow_wire_columns_free.restype = None
    loaded.arrow_wire_columns_free.argtypes = [c_void_p]
    return loaded
