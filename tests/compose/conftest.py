"""Lets the tests of this folder import its modules: importlib mode adds no folder by itself."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A folder with the scripts of the Compose lab and .env.example, and no .env."""
    shutil.copytree(ROOT / "compose", tmp_path / "compose")
    for name in (".env.example", "docker-compose.yml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path
