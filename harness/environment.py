"""environment.json: the machine, versions and settings a run was made with, so that nobody compares what differs."""

import os
import platform
import subprocess
import sys
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from harness.labs import Lab
from harness.model import Dataset, Server
from harness.plan import Plan
from harness.settings import ROOT

# Facts that must agree for two sets of rows to stand in one table.
IDENTITY = ("plan", "dataset", "lab", "machine", "python", "packages")


def describe(
    plan: Plan, dataset: Dataset, lab: Lab, servers: dict[str, Server], built_from: str | None = None
) -> dict[str, Any]:
    """Return the environment of a run as plain values. Nothing in it is secret: no address, user or password.

    `built_from` is the commit of the code where there is no checkout to ask; it ends in -dirty if files were changed.
    """
    return {
        "plan": asdict(plan),
        "dataset": {
            "name": dataset.name,
            "rows": dataset.rows,
            "seed": dataset.seed,
            "content_hash": dataset.content_hash,
        },
        "lab": lab.kind,
        "servers": {name: {"version": server.version, "settings": server.settings} for name, server in servers.items()},
        "machine": _machine(),
        "server_filesystem": _filesystem(lab.folder) if lab.folder else None,
        "python": platform.python_version(),
        "packages": dict(sorted((d.metadata["Name"].lower(), d.version) for d in metadata.distributions())),
        "code": _code(built_from),
        "measurement": {
            "clock": "time.monotonic_ns in the worker",
            "memory": "kernel high-water mark and 50 ms samples" if sys.platform == "linux" else "psutil, RSS only",
            "garbage_collection": "on; one collection just before the clock starts",
            "page_cache": "warm",
        },
        "load_average_at_start": [round(value, 2) for value in os.getloadavg()],
    }


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Name the facts of IDENTITY (and the server versions) that two environments disagree on."""
    names = [name for name in IDENTITY if first.get(name) != second.get(name)]
    versions = [{name: server["version"] for name, server in side["servers"].items()} for side in (first, second)]
    return names if versions[0] == versions[1] else [*names, "servers"]


def _machine() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def _filesystem(path: Path) -> str:
    mounts = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype if mounts else ""


def _code(built_from: str | None) -> dict[str, Any]:
    """Return commit and cleanliness of the checkout; None where there is no git or no checkout."""
    if built_from:
        return {"commit": built_from.removesuffix("-dirty"), "modified": built_from.endswith("-dirty")}
    try:
        commit = _git("rev-parse", "HEAD")
        return {"commit": commit, "modified": bool(_git("status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "modified": None}


def _git(*arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
