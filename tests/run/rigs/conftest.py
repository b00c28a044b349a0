"""What rigs are told of where to work."""

from pathlib import Path

import pytest

from harness.lab import go_programs
from harness.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, dataset_folder: Path) -> Settings:
    """Everything below the test's own folder, but for datasets, which tests share."""
    return Settings(datasets_dir=dataset_folder, results_dir=tmp_path / "results", state_dir=tmp_path / "state")


@pytest.fixture
def without_programs(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a machine that has compiled nothing yet, on which a test that asks for a program fails."""

    def refuse(wanted: go_programs.GoProgram, *arguments: object, **more: object) -> Path:
        pytest.fail(f"{wanted.name} was asked for")

    monkeypatch.setattr(go_programs, "program", refuse)
    return settings.model_copy(update={"cache_dir": tmp_path / "cache"})
