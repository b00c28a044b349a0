"""A folder for embedded labs."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every account can reach; pytest's own is closed to other accounts."""
    path = Path(tempfile.mkdtemp(prefix="lab-test-")).resolve()
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)
