"""TPC-H's lineitem as Parquet files in chosen layouts: the same rows in one file or many, row groups of any size.

The rows come from DuckDB's tpch extension, as in the published benchmark of scans. The table is generated in parts of
at most scale factor 1, each in a separate process. Memory therefore does not grow with the scale factor. Files of
several parts are concatenated from them.
"""

from harness.datasets.lineitem.files import (
    LineitemFile,
    ensure_all,
    facts,
    needed_bytes,
    needed_memory,
    require_disk,
    require_memory,
)
from harness.datasets.lineitem.layout import Layout

__all__ = [
    "Layout",
    "LineitemFile",
    "ensure_all",
    "facts",
    "needed_bytes",
    "needed_memory",
    "require_disk",
    "require_memory",
]
