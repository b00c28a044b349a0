"""Benchmarks of the harness itself: its overhead in a run, and how fast the lab starts and makes data."""

import re
from pathlib import Path


def put_between(page: Path, script: str, text: str) -> str:
    """Return a page with this text between the marks of a script of this package."""
    between = rf"(<!-- benchmarks/{script} -->\n).*?(<!-- end -->)"
    return re.sub(between, lambda mark: f"{mark[1]}\n{text}\n{mark[2]}", page.read_text(encoding="utf-8"), flags=re.S)
