"""A single file of lineitem, built or reused."""

from pathlib import Path

from harness.datasets import lineitem
from harness.datasets.lineitem import Layout, LineitemFile


def ensure(folder: Path, layout: Layout) -> LineitemFile:
    return lineitem.ensure_all(folder, [layout], print)[layout]
