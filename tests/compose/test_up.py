"""`compose/lab up` and what else it does: what is refused before anything is built, and the words of what fails."""

import pytest
from lab_scripts import run, with_docker, without_docker

from harness.settings import ROOT


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


@pytest.mark.long
@pytest.mark.parametrize("engine", ["dask", "ray", "spark"])
def test_workers_of_an_engine_are_started_only_when_they_are_asked_for(checkout, tmp_path, engine):
    path = with_docker(tmp_path, built="true")
    without = run(checkout, "compose/lab", "up", PATH=path)
    with_it = run(checkout, "compose/lab", "up", PATH=path, CLUSTER=engine)
    assert "cluster            not here: make up CLUSTER=dask" in without.stdout
    assert f"cluster            {engine}, two workers: " in with_it.stdout
    first, second = (tmp_path / "built").read_text().splitlines()
    assert "--profile cluster" not in first
    assert second.endswith("--profile cluster build postgres clickhouse harness")


def test_an_unknown_engine_is_refused_in_one_line_before_anything_is_built(checkout, tmp_path):
    run(checkout, "compose/write-env")
    done = run(checkout, "compose/lab", "up", PATH=with_docker(tmp_path), CLUSTER="flink")
    assert done.returncode == 2
    assert done.stderr == "lab: CLUSTER: expected dask, ray or spark, found flink\n"
    assert not (tmp_path / "built").exists()


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
