"""`compose/lab` and `compose/write-env`: refusals before anything is built, the written file, messages of failures."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from harness.docs.tables import compose_settings
from harness.settings import ROOT
from tests.commands import succeeded
from tests.programs import executable

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
    """A PATH with a docker that looks current, records its calls and the images asked for, and builds nothing.

    `built` is the shell code at the end of its builds; `answers` are its own cases, which come first.
    """
    docker = executable(
        tmp_path / "docker/docker",
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
        "esac\n",
    )
    return f"{docker.parent}:{os.environ['PATH']}"


def called(tmp_path, words):
    """Return the calls of docker that have these words, with the variables that are said to it."""
    return [line for line in (tmp_path / "calls").read_text().splitlines() if words in line]


@pytest.mark.parametrize(
    ("security", "variables", "said"),
    [
        ("[name=rootless]", {}, r"expected LAB_UID=0.* found LAB_UID=4321"),
        (
            "",
            {"S3": "1", "LAB_S3_SERVER": "garage"},
            "^lab: LAB_S3_SERVER: expected versitygw or minio, found garage$",
        ),
        ("", {"CLUSTER": "flink"}, "^lab: CLUSTER: expected dask, ray or spark, found flink\n$"),
        (
            "",
            {"LAB_IMAGES": "registry.example/lab", "CLUSTER": "ray"},
            "run: make up LAB_IMAGES=localhost/dataframe-io-lab CLUSTER=ray",
        ),
        *(
            ("", {"LAB_CA_BUNDLE": f"{{folder}}/{name}"}, f"certificates in PEM form, found none at .*/{name}")
            for name in ("none", "empty", "page")
        ),
    ],
)
def test_up_refuses_before_it_builds_or_pulls_anything(checkout, tmp_path, security, variables, said):
    (tmp_path / "empty").touch()
    (tmp_path / "page").write_text("<html>not a bundle</html>")
    told = {name: value.format(folder=tmp_path) for name, value in variables.items()}
    run(checkout, "compose/write-env", "rootful", SUDO_UID="4321", SUDO_GID="4322")
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, security or "[name=seccomp]"), **told)
    assert done.returncode == 2
    assert re.search(said, done.stderr, re.DOTALL), done.stderr
    assert not (tmp_path / "built").exists()
    assert not called(tmp_path, " pull ")


@pytest.mark.long
def test_up_says_that_others_may_read_the_passwords(checkout, tmp_path):
    run(checkout, "compose/write-env")
    (checkout / ".env").chmod(0o640)
    assert "chmod 600 .env" in run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path)).stderr


@pytest.mark.long
def test_a_ca_bundle_outside_the_checkout_is_read_from_a_copy_in_it(checkout, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}.pem"
    outside.write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path), LAB_CA_BUNDLE=str(outside))
    assert (checkout / "compose/ca-bundle.pem").read_text() == outside.read_text()
    assert "compose/ca-bundle.pem" in (ROOT / ".gitignore").read_text().splitlines()
    run(checkout, "compose/lab", "up", PATH=f"{tmp_path}/docker:{os.environ['PATH']}")
    assert (checkout / "compose/ca-bundle.pem").read_text() == "", "what is not named any more is not read any more"


def test_a_build_that_fails_ends_with_its_words_and_what_to_do(checkout, tmp_path):
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path))
    assert done.returncode == 2
    assert "  no space left on device" in done.stderr
    assert "lab: the disk is full" in done.stderr


@pytest.mark.long
def test_the_words_of_a_failed_step_are_reported_also_when_its_instruction_is_long(checkout, tmp_path):
    instruction = "\n".join(f"  {line} | >>>  && something" for line in range(36, 61))
    rule = "-" * 20
    (tmp_path / "said").write_text(
        "#9 1.0 curl: (60) SSL certificate problem: of another step, which did without\n"
        "------\n"
        " > [postgres 2/4] RUN groupadd postgres && apt-get update:\n"
        "1.289 E: Release file for http://mirror.example/debian/dists/forky/InRelease is expired\n"
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


@pytest.mark.long
@pytest.mark.parametrize(
    ("variables", "said", "built"),
    [
        ({}, "cluster            not here: make up CLUSTER=dask", "build postgres clickhouse harness"),
        ({"S3": "1"}, "not here: make up CLUSTER=dask", "--profile s3 build postgres clickhouse s3 harness"),
        *(
            (
                {"CLUSTER": engine},
                f"cluster            {engine}, two workers: ",
                "--profile cluster build postgres clickhouse harness",
            )
            for engine in ("dask", "ray", "spark")
        ),
    ],
)
def test_an_s3_server_and_workers_of_an_engine_are_built_only_when_they_are_asked_for(
    checkout, tmp_path, variables, said, built
):
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, built="true"), **variables)
    assert said in done.stdout
    (line,) = (tmp_path / "built").read_text().splitlines()
    assert line.endswith(built)
    assert line.count("--profile") == len(variables)


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


def test_clean_says_what_stays_and_what_removes_it(checkout, tmp_path):
    done = run(checkout, "compose/lab", "clean", PATH=with_docker(tmp_path))
    assert "the builder's cache stays" in done.stdout
    assert done.stdout.endswith("docker builder prune --all\n")


def test_an_unknown_command_prints_the_known_ones(checkout):
    done = run(checkout, "compose/lab", "start")
    assert done.returncode == 2
    assert "up | is-up | run" in done.stderr


@pytest.mark.long
def test_what_an_image_goes_without_is_reported_once_also_by_a_build_that_goes_well(checkout, tmp_path):
    said = "pg_parquet: not in this image: no way to its repository; make clean and make up try again"
    path = with_docker(tmp_path, built=f"echo '#9 1.2 {said}'; echo '#9 1.2 {said}'")
    done = succeeded(run(checkout, "compose/lab", "up", PATH=path))
    assert done.stdout.count("pg_parquet: not in this image") == 1
    assert f"lab: {said}\n" in done.stdout


def test_builds_go_to_the_engines_own_builder_whichever_is_selected(checkout, tmp_path):
    path = with_docker(tmp_path, built="true", answers="  'context show') echo desktop-linux ;;\n")
    assert run(checkout, "compose/lab", "up", PATH=path, BUILDX_BUILDER="a-container").returncode == 0
    assert all("BUILDX_BUILDER=desktop-linux" in call for call in called(tmp_path, " build "))


def test_the_project_has_one_name_whatever_is_exported(checkout, tmp_path):
    run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, built="true"), COMPOSE_PROJECT_NAME="mine")
    assert len(called(tmp_path, "compose --project-name dataframe-io-lab ")) > 3
    assert not [call for call in called(tmp_path, "compose ") if "--project-name" not in call and "version" not in call]


@pytest.mark.long
def test_published_images_are_pulled_and_not_built(checkout, tmp_path):
    done = succeeded(
        run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path), LAB_IMAGES="registry.example/lab", LAB_TAG="v1")
    )
    assert "lab: pulled postgres clickhouse harness from registry.example/lab in " in done.stdout
    assert not (tmp_path / "built").exists()
    (pulled,) = called(tmp_path, " pull ")
    assert " pull --policy missing postgres clickhouse harness" in pulled


LACKS, HAS = "", "  'run '*cat*) echo 1700000000 ;;\n"


@pytest.mark.long
@pytest.mark.parametrize(("image", "told"), [(LACKS, r"(?!1700000000)\d{10}"), (HAS, "1700000000")])
def test_pg_parquet_is_asked_for_anew_only_while_the_image_lacks_it(checkout, tmp_path, image, told):
    """The builder takes the step from its cache where the build argument is the one of before."""
    config = "  *' config --images') echo localhost/dataframe-io-lab/postgres:local ;;\n"
    assert (
        run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, built="true", answers=image + config)).returncode
        == 0
    )
    (looked,) = called(tmp_path, "run ")
    assert "--pull never" in looked
    assert "localhost/dataframe-io-lab/postgres:local /usr/share/postgresql/pg_parquet.try" in looked
    (built,) = called(tmp_path, " build ")
    assert re.search(rf"PG_PARQUET_TRY={told}$", built)


@pytest.mark.long
def test_pg_parquet_is_created_in_a_database_that_is_older_than_it(checkout, tmp_path):
    run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, built="true"))
    calls = [call for call in (tmp_path / "calls").read_text().splitlines() if re.search(r" (up|exec) ", call)]
    assert " up --detach" in calls[-2]
    assert " exec --no-TTY postgres /docker-entrypoint-initdb.d/10-pg_parquet.sh" in calls[-1]
    script = (ROOT / "images/postgres/initdb.d/10-pg_parquet.sh").read_text()
    assert "CREATE EXTENSION IF NOT EXISTS pg_parquet" in script


@pytest.mark.long
def test_up_says_where_pg_parquet_cannot_be_created_and_is_up(checkout, tmp_path):
    answers = "  *' exec '*) echo 'ERROR:  could not load library' >&2; exit 3 ;;\n"
    done = succeeded(run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, built="true", answers=answers)))
    assert done.stderr.endswith(
        "ERROR:  could not load library\nlab: pg_parquet was not created in the database, for the reason above; "
        "its transports are unavailable\n"
    )


@pytest.mark.long
@pytest.mark.parametrize(("found", "told"), [("amd64\\namd64\\narm64", "amd64 on arm64"), ("arm64\\narm64", "")])
def test_images_of_another_processor_are_reported_and_results_are_marked(checkout, tmp_path, found, told):
    answers = f"  'image inspect'*Architecture*) printf '{found}\\n' ;;\n"
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, built="true", answers=answers))
    (started,) = called(tmp_path, " up --detach")
    assert f"LAB_EMULATED={told}" in started
    assert ("images are for amd64 and this engine is arm64: they are emulated" in done.stderr) is bool(told)


@pytest.mark.long
@pytest.mark.parametrize(
    ("config", "outside", "told"),
    [
        ('{"proxies": {"default": {"noProxy": ".a.example,10.0.0.0/8"}}}', "", ".a.example,10.0.0.0/8"),
        ('{"proxies":{"default":{"noProxy":\n"a.example"},"tcp://h":{"noProxy" : "b"}}}', "c", "c,a.example,b"),
        ('{"proxies": {"default": {"httpProxy": "http://p", "noProxy": ""}}}', "c", "c"),
        (None, "c", "c"),
    ],
)  # fmt: skip
def test_services_do_not_forget_whom_the_client_asks_directly(checkout, tmp_path, config, outside, told):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    variables = {"DOCKER_CONFIG": str(tmp_path)} | ({"NO_PROXY": outside} if outside else {})
    succeeded(run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path, built="true"), **variables))
    (started,) = called(tmp_path, " up --detach")
    assert re.search(rf" NO_PROXY={re.escape(told)} ", started)


def with_short_naps(tmp_path, path):
    """A PATH whose sleep is over soon."""
    executable(tmp_path / "docker/sleep", "#!/bin/sh\nexec /bin/sleep 0.1\n")
    return path


@pytest.mark.long
def test_a_build_that_takes_long_says_what_it_is_at(checkout, tmp_path):
    said = (
        "echo '#7 [harness environment 5/9] RUN python3 -m venv /opt/lab'; echo '#7 1.2 Collecting numpy'; /bin/sleep 1"
    )
    path = with_short_naps(tmp_path, with_docker(tmp_path, built=said))
    done = succeeded(run(checkout, "compose/lab", "up", PATH=path))
    assert "s, not yet built postgres clickhouse harness; at [harness environment 5/9] RUN python3" in done.stdout


@pytest.mark.long
def test_the_lock_of_up_may_be_written_as_a_networks_folder_wants_it(checkout, tmp_path):
    """NFS makes a lock of a file's bytes out of flock, and an exclusive lock needs a descriptor for writing."""
    path = with_docker(tmp_path, built="true")
    executable(
        tmp_path / "docker/flock",
        f"#!{sys.executable} -IS\n"
        "import fcntl, os, sys\n"
        "sys.exit(sys.argv[1:] != ['9'] or fcntl.fcntl(9, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDWR)\n",
    )
    done = succeeded(run(checkout, "compose/lab", "up", PATH=path))
    assert "lab: up." in done.stdout


def test_other_commands_start_while_up_holds_its_lock(checkout, tmp_path):
    path = with_docker(tmp_path, built=f"compose/lab is-up; echo $? >'{tmp_path}/status'")
    run(checkout, "compose/lab", "up", PATH=path)
    assert (tmp_path / "status").read_text() == "1\n"  # 126 if the script is busy


@pytest.mark.parametrize("mirror", ["", "http://mirror.example/debian"])
def test_debootstrap_takes_its_own_default_where_no_mirror_is_named(checkout, tmp_path, mirror):
    path = with_docker(tmp_path, answers="  'image inspect'*) exit 1 ;;\n")
    for name, does in (("debootstrap", f'printf "<%s>" "$@" >>{tmp_path}/asked; exit 1'), ("id", "echo 0")):
        executable(tmp_path / "docker" / name, f"#!/usr/bin/env bash\n{does}\n")
    done = run(checkout, "compose/debian-base", PATH=path, LAB_DEBIAN_MIRROR=mirror)
    assert done.returncode == 2
    assert re.search(rf"<--variant=minbase><trixie><[^>]+/trixie><{mirror}></usr", (tmp_path / "asked").read_text())


PASSWORDS = ("LAB_POSTGRES_PASSWORD", "LAB_CLICKHOUSE_PASSWORD", "LAB_S3_PASSWORD", "LAB_RAY_TOKEN")
SECRETS = (*PASSWORDS, "LAB_S3_USER")


def test_env_has_every_line_of_the_example_and_random_secrets_that_are_not_printed(checkout):
    seen = set()
    for _ in range(2):
        (checkout / ".env").unlink(missing_ok=True)
        done = run(checkout, "compose/write-env")
        found = settings(checkout)
        assert compose_settings().keys() <= found.keys()
        assert not [name for name in SECRETS if found[name] in done.stdout + done.stderr]
        assert stat.S_IMODE((checkout / ".env").stat().st_mode) == 0o600
        assert re.fullmatch("[0-9a-f]{20}", found["LAB_S3_USER"])  # no longer than S3 allows
        assert [name for name in PASSWORDS if not re.fullmatch("[0-9a-f]{48}", found[name])] == []  # of 192 bits
        seen |= {found[name] for name in SECRETS}
    assert len(seen) == 2 * len(SECRETS)


@pytest.mark.parametrize(
    ("engine", "sudo", "ids"),
    [
        ([], None, [str(os.getuid()), str(os.getgid())]),
        ([], ("4321", "4322"), ["4321", "4322", "", ""]),
        ([], ("0", "0"), ["0", "0", "65532"]),  # root's services run as another user
        (["rootless"], ("4321", "4322"), ["0", "0", "65532", "0"]),  # root is the caller in its containers
    ],
)
def test_env_names_the_caller_or_the_person_behind_sudo(checkout, engine, sudo, ids):
    variables = dict(zip(("SUDO_UID", "SUDO_GID"), sudo, strict=True)) if sudo else {}
    run(checkout, "compose/write-env", *engine, **variables)
    found = settings(checkout)
    assert [found[f"LAB_{name}"] for name in ("UID", "GID", "SERVICE_UID", "SERVICE_GID")][: len(ids)] == ids
    if engine:
        assert (checkout / ".env").stat().st_uid == (4321 if os.getuid() == 0 else os.getuid())


def test_an_env_that_is_there_is_left_alone(checkout):
    text = "LAB_POSTGRES_PASSWORD=mine"
    (checkout / ".env").write_text(text)
    done = run(checkout, "compose/write-env")
    assert (done.returncode, done.stdout) == (0, "")
    assert (checkout / ".env").read_text() == text


def test_env_is_written_on_a_file_system_without_links(checkout, tmp_path):
    executable(tmp_path / "bin/ln", "#!/bin/sh\necho 'ln: Operation not permitted' >&2\nexit 1\n")
    succeeded(run(checkout, "compose/write-env", PATH=f"{tmp_path}/bin:{os.environ['PATH']}"))
    assert (checkout / ".env").stat().st_mode & 0o777 == 0o600
    assert not list(checkout.glob(".env.??????"))


def test_images_that_are_built_here_have_a_name_that_no_registry_is_asked_for(checkout):
    run(checkout, "compose/write-env")
    files = [checkout / name for name in ("docker-compose.yml", "compose/debian.yml", "compose/debian-bases.yml")]
    text = "".join(file.read_text() for file in (*files, ROOT / "images/debian/Dockerfile"))
    named = [line for line in text.splitlines() if re.search(r"\bdataframe-io-lab/|-dataframe-io", line)]
    assert len(named) > 10
    assert not [line for line in named if "localhost/dataframe-io-lab" not in line]


@pytest.mark.long
def test_an_image_that_has_pg_parquet_is_not_said_to_go_without(checkout, tmp_path):
    """BuildKit's output for a build with a package in images/postgres/packages, instructions included."""
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
