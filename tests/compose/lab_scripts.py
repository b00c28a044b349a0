"""Running the scripts of the Compose lab in a checkout of a test, with or without a docker that only looks current."""

import os
import shutil
import subprocess

TOLD = ("BUILDX_BUILDER", "LAB_EMULATED", "NO_PROXY", "PG_PARQUET_TRY")  # to docker, in its environment


def run(checkout, *command, **variables):
    outside = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LAB_") and name not in {"BASE", "CLUSTER", "NO_PROXY", "S3", "SUDO_UID"}
    }
    return subprocess.run(command, cwd=checkout, env=outside | variables, capture_output=True, text=True)


def settings(checkout):
    lines = (checkout / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def without_docker(tmp_path):
    """A PATH with everything the scripts need but docker."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "env", "dirname", "sed", "tail", "cat", "grep", "rm", "flock"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return str(folder)


def with_docker(tmp_path, security="[name=seccomp]", built="echo 'no space left on device'; exit 1", answers=""):
    """A PATH with a docker that looks current, writes down how it is called and what is built, and builds nothing.

    `built` is what its builds end with; `answers` are cases of its own, which come first.
    """
    folder = tmp_path / "docker"
    folder.mkdir()
    docker = folder / "docker"
    docker.write_text(
        "#!/usr/bin/env bash\n"
        f"echo \"$* $(env | grep -E '^({'|'.join(TOLD)})=' | sort | paste -sd' ' -)\" >>'{tmp_path}/calls'\n"
        'case "$*" in\n'
        f"{answers}"
        "  --version) echo Docker version 28.5.2 ;;\n"
        "  'compose version'*) echo 2.40.3 ;;\n"
        "  'buildx version') echo buildx v0.29.1 ;;\n"
        "  *Server.Arch*) echo arm64 ;;\n"
        "  version*) echo 28.5.2 Engine ;;\n"
        f"  info*) echo '{security}' ;;\n"
        "  'run '*) exit 125 ;;\n"
        f"  *' build '*) echo \"$*\" >>'{tmp_path}/built'; {built} ;;\n"
        "esac\n"
    )
    docker.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def called(tmp_path, words):
    """Return the calls of docker that have these words, with the variables that are said to it."""
    return [line for line in (tmp_path / "calls").read_text().splitlines() if words in line]
