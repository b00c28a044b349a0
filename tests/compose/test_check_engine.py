"""compose/check-engine with a `docker` command that answers as the real ones do."""

import os
import shutil
import subprocess

import pytest

from harness.settings import ROOT

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
        docker = folder / "docker"
        docker.write_text(f'#!/usr/bin/env bash\ncase "$*" in\n{cases}esac\n')
        docker.chmod(0o755)
        environment = os.environ | {"PATH": str(folder), "DOCKER_DEFAULT_PLATFORM": platform}
        return subprocess.run(ROOT / "compose/check-engine", env=environment, capture_output=True, text=True)

    return run


def refused(done, *words):
    assert done.returncode == 2, done.stdout
    assert all(word in done.stderr for word in words), done.stderr


def test_a_current_engine_is_fine(check):
    done = check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "rootful\n", "")


@pytest.mark.parametrize("version", ["v2.24.0", "2.26.1-4", "2.40.3", "5.5.0", "2.40.3-desktop.1"])
def test_compose_is_fine_in_every_form_of_its_version(check, version):
    assert check(changed={"compose version --short": version}).returncode == 0


def test_no_compose_is_named_with_its_packages_and_the_least_version(check):
    refused(check(changed={"compose version --short": ABSENT}), "Compose >= 2.24, found none", "docker-compose-plugin")


def test_an_old_compose_is_named_with_the_least_version(check):
    refused(check(changed={"compose version --short": "2.17.3"}), "Compose >= 2.24, found 2.17.3")


def test_no_buildx_is_named_with_its_packages_and_the_least_version(check):
    refused(check(changed={"buildx version": ABSENT}), "buildx plugin >= 0.17, found none", "docker-buildx-plugin")


@pytest.mark.parametrize("found", ["v0.13.1", "0.16.2+ds1"])
def test_an_old_buildx_is_refused_where_compose_builds_through_it(check, found):
    refused(check(changed={"buildx version": f"github.com/docker/buildx {found} {found}-1"}), ">= 0.17", found)


def test_debian_13s_own_compose_and_buildx_go_together(check):
    buildx = "github.com/docker/buildx 0.13.1+ds1 0.13.1+ds1-3"
    assert check(changed={"compose version --short": "2.26.1-4", "buildx version": buildx}).returncode == 0


def test_debians_form_of_buildxs_version_is_understood(check):
    assert check(changed={"buildx version": "github.com/docker/buildx 0.29.1+ds1 0.29.1+ds1-4"}).returncode == 0


def test_an_engine_without_frequent_probes_at_the_start_is_too_old(check):
    refused(check(changed={"version": "20.10.24+dfsg1 Engine containerd "}), "Engine >= 25.0, found 20.10.24")


def test_an_engine_that_lets_neighbours_reach_the_ports_is_told_and_used(check):
    for version, told in (("27.5.1", True), ("25.0.0", True), ("28.0.0", False), ("28.5.2+dfsg4", False)):
        done = check(changed={"version": f"{version} Engine containerd "})
        assert (done.returncode, done.stdout) == (0, "rootful\n")
        assert (f"Docker Engine {version} lets machines of this network segment reach" in done.stderr) is told
    rootless = "[name=seccomp,profile=builtin name=rootless name=cgroupns]"
    assert check(changed={"version": "27.5.1 Engine ", "info": rootless}).stderr == ""


def test_an_engine_that_is_not_running_is_told_apart_from_one_that_may_not_be_used(check):
    words = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
    done = check(changed={"version": {"error": words}})
    refused(done, words, "systemctl start docker")
    words = "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock"
    done = check(changed={"version": {"error": words}})
    refused(done, words, "usermod -aG docker")
    assert "systemctl" not in done.stderr


def test_podman_is_refused_by_name(check):
    refused(check(changed={"--version": "podman version 5.4.2"}), "found Podman")
    refused(check(changed={"version": "5.4.2 Podman Engine Conmon OCI Runtime (crun) "}), "found Podman")


def test_a_rootless_engine_is_told(check):
    done = check(changed={"info": "[name=seccomp,profile=builtin name=rootless name=cgroupns]"})
    assert (done.returncode, done.stdout) == (0, "rootless\n")


def test_an_engine_that_maps_ids_is_refused_with_the_reason(check):
    done = check(changed={"info": "[name=seccomp,profile=builtin name=userns name=cgroupns]"})
    refused(done, "userns-remap", "./io")


def test_the_engine_of_the_snap_is_refused_before_anything_is_built(check):
    root = "/var/snap/docker/common/var-lib-docker"
    done = check(changed={"info --format {{.DockerRootDir}}": root})
    refused(done, f"found the snap's ({root})", "sudo snap remove docker && sudo apt-get install docker.io")


def test_images_of_another_processor_are_warned_of_before_they_are_built(check):
    done = check(platform="linux/amd64")
    assert (done.returncode, done.stdout) == (0, "rootful\n")
    assert "DOCKER_DEFAULT_PLATFORM is linux/amd64 and this engine is arm64" in done.stderr
    assert "run: unset DOCKER_DEFAULT_PLATFORM" in done.stderr


@pytest.mark.parametrize("platform", ["", "linux/arm64", "linux/arm64/v8"])
def test_images_of_this_processor_are_not_warned_of(check, platform):
    assert check(platform=platform).stderr == ""
