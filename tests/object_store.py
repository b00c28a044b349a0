"""The S3 server that tests use: MinIO, as the lab itself brings it up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.lab import object_stores
from harness.lab.object_stores import Objects
from harness.settings import Settings


def settings_below(folder: Path) -> Settings:
    """Everything below a folder of the test, but for programs that are compiled once."""
    return Settings(datasets_dir=folder / "datasets", results_dir=folder / "results", state_dir=folder / "state")


def opened(folder: Path) -> Iterator[Objects]:
    """Yield the object store with its links; skip, with the reason, where there is none."""
    with object_stores.opened(settings_below(folder), with_links=True, say=print) as objects:
        if isinstance(objects, str):
            pytest.skip(objects)
        yield objects
