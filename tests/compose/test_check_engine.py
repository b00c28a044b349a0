"""compose/check-engine with a `docker` command that answers as the real ones do."""

import os
import re
import shutil
import subprocess
from hashlib import sha256

import pytest

from tests.programs import executable
from tests.repository.checkout import ROOT

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


RUN = (ROOT / ".ci/run").read_text(encoding="utf-8")
SUITES = {path.stem for path in (ROOT / "suites").glob("*.toml")}


def bash(text, **options):
    return subprocess.run(("bash", "-euc", text), capture_output=True, text=True, check=False, **options)


def suites_of(day, everything="false"):
    (choice,) = re.findall(r"^others=.*?^fi$", RUN, re.MULTILINE | re.DOTALL)
    done = bash(f'everything={everything} day={day} left_out=()\n{choice}\necho "${{suites[@]}}"')
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_three_days_in_a_row_have_the_matrix_each_and_every_other_suite_once():
    days = [suites_of(day) for day in range(20_000, 20_003)]
    assert all(day[0] == "matrix" and len(day) == 3 for day in days)
    assert {name for day in days for name in day} == SUITES
    assert suites_of(20_003) == days[0]


def test_everything_has_every_suite():
    assert set(suites_of(20_000, "true")) == SUITES


@pytest.mark.parametrize(("gigabytes", "status"), [(0, 0), (10_000_000, 1)])
def test_a_step_that_would_fill_the_disk_is_refused_with_what_it_needs_and_what_is_free(tmp_path, gigabytes, status):
    (room,) = re.findall(r"^room\(\) \{.*?^\}$", RUN, re.MULTILINE | re.DOTALL)
    done = bash(f"{room}\nroom {gigabytes} {tmp_path}/not/there 'a step'")
    assert done.returncode == status
    if status:
        assert re.fullmatch(
            rf"disk: a step needs {gigabytes} GB in {tmp_path}/not/there, found \d+ GB free\n", done.stderr
        )


@pytest.fixture
def checkout(tmp_path):
    """A repository with the check of the Compose lab in it, two files that it is about, and one that it is not."""
    folder = tmp_path / "checkout"
    for name in (".ci/compose", "docker-compose.yml", "requirements.lock", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    subprocess.run(("git", "init", "--quiet", folder), check=True)
    return folder


def due(checkout):
    environment = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(checkout.parent)}
    done = subprocess.run((checkout / ".ci/compose", "is-due"), env=environment, capture_output=True, text=True)
    assert done.returncode == (1 if "compose check: not due: " in done.stdout else 0), done.stderr
    assert len(done.stdout.splitlines()) == 1
    return done.stdout


def was_green(checkout):
    digest = sha256()
    for name in sorted([".ci/compose", "docker-compose.yml", "requirements.lock"]):
        file = checkout / name
        digest.update(f"{name} {file.stat().st_mode & 0o777:o}\n".encode() + file.read_bytes())
    kept = checkout.parent / "dataframe-io-lab" / "compose-green"
    kept.parent.mkdir()
    kept.write_text(f"{digest.hexdigest()}\n2026-11-26 12:00\n")


CHANGES = {
    "README.md": "something else",  # which the check is not about
    "docker-compose.yml": "something else",
    "images/new": "something else",
    "arrow-wire/zig/new.zig": "something else",
    ".ci/new": "something else",
    "requirements.lock": None,
}


def test_the_compose_check_is_due_where_nothing_is_known(checkout):
    assert "due: nothing is known of an earlier one" in due(checkout)


@pytest.mark.parametrize("name", CHANGES)
def test_the_compose_check_is_due_when_one_of_its_own_files_changed_is_new_or_is_gone(checkout, name):
    was_green(checkout)
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).unlink(missing_ok=True)
    if CHANGES[name]:
        (checkout / name).write_text(CHANGES[name])
    said = (
        "not due: docker-compose.yml .* are as on 2026-11-26 12:00, when it was green"
        if name == "README.md"
        else ": due: "
    )
    assert re.search(said, due(checkout))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a checkout to somebody else")
def test_the_compose_check_reads_a_checkout_of_another_user_as_under_sudo(checkout):
    was_green(checkout)
    for path in (checkout, *checkout.rglob("*")):
        os.chown(path, 65534, 65534)
    assert ": not due: " in due(checkout)
