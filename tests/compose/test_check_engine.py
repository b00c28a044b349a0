"""compose/check-engine with a `docker` command that answers as the real ones do."""

import os
import shutil
import subprocess

import pytest

from harness.settings import ROOT
from tests.programs import executable

CURRENT = {
    "--version": "Docker version 28.5.2, build ecc6942",
    "compose version --short": "2.40.3",
    "buildx version": "github.com/docker/buildx v0.29.1 a32761aeb3debd39be1eca514af3693af0db334b",
    "version --format {{.Server.Arch}}": "arm64",
    "version": "28.5.2 Engine containerd runc docker-init ",
    "info --format {{.DockerRootDir}}": "/var/lib/docker",
    "info": "[name=apparmor name=seccomp,profile=builtin name=cgroupns]",
}
ABSENT = None


@pytest.fixture
def check(tmp_path):
    """Run the script with a docker that gives these answers; a dict with `error` is an answer that fails."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "dirname", "awk", "cat", "grep", "env"):
        (folder / name).symlink_to(str(shutil.which(name)))

    def run(platform="", **answers):
        cases = ""
        for words, answer in (CURRENT | answers.pop("changed", {})).items():
            if answer is ABSENT:
                cases += f"  '{words}'*) echo \"docker: unknown command: docker {words}\" >&2; exit 1 ;;\n"
            elif isinstance(answer, dict):
                cases += f"  '{words}'*) cat >&2 <<'END'\n{answer['error']}\nEND\n  exit 1 ;;\n"
            else:
                cases += f"  '{words}'*) echo '{answer}' ;;\n"
        executable(folder / "docker", f'#!/usr/bin/env bash\ncase "$*" in\n{cases}esac\n')
        environment = os.environ | {"PATH": str(folder), "DOCKER_DEFAULT_PLATFORM": platform}
        return subprocess.run(ROOT / "compose/check-engine", env=environment, capture_output=True, text=True)

    return run


def test_a_current_engine_is_fine(check):
    done = check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "rootful\n", "")


BUILDX = "github.com/docker/buildx"


@pytest.mark.parametrize(
    "changed",
    [
        *({"compose version --short": form} for form in ("v2.24.0", "2.26.1-4", "5.5.0", "2.40.3-desktop.1")),
        # Debian 13's own compose and buildx go together.
        {"compose version --short": "2.26.1-4", "buildx version": f"{BUILDX} 0.13.1+ds1 0.13.1+ds1-3"},
        {"buildx version": f"{BUILDX} 0.29.1+ds1 0.29.1+ds1-4"},
    ],
)
def test_compose_and_buildx_are_fine_in_every_form_of_their_version(check, changed):
    assert check(changed=changed).returncode == 0


NOT_RUNNING = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
NOT_ALLOWED = "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock"
SNAP = "/var/snap/docker/common/var-lib-docker"


@pytest.mark.parametrize(
    ("words", "answer", "said"),
    [
        ("compose version --short", ABSENT, ["Compose >= 2.24, found none", "docker-compose-plugin"]),
        ("compose version --short", "2.17.3", ["Compose >= 2.24, found 2.17.3"]),
        ("buildx version", ABSENT, ["buildx plugin >= 0.17, found none", "docker-buildx-plugin"]),
        ("buildx version", f"{BUILDX} v0.13.1 v0.13.1-1", [">= 0.17", "v0.13.1"]),
        ("buildx version", f"{BUILDX} 0.16.2+ds1 0.16.2+ds1-1", [">= 0.17", "0.16.2+ds1"]),
        ("version", "20.10.24+dfsg1 Engine containerd ", ["Engine >= 25.0, found 20.10.24"]),
        ("version", {"error": NOT_RUNNING}, [NOT_RUNNING, "systemctl start docker"]),
        ("version", {"error": NOT_ALLOWED}, [NOT_ALLOWED, "usermod -aG docker"]),
        ("--version", "podman version 5.4.2", ["found Podman"]),
        ("version", "5.4.2 Podman Engine Conmon OCI Runtime (crun) ", ["found Podman"]),
        ("info", "[name=seccomp,profile=builtin name=userns name=cgroupns]", ["userns-remap", "./io"]),
        (
            "info --format {{.DockerRootDir}}",
            SNAP,
            [f"found the snap's ({SNAP})", "sudo snap remove docker && sudo apt-get install docker.io"],
        ),
    ],
)
def test_an_engine_that_the_lab_does_not_run_on_is_refused_with_what_to_do(check, words, answer, said):
    done = check(changed={words: answer})
    assert done.returncode == 2, done.stdout
    assert [one for one in said if one not in done.stderr] == []
    assert ("systemctl" in done.stderr) == (answer == {"error": NOT_RUNNING})


def test_an_engine_that_lets_neighbours_reach_the_ports_is_reported_and_used(check):
    for version, told in (("27.5.1", True), ("25.0.0", True), ("28.0.0", False), ("28.5.2+dfsg4", False)):
        done = check(changed={"version": f"{version} Engine containerd "})
        assert (done.returncode, done.stdout) == (0, "rootful\n")
        assert (f"Docker Engine {version} lets machines of this network segment reach" in done.stderr) is told
    rootless = "[name=seccomp,profile=builtin name=rootless name=cgroupns]"
    assert check(changed={"version": "27.5.1 Engine ", "info": rootless}).stderr == ""


def test_a_rootless_engine_is_reported(check):
    done = check(changed={"info": "[name=seccomp,profile=builtin name=rootless name=cgroupns]"})
    assert (done.returncode, done.stdout) == (0, "rootless\n")


def test_images_of_another_processor_are_warned_of_before_they_are_built(check):
    done = check(platform="linux/amd64")
    assert (done.returncode, done.stdout) == (0, "rootful\n")
    assert "DOCKER_DEFAULT_PLATFORM is linux/amd64 and this engine is arm64" in done.stderr
    assert "run: unset DOCKER_DEFAULT_PLATFORM" in done.stderr


@pytest.mark.parametrize("platform", ["", "linux/arm64", "linux/arm64/v8"])
def test_images_of_this_processor_are_not_warned_of(check, platform):
    assert check(platform=platform).stderr == ""
