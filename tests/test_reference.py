"""Reports of the committed reference runs, made again from their rows."""

import shutil

import pytest

from harness import report
from harness.settings import ROOT
from harness.suites import suite_files

FOLDER = ROOT / "results" / "reference"
NAMES = sorted(path.stem for path in (ROOT / "suites").glob("*.toml"))


# The largest takes a minute of a core while other tests run.
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",  # the report of elt takes least
    [pytest.param(name, marks=[] if name == "elt" else [pytest.mark.long]) for name in NAMES],
)
def test_its_report_made_again_is_the_committed_one(name, tmp_path):
    for file in ("runs.csv", "environment.json"):
        shutil.copy(FOLDER / name / file, tmp_path)
    if (FOLDER / name / "traces").is_dir():
        shutil.copytree(FOLDER / name / "traces", tmp_path / "traces")
    report.write(tmp_path, suite_files.load(ROOT / "suites", name))
    for file in ("report.md", "summary.csv"):
        assert (tmp_path / file).read_bytes() == (FOLDER / name / file).read_bytes()
    pictures = sorted(path.name for path in (FOLDER / name / "pictures").iterdir())
    assert pictures == sorted(path.name for path in (tmp_path / "pictures").iterdir())
