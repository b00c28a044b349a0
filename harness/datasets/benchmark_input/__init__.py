"""`benchmark_input`: the tuning suite's table in Parquet files, with known answers to its queries."""

from harness.datasets.benchmark_input.files import Answers, InputFiles, ensure, facts, most_bytes, needed_bytes
from harness.datasets.benchmark_input.rows import TYPES

__all__ = ["TYPES", "Answers", "InputFiles", "ensure", "facts", "most_bytes", "needed_bytes"]
