"""The places where rigs work, and runs of cases on a rig."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from harness.lab import go_programs
from harness.model import Case, Run
from harness.results import runs_csv
from harness.results.row import Row
from harness.run import runner
from harness.settings import Settings
from tests import object_store
from tests.run.rigs.orders import order, running


@pytest.fixture
def settings(tmp_path: Path, dataset_folder: Path) -> Settings:
    """Everything below the test's own folder, but for datasets, which tests share."""
    return Settings(datasets_dir=dataset_folder, results_dir=tmp_path / "results", state_dir=tmp_path / "state")


@pytest.fixture
def without_programs(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a machine without compiled programs: a test that asks for one fails."""

    def refuse(wanted: go_programs.GoProgram, *arguments: object, **more: object) -> Path:
        pytest.fail(f"{wanted.name} was asked for")

    monkeypatch.setattr(go_programs, "program", refuse)
    return settings.model_copy(update={"cache_dir": tmp_path / "cache"})


@pytest.fixture
def perform(settings: Settings, tmp_path: Path) -> Callable[..., list[Row]]:
    """Run cases on a rig; returns the rows, after a check that nothing is left and that no secret is shown."""

    def call(rig: ModuleType, *cases: Case, settings: Settings = settings, traces: bool = False) -> list[Row]:
        folder = tmp_path / "run"
        folder.mkdir()
        with rig.opened(order(settings, *cases)) as opened:
            session = running(opened, folder, traces=traces)
            runner.perform(session, [Run(case, 1, place) for place, case in enumerate(cases, 1)], lambda row: None)
            secrets = list(opened.secrets)
            told = f"{opened.headline} {opened.facts()}"
        assert not list(settings.state_dir.glob("*/*"))
        assert not [secret for secret in secrets if secret in told + (folder / "runs.csv").read_text()]
        return runs_csv.load(folder / "runs.csv")

    return call


@pytest.fixture(scope="session")
def has_s3(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip, with the reason, if the machine has no S3 server and cannot compile one."""
    next(object_store.opened(tmp_path_factory.mktemp("s3")), None)
