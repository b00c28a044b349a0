"""The structures and functions for ClickHouse as ctypes sees them: `zig/clickhouse_*.zig` has the same ones."""

import ctypes
from ctypes import POINTER, Structure, c_int64, c_size_t, c_uint8, c_uint32, c_void_p
from functools import cache

from arrow_wire.library import Array, Buffer, declare, library, require_size

WIDE = c_uint8 * 32


class Node(Structure):
    """How one type is encoded: `Node` in `clickhouse_rows.zig`."""


Node._fields_ = [
    ("array", POINTER(Array)),
    ("encoder", c_uint32),
    ("nullable", c_uint32),
    ("source", c_uint32),
    ("width", c_uint32),
    ("factor", WIDE),
    ("divisor", WIDE),
    ("low", WIDE),
    ("high", WIDE),
    ("labels", POINTER(Array)),
    ("numbers", Buffer),
    ("children", POINTER(Node)),
    ("child_count", c_size_t),
]


class Column(Structure):
    """A column of a block: `Column` in `clickhouse_encode.zig`."""

    _fields_ = [("head", Buffer), ("node", POINTER(Node))]


class Result(Structure):
    """The outcome of a block: `Result` in `clickhouse_encode.zig`."""

    _fields_ = [("address", c_void_p), ("size", c_size_t), ("column", c_size_t), ("failure", c_uint32)]


class Shape(Structure):
    """How one type is decoded: `Node` in `clickhouse_states.zig`."""


Shape._fields_ = [
    ("decoding", c_uint32),
    ("width", c_uint32),
    ("source", c_uint32),
    ("version", c_uint32),
    ("factor", c_int64),
    ("labels", POINTER(Array)),
    ("numbers", Buffer),
    ("children", POINTER(Shape)),
    ("child_count", c_size_t),
]


class ResultColumn(Structure):
    """A column of a result: `Column` in `clickhouse_decode.zig`."""

    _fields_ = [("head", Buffer), ("other_head", Buffer), ("node", POINTER(Shape))]


class Fed(Structure):
    """The outcome of a piece of a result: `Result` in `clickhouse_decode.zig`."""

    _fields_ = [
        ("consumed", c_size_t),
        ("rows", c_size_t),
        ("open", c_uint32),
        ("failure", c_uint32),
        ("column", c_size_t),
    ]


@cache
def functions() -> ctypes.CDLL:
    """Return the library, with the functions for ClickHouse declared. Raises ImportError if it was not compiled."""
    loaded = library()
    for structure in (Node, Column, Result, Shape, ResultColumn, Fed):
        require_size(loaded, f"clickhouse.{structure.__name__}", structure)
    loaded.arrow_wire_clickhouse_encoder_new.restype = c_void_p
    loaded.arrow_wire_clickhouse_encoder_new.argtypes = []
    declare(loaded, "clickhouse_encoder_free", [c_void_p])
    declare(loaded, "clickhouse_encode", [
        c_void_p, POINTER(Column), c_size_t, c_void_p, c_size_t, c_size_t, POINTER(Result),
    ])  # fmt: skip
    declare(loaded, "clickhouse_decoder_new", [POINTER(ResultColumn), c_size_t, c_void_p, POINTER(c_void_p)])
    declare(loaded, "clickhouse_decoder_free", [c_void_p])
    loaded.arrow_wire_clickhouse_decoder_taken.restype = None
    loaded.arrow_wire_clickhouse_decoder_taken.argtypes = [c_void_p]
    declare(loaded, "clickhouse_decode", [c_void_p, c_void_p, c_size_t, c_size_t, POINTER(Fed)])
    return loaded
