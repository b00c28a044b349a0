import os
import re
import shutil
import stat
import subprocess

import pytest
from checkout import ROOT

from harness.settings import COMPOSE

PASSWORDS = ("LAB_POSTGRES_PASSWORD", "LAB_CLICKHOUSE_PASSWORD", "LAB_MINIO_PASSWORD")


@pytest.fixture
def checkout(tmp_path):
    """A folder with the scripts of the Compose lab and .env.example, and no .env."""
    shutil.copytree(ROOT / "compose", tmp_path / "compose")
    for name in (".env.example", "docker-compose.yml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def run(checkout, *command, **variables):
    outside = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LAB_") and name not in {"BASE", "SUDO_UID"}
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


def test_env_is_written_readable_for_its_owner_only(checkout):
    assert run(checkout, "compose/write-env").returncode == 0
    assert stat.S_IMODE((checkout / ".env").stat().st_mode) == 0o600


def test_env_has_passwords_of_192_bits_all_different_every_time(checkout):
    seen = set()
    for _ in range(2):
        (checkout / ".env").unlink(missing_ok=True)
        run(checkout, "compose/write-env")
        found = settings(checkout)
        seen |= {found[name] for name in PASSWORDS}
    assert len(seen) == 2 * len(PASSWORDS)
    assert all(re.fullmatch("[0-9a-f]{48}", password) for password in seen)


def test_env_names_the_caller(checkout):
    run(checkout, "compose/write-env")
    found = settings(checkout)
    assert (found["LAB_UID"], found["LAB_GID"]) == (str(os.getuid()), str(os.getgid()))


def test_env_of_a_sudo_caller_names_the_person_behind_it(checkout):
    run(checkout, "compose/write-env", SUDO_UID="4321", SUDO_GID="4322")
    found = settings(checkout)
    assert (found["LAB_UID"], found["LAB_GID"], found["LAB_SERVICE_UID"]) == ("4321", "4322", "")


def test_env_gives_roots_services_a_uid_that_is_not_root(checkout):
    run(checkout, "compose/write-env", SUDO_UID="0", SUDO_GID="0")
    assert settings(checkout)["LAB_SERVICE_UID"] == "65532"


def test_an_env_that_exists_is_left_alone(checkout):
    (checkout / ".env").write_text("LAB_POSTGRES_PORT=1\n")
    done = run(checkout, "compose/write-env")
    assert done.returncode == 0
    assert (checkout / ".env").read_text() == "LAB_POSTGRES_PORT=1\n"


def test_env_has_every_line_of_the_example(checkout):
    run(checkout, "compose/write-env")
    assert {setting.name for setting in COMPOSE} <= settings(checkout).keys()


def test_passwords_are_not_printed(checkout):
    done = run(checkout, "compose/write-env")
    assert not any(settings(checkout)[name] in done.stdout + done.stderr for name in PASSWORDS)


def test_up_without_docker_says_what_is_missing_and_what_works_without(checkout, tmp_path):
    done = run(checkout, "compose/lab", "up", PATH=without_docker(tmp_path))
    assert done.returncode == 2
    assert "expected Docker, found no docker command" in done.stderr
    assert "make bench" in done.stderr


def test_without_docker_the_lab_is_not_up(checkout, tmp_path):
    assert run(checkout, "compose/lab", "is-up", PATH=without_docker(tmp_path)).returncode == 1


def test_clean_without_docker_removes_the_shared_folder_and_nothing_else(checkout, tmp_path):
    (checkout / "io").mkdir()
    (checkout / "results").mkdir()
    assert run(checkout, "compose/lab", "clean", PATH=without_docker(tmp_path)).returncode == 0
    assert not (checkout / "io").exists()
    assert (checkout / "results").exists()


def test_an_unknown_command_prints_the_known_ones(checkout):
    done = run(checkout, "compose/lab", "start")
    assert done.returncode == 2
    assert "up | is-up | run" in done.stderr


@pytest.mark.parametrize("script", ["compose/lab", "compose/write-env", "compose/debian-base", ".ci/compose"])
def test_every_script_is_executable_and_parses(script):
    assert os.access(ROOT / script, os.X_OK)
    assert subprocess.run(("bash", "-n", ROOT / script)).returncode == 0


def test_the_compose_check_is_skipped_with_one_line_where_the_user_is_not_root():
    somebody = 65534 if os.getuid() == 0 else None
    with (ROOT / ".ci/compose").open() as script:
        done = subprocess.run(("bash", "-s"), stdin=script, capture_output=True, text=True, cwd="/", user=somebody)
    assert done.returncode == 0
    assert done.stdout.startswith("compose check: skipped: expected root")
    assert len(done.stdout.splitlines()) == 1
