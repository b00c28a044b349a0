"""The files of the Compose lab as the tests read them: the result of Compose, and instructions of Dockerfiles."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLAVOURS = {
    "official": ("docker-compose.yml",),
    "debian": ("docker-compose.yml", "compose/debian.yml"),
}
REQUIRED = {
    "LAB_UID": "1234",
    "LAB_GID": "1235",
    "LAB_POSTGRES_PASSWORD": "for-tests-only-1",
    "LAB_CLICKHOUSE_PASSWORD": "for-tests-only-2",
    "LAB_S3_USER": "for-tests-only-5",
    "LAB_S3_PASSWORD": "for-tests-only-3",
    "LAB_RAY_TOKEN": "for-tests-only-6",
}


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile: its keyword, its arguments on one line, and its stage."""

    word: str
    text: str
    stage: str


def compose(flavour: str, variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `docker compose` on a flavour with only these variables of the lab, and every profile.

    Needs no engine.
    """
    docker = _docker_with_compose()
    if docker is None:
        pytest.skip("docker compose is not installed here; .ci/compose runs it for real")
    files = [argument for name in FLAVOURS[flavour] for argument in ("--file", str(ROOT / name))]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("LAB_") and name != "NO_PROXY"}
    command = (docker, "compose", "--env-file", os.devnull, "--profile", "*", *files, *arguments)
    return subprocess.run(command, env=outside | variables, capture_output=True, text=True, cwd=ROOT)


@cache
def _docker_with_compose() -> str | None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run((docker, "compose", "version"), capture_output=True).returncode:
        return None
    return docker


def configuration(flavour: str, variables: dict[str, str]) -> dict[str, Any]:
    """Return the configuration that Compose makes of a flavour's files."""
    return json.loads(_configuration(flavour, tuple(sorted(variables.items()))))


@cache  # most tests ask about the same few, and Compose takes a quarter of a second for one
def _configuration(flavour: str, variables: tuple[tuple[str, str], ...]) -> str:
    done = compose(flavour, dict(variables), "config", "--format", "json")
    assert done.returncode == 0, done.stderr
    return done.stdout


def instructions(dockerfile: Path) -> list[Instruction]:
    """Parse a Dockerfile: comments dropped, continued lines joined."""
    lines = [line for line in dockerfile.read_text().splitlines() if not line.lstrip().startswith("#")]
    found: list[Instruction] = []
    stage = ""
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, text = line.strip().partition(" ")
            if word == "FROM":
                stage = text.partition(" AS ")[2] or "final"
            found.append(Instruction(word, text.strip(), stage))
    return found
