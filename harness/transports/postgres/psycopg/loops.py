"""What the compiled loops into and out of Postgres share: the types they know, and all memory as arrays.

numba keeps a compiled loop on disk and notices a change in the loop's own file only: after one in this file, remove
__pycache__.
"""

import os
from typing import Any

from harness.registry import Unsupported

REQUIRES = ["numba", "numpy", "psycopg", "pyarrow", "pyarrow.compute"]
CONNECTIONS = min(8, max(2, os.cpu_count() or 2))
BASE = 8  # where "all memory" begins: numpy makes no array at address 0
UUID, TEXT = 16, 17
# Type oid -> how a loop takes it (a number or time: so many bytes), its Arrow type.
NUMBERS = {21: (2, "int16"), 23: (4, "int32"), 20: (8, "int64"), 700: (4, "float32"), 701: (8, "float64")}
TEXTS = dict.fromkeys((25, 1042, 1043), (TEXT, "string_view")) | {2950: (UUID, "string_view")}
TYPES = NUMBERS | TEXTS | {16: (1, "bool"), 1082: (4, "date32"), 1114: (8, "timestamp[us]")}


def compiled(function, parts, widths):
    """Return a loop compiled, which takes `all memory` first: words of these widths, in bytes, at all addresses.

    It runs without the interpreter lock and, as in C, is told addresses. So one loop serves every table.
    """
    from functools import partial

    import numpy as np
    from numba import njit
    from numba.extending import register_jitable

    options: Any = {"forceinline": True, "_nrt": False}  # counting references takes longer than the work
    for part in parts:
        register_jitable(**options)(part)
    everything = {"data": (BASE, False), "shape": (1 << 47,), "strides": (1,), "version": 3}
    memory = [type("Memory", (), {"__array_interface__": everything | {"typestr": f"=i{n}"}})() for n in widths]
    return partial(njit(nogil=True, cache=True, **options)(function), tuple(map(np.asarray, memory)))


def refuse_unknown(connection, described, do):
    """Raise Unsupported with the name and type of every column whose type the loop does not know."""
    unknown = {column.name: column.type_code for column in described if column.type_code not in TYPES}
    if not unknown:
        return
    asked = "SELECT format_type(oid, NULL) FROM unnest(%s::oid[]) WITH ORDINALITY AS t (oid, place) ORDER BY place"
    types = [name for (name,) in connection.execute(asked, [list(unknown.values())])]
    found = ", ".join(f'"{name}" is {kind}' for name, kind in zip(unknown, types, strict=True))
    known = "numbers of 2 to 8 bytes, boolean, date, timestamp, text and uuid"
    raise Unsupported(f"expected columns of {known}, found {found}; {do}")
