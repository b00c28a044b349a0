"""Running the scripts of the Compose lab in a checkout of a test, with or without a docker that only looks current."""

import os
import shutil
import subprocess


def run(checkout, *command, **variables):
    outside = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LAB_") and name not in {"BASE", "CLUSTER", "S3", "SUDO_UID"}
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


def with_docker(tmp_path, security="[name=seccomp]", built="echo 'no space left on device'; exit 1"):
    """A PATH with a docker that looks current, writes down what is built with which bundle, and builds nothing.

    `built` is what its builds end with.
    """
    folder = tmp_path / "docker"
    folder.mkdir()
    docker = folder / "docker"
    docker.write_text(
        "#!/usr/bin/env bash\n"
        'case "$*" in\n'
        "  --version) echo Docker version 28.5.2 ;;\n"
        "  'compose version'*) echo 2.40.3 ;;\n"
        "  'buildx version') echo buildx v0.29.1 ;;\n"
        "  version*) echo 28.5.2 Engine ;;\n"
        f"  info*) echo '{security}' ;;\n"
        f"  *' build '*) echo \"$LAB_CA_BUNDLE: $*\" >>'{tmp_path}/built'; {built} ;;\n"
        "esac\n"
    )
    docker.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
