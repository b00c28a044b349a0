"""`raw_csv`: a tree of CSV files as received from others, with malformed lines and differing columns."""

from harness.datasets.raw_csv.files import Tree, ensure, facts, most_bytes, needed_bytes
from harness.datasets.raw_csv.rows import MANDATORY, TYPES

__all__ = ["MANDATORY", "TYPES", "Tree", "ensure", "facts", "most_bytes", "needed_bytes"]
