""".ci/smoke-images with a `docker` that records its calls: which images count as used, and which are left."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.settings import ROOT
from tests.programs import executable

DOCKER = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
  inspect*) echo "$STATE" ;;
  run*"lab run matrix"*) exit "$OF_RUN" ;;
esac
"""


def smoke(folder: Path, state: str = "running, healthy", of_run: int = 0) -> tuple[int, list[str], str]:
    """Return the status, the calls of docker, and the output."""
    executable(folder / "docker", DOCKER)
    told = {"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(folder / "calls")}
    told |= {"STATE": state, "OF_RUN": str(of_run)}
    command = (ROOT / ".ci/smoke-images", "registry.example/lab", "v1-amd64")
    done = subprocess.run(command, env=told, capture_output=True, text=True)
    return done.returncode, (folder / "calls").read_text().splitlines(), done.stdout + done.stderr


def test_each_image_is_started_asked_and_gone_afterwards(tmp_path: Path) -> None:
    status, asked, said = smoke(tmp_path)
    assert status == 0, said
    for image in ("postgres", "clickhouse", "versitygw", "minio", "harness"):
        assert any(call.startswith("run ") and f"registry.example/lab/{image}:v1-amd64" in call for call in asked)
    assert not any(" --publish" in call or " -p " in call for call in asked)
    measured = next(call for call in asked if "lab run matrix" in call)
    for transport in (f"{of}.{do}_" for of in ("postgres.psycopg", "clickhouse.httpx") for do in ("write", "read")):
        assert transport in measured
    for server in ("versitygw", "minio"):
        assert any(f"//{server}:9000" in call and "lab doctor --external" in call for call in asked)
    assert [call.split()[0] for call in asked[-2:]] == ["rm", "network"]


@pytest.mark.parametrize("state", ["exited, unhealthy", "restarting, starting"])
def test_a_service_that_ends_fails_with_its_state_and_its_log(tmp_path: Path, state: str) -> None:
    status, asked, said = smoke(tmp_path, state=state)
    assert status == 1
    assert f"postgres: expected it healthy within 180 s, found it {state}" in said
    assert any(call.startswith("logs ") for call in asked)
    assert asked[-2].startswith("rm --force --volumes")
    assert not any("lab run" in call for call in asked)


def test_a_value_that_does_not_survive_fails(tmp_path: Path) -> None:
    status, asked, _ = smoke(tmp_path, of_run=1)
    assert status == 1
    assert asked[-1].startswith("network rm")
