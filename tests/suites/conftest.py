"""A folder with one small suite, and that suite."""

from pathlib import Path

import pytest

from harness.suites import suite_files
from harness.suites.suite import Suite
from tests.suites.small import FIGURES, GOOD


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one good suite named small."""
    (tmp_path / "small.toml").write_text(GOOD)
    (tmp_path / "figures.csv").write_text(FIGURES)
    return tmp_path


@pytest.fixture
def small(folder: Path) -> Suite:
    return suite_files.load(folder, "small")
