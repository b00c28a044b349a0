import os
import re
import shutil
import stat
import subprocess

import pytest
from checkout import ROOT

from harness.docs import compose_settings

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
    assert compose_settings().keys() <= settings(checkout).keys()


def test_passwords_are_not_printed(checkout):
    done = run(checkout, "compose/write-env")
    assert not any(settings(checkout)[name] in done.stdout + done.stderr for name in PASSWORDS)


def test_env_of_a_rootless_engine_names_the_ids_that_are_the_caller_in_its_containers(checkout):
    run(checkout, "compose/write-env", "rootless", SUDO_UID="4321", SUDO_GID="4322")
    found = settings(checkout)
    ids = [found[f"LAB_{name}"] for name in ("UID", "GID", "SERVICE_UID", "SERVICE_GID")]
    assert ids == ["0", "0", "65532", "0"]
    assert (checkout / ".env").stat().st_uid == (4321 if os.getuid() == 0 else os.getuid())


def test_up_on_a_rootless_engine_refuses_ids_that_would_own_nothing_there(checkout, tmp_path):
    run(checkout, "compose/write-env", "rootful", SUDO_UID="4321", SUDO_GID="4322")
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, "[name=rootless]"))
    assert done.returncode == 2
    assert "expected LAB_UID=0" in done.stderr
    assert "found LAB_UID=4321" in done.stderr
    assert not (tmp_path / "built").exists()


def test_up_says_that_others_may_read_the_passwords(checkout, tmp_path):
    run(checkout, "compose/write-env")
    (checkout / ".env").chmod(0o640)
    assert "chmod 600 .env" in run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path)).stderr


def test_a_ca_bundle_outside_the_checkout_is_read_from_a_copy_in_it(checkout, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}.pem"
    outside.write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path), LAB_CA_BUNDLE=str(outside))
    assert (tmp_path / "built").read_text().startswith("./compose/ca-bundle.pem: compose build")
    assert (checkout / "compose/ca-bundle.pem").read_text() == outside.read_text()
    assert "compose/ca-bundle.pem" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("content", [None, "", "<html>not a bundle</html>"])
def test_a_ca_bundle_that_is_none_is_refused_before_anything_is_built(checkout, tmp_path, content):
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_text(content)
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path), LAB_CA_BUNDLE=str(bundle))
    assert done.returncode == 2
    assert f"certificates in PEM form, found none at {bundle}" in done.stderr
    assert not (tmp_path / "built").exists()


def test_a_build_that_fails_ends_with_its_words_and_what_to_do(checkout, tmp_path):
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path))
    assert done.returncode == 2
    assert "  no space left on device" in done.stderr
    assert "lab: the disk is full" in done.stderr


def test_the_words_of_a_failed_step_are_told_also_when_its_instruction_is_long(checkout, tmp_path):
    instruction = "\n".join(f"  {line} | >>>  && something" for line in range(36, 61))
    rule = "-" * 20
    (tmp_path / "said").write_text(
        "#9 1.0 curl: (60) SSL certificate problem: of another step, which did without\n"
        "------\n"
        " > [postgres 2/4] RUN groupadd postgres && apt-get update:\n"
        "1.289 E: Release file for http://deb.debian.org/debian/dists/forky/InRelease is expired\n"
        "------\n"
        f"Dockerfile:36\n{rule}\n{instruction}\n{rule}\n"
        "target postgres: failed to solve: did not complete successfully: exit code: 100\n"
    )
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, built=f"cat '{tmp_path}/said'; exit 1"))
    assert done.returncode == 2
    assert "  1.289 E: Release file for" in done.stderr
    assert "exit code: 100" in done.stderr
    assert "something" not in done.stderr
    assert "certificate" not in done.stderr


def test_minio_is_built_only_when_it_is_asked_for(checkout, tmp_path):
    path = with_docker(tmp_path)
    run(checkout, "compose/lab", "up", PATH=path)
    run(checkout, "compose/lab", "up", PATH=path, S3="1")
    without, with_it = (tmp_path / "built").read_text().splitlines()
    assert without.endswith("build postgres clickhouse harness")
    assert with_it.endswith("--profile s3 build postgres clickhouse minio harness")


# What only GNU's programs or a bash newer than macOS's 3.2 understand.
ELSEWHERE_UNKNOWN = (
    r"find .*-perm /",
    r"\b(?:stat|wait|xargs) -[cnr]\b|date -d|readlink -f|sort -V|sed -i|head -n -|grep -\w*P",
    r"\b(?:mapfile|readarray|coproc|nproc|tac)\b|declare -[Ag]",
    r"\$\{\w+(?:,,|\^\^|@[A-Z])|\|&|&>>|\$EPOCH",
)


@pytest.mark.parametrize(
    "script", ["compose/lab", "compose/write-env", "compose/check-engine", "compose/advice", "Makefile"]
)
def test_scripts_of_the_lab_use_nothing_that_macos_has_not(script):
    for line in (ROOT / script).read_text().splitlines():
        if not line.lstrip().startswith("#"):
            assert not [form for form in ELSEWHERE_UNKNOWN if re.search(form, line)], line


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


@pytest.mark.parametrize(
    "script",
    [
        "compose/lab",
        "compose/write-env",
        "compose/check-engine",
        "compose/advice",
        "compose/debian-base",
        ".ci/compose",
    ],
)
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


def test_what_an_image_goes_without_is_told_once_also_by_a_build_that_goes_well(checkout, tmp_path):
    said = "pg_parquet: not in this image: no way to its repository; make clean and make up try again"
    path = with_docker(tmp_path, built=f"echo '#9 1.2 {said}'; echo '#9 1.2 {said}'")
    done = run(checkout, "compose/lab", "up", PATH=path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pg_parquet: not in this image") == 1
    assert f"lab: {said}\n" in done.stdout


def test_an_image_that_has_pg_parquet_is_not_said_to_go_without(checkout, tmp_path):
    """What BuildKit prints of a build with a package in images/postgres/packages, instructions included."""
    said = (
        "#11 [packages 3/3] RUN bash /fetch-pg-parquet\n"
        "#11 0.412 pg_parquet: using the packages in images/postgres/packages\n"
        '#13 [stage-1 4/4] RUN if false; then echo "pg_parquet: not in this image: no package has it"; fi\n'
        "#13 9.870 Setting up postgresql-18-pg-parquet (0.5.1-1PIGSTY~trixie) ...\n"
    )
    (tmp_path / "said").write_text(said)
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, built=f"cat '{tmp_path}/said'"))
    assert done.returncode == 0, done.stderr
    assert "lab: built postgres" in done.stdout
    assert "pg_parquet" not in done.stdout


@pytest.mark.parametrize(
    "script",
    [
        path.relative_to(ROOT)
        for folder in ("compose", ".ci")
        for path in sorted((ROOT / folder).iterdir())
        if path.is_file()
    ],
)
def test_no_pipe_ends_before_all_is_read(script):
    """With pipefail a program whose reader has gone (grep --quiet) counts as failed, on a busy machine."""
    text = (ROOT / script).read_text()
    assert not re.search(r"\|\s*grep [^|\n]*(--quiet|-q)", text), script
