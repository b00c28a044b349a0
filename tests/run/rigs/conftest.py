"""What rigs are told of where to work."""

from pathlib import Path

import pytest

from harness.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, dataset_folder: Path) -> Settings:
    """Everything below the test's own folder, but for datasets, which tests share."""
    return Settings(datasets_dir=dataset_folder, results_dir=tmp_path / "results", state_dir=tmp_path / "state")
