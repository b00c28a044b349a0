"""The S3 server that tests use, as the lab itself brings it up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.lab import go_programs, object_stores
from harness.lab.object_stores import Objects
from harness.lab.s3_servers import SERVERS
from harness.settings import Settings

DEFAULT = "versitygw"


def settings_below(folder: Path) -> Settings:
    """Everything below a folder of the test, but for programs that are compiled once."""
    return Settings(datasets_dir=folder / "datasets", results_dir=folder / "results", state_dir=folder / "state")


def require(server: str) -> None:
    """Skip a test of another server than the default where it is not compiled: that takes minutes."""
    if server != DEFAULT and not go_programs.place(SERVERS[server].program, Settings().cache_dir).is_file():
        pytest.skip(f"{server} is not compiled here: .ci/run does that at night")


def opened(folder: Path, server: str = DEFAULT) -> Iterator[Objects]:
    """Yield the object store with its links; without one, skip with the reason."""
    require(server)
    settings = settings_below(folder).model_copy(update={"s3_server": server})
    with object_stores.opened(settings, with_links=True, say=print) as objects:
        if isinstance(objects, str):
            pytest.skip(objects)
        yield objects
