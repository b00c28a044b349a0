"""`benchmark_input`: the table of the tuning suite in Parquet files, with the answers of its queries known."""

from harness.datasets.benchmark_input.files import Answers, InputFiles, ensure, facts, most_bytes, needed_bytes
from harness.datasets.benchmark_input.rows import TYPES

__all__ = ["TYPES", "Answers", "InputFiles", "ensure", "facts", "most_bytes", "needed_bytes"]
