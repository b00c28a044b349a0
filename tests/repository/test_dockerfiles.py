import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import PurePosixPath

import pytest
import yaml

from harness.lab import go_programs
from harness.lab.s3_servers import SERVERS
from tests.repository.checkout import ROOT, instructions

DOCKERFILES = sorted((ROOT / "images").glob("*/Dockerfile"))
SERVICES = [path for path in DOCKERFILES if path.parent.name != "debian"]
KNOWN = {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN", "STOPSIGNAL"} | {
    "USER",
    "VOLUME",
    "WORKDIR",
}


def name(path):
    return path.parent.name


every_dockerfile = pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=name)
every_service = pytest.mark.parametrize("dockerfile", SERVICES, ids=name)


def final_stage(dockerfile):
    """The instructions of the last stage, after those of the stages that it builds on."""
    found = instructions(dockerfile)
    stage, entries = found[-1].stage, []
    while inside := [entry for entry in found if entry.stage == stage]:
        entries = inside + entries
        stage = inside[0].text.partition(" AS ")[0]
    return entries


def allowed_in_the_context(source):
    """The rule of .dockerignore: it excludes everything except the names in lines with `!`."""
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    return any(PurePosixPath(source).is_relative_to(entry) for entry in kept)


@every_dockerfile
def test_every_instruction_is_one_that_docker_knows(dockerfile):
    assert {entry.word for entry in instructions(dockerfile)} <= KNOWN


@every_dockerfile
def test_every_copied_file_is_there_and_reaches_the_build(dockerfile):
    for entry in instructions(dockerfile):
        if entry.word == "COPY" and "--from=" not in entry.text:
            *sources, _ = (word for word in shlex.split(entry.text) if not word.startswith("--"))
            for source in sources:
                assert (ROOT / source).exists(), source
                assert allowed_in_the_context(source), source
        for source in re.findall(r"type=bind,source=([^,\s]+),target", entry.text):
            assert (ROOT / source).exists(), source


@every_dockerfile
def test_base_images_are_build_arguments_or_earlier_stages(dockerfile):
    arguments, stages = set(), set()
    for entry in instructions(dockerfile):
        if entry.word == "ARG":
            arguments.add(entry.text.partition("=")[0])
        if entry.word == "FROM":
            image, _, stage = entry.text.partition(" AS ")
            argument = re.fullmatch(r"\$\{(\w+)\}", image)
            assert image in stages or (argument and argument[1] in arguments), entry.text
            stages.add(stage)


@every_service
def test_every_image_has_a_label_a_user_that_is_not_root_and_a_health_check(dockerfile):
    stage = final_stage(dockerfile)
    users = [entry.text for entry in stage if entry.word == "USER"]
    assert users, "no USER"
    assert users[-1].partition(":")[0] not in {"root", "0"}
    assert "dataframe-io-lab=image" in [entry.text for entry in instructions(dockerfile) if entry.word == "LABEL"]
    (asked,) = {entry.text.partition("CMD")[0] for entry in stage if entry.word == "HEALTHCHECK"}
    assert dict(re.findall(r"--([a-z-]+)=(\d+)s?", asked)) == {
        "interval": "60",  # once a minute during timed calls, and often at the start
        "timeout": "5",
        "start-period": "120",
        "start-interval": "1",
        "retries": "3",
    }


@every_dockerfile
def test_no_image_holds_a_secret_or_other_certificates_and_none_asks_a_registry_for_a_frontend(dockerfile):
    for entry in instructions(dockerfile):
        if entry.word in {"ENV", "ARG"}:
            assert not re.search(r"PASSWORD|SECRET|TOKEN", entry.text), entry.text
        if entry.word == "RUN" and "ca_bundle" in entry.text:
            assert "--mount=type=secret,id=ca_bundle" in entry.text
            assert "bash /with-ca-bundle " in entry.text or "bash /fetch-pg-parquet" in entry.text
        assert entry.word != "COPY" or "ca_bundle" not in entry.text
    assert not re.search("# syntax=|/run/secrets", dockerfile.read_text())


@pytest.mark.parametrize("bundle", ["the proxy's", ""])
def test_a_ca_bundle_is_trusted_next_to_whom_the_system_trusts(tmp_path, bundle):
    (tmp_path / "bundle").write_text(bundle)  # without a line feed at its end, too
    (tmp_path / "system").write_text("the system's\n")
    show = 'cat ${PIP_CERT:-} ${SSL_CERT_FILE:-} </dev/null; echo "$PIP_CERT" >left; exit 3'
    told = {"CA_BUNDLE": "bundle", "SYSTEM_BUNDLE": "system", "PATH": os.environ["PATH"]}
    command = ("bash", ROOT / "images/with-ca-bundle", "bash", "-c", show)
    done = subprocess.run(command, env=told, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "the proxy's\nthe system's\n" * 2 if bundle else "")
    left = (tmp_path / "left").read_text().strip()
    assert not (left and os.path.exists(left))


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("postgres", ["--host=127.0.0.1", "SELECT 1", 'PGPASSWORD="$POSTGRES_PASSWORD"']),
        # not over loopback; wget would ask the proxy that Docker gave the container
        ("clickhouse", ['clickhouse-client --host "$HOSTNAME" --query "SELECT 1"', "env -u http_proxy wget"]),
    ],
)
def test_a_database_is_asked_over_tcp_without_a_password_in_the_process_list(image, words):
    stage = final_stage(ROOT / "images" / image / "Dockerfile")
    check = next(entry.text for entry in stage if entry.word == "HEALTHCHECK")
    assert [word for word in words if word not in check] == []
    assert "--password" not in check


@pytest.mark.parametrize(
    ("image", "argument", "program"),
    [
        ("versitygw", "VERSITYGW_VERSION", go_programs.VERSITYGW),
        ("minio", "MINIO_VERSION", go_programs.MINIO),
        ("harness", "TOXIPROXY_VERSION", go_programs.TOXIPROXY),
    ],
)
def test_an_image_has_the_pinned_and_verified_version_that_the_lab_without_docker_compiles(image, argument, program):
    text = (ROOT / "images" / image / "Dockerfile").read_text()
    assert f"ARG {argument}={program.version}\n" in text
    assert re.fullmatch(r"v\d+\.\d+\.\d+(-\d{14}-[0-9a-f]{12})?", program.version)
    assert f"{program.package}@${{{argument}}}" in text
    assert not re.search(r"GONOSUMDB|GOFLAGS=.*insecure|GONOSUMCHECK|GOSUMDB=off|GOPRIVATE", text)


@pytest.mark.parametrize("engine", ["", "dask"])
def test_an_image_without_its_own_engine_gets_nothing_on_top(engine):
    script = ROOT / "images/harness/install-engine"
    command = (shutil.which("bash"), script)
    done = subprocess.run(command, env={"ENGINE": engine, "PATH": "/nowhere"}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("script", ["install-engine", "cluster"])
def test_an_unknown_engine_is_refused_in_one_line(script):
    told = {"ENGINE": "flink", "LAB_CLUSTER": "flink", "PATH": os.environ["PATH"]}
    done = subprocess.run(("bash", ROOT / "images/harness" / script), env=told, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith("expected dask, ray or spark, found 'flink'\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("image", "licence", "repository"),
    [("versitygw", "Apache-2.0", "versity/versitygw"), ("minio", "AGPL-3.0-only", "minio/minio")],
)
def test_the_image_of_an_s3_server_names_the_licence_and_the_source_of_its_binary(image, licence, repository):
    text = (ROOT / "images" / image / "Dockerfile").read_text()
    tag = SERVERS[image].program.version.rpartition("-")[2]  # of a version without one, its commit
    assert f"org.opencontainers.image.licenses={licence} " in text
    assert f"https://github.com/{repository}/tree/{tag}\n" in text


@pytest.mark.parametrize("name", SERVERS)
def test_the_image_of_an_s3_server_starts_it_as_the_lab_without_docker_does(name, tmp_path):
    data = tmp_path / "data"
    told = [word.replace(str(tmp_path), f"/data/{name}") for word in SERVERS[name].arguments(":9000", data)]
    stage = final_stage(ROOT / "images" / name / "Dockerfile")
    (command,) = [json.loads(entry.text) for entry in stage if entry.word == "CMD"]
    assert command == told
    variables = dict(word.split("=") for entry in stage if entry.word == "ENV" for word in entry.text.split())
    assert variables == SERVERS[name].environment


def test_an_engine_is_installed_from_a_lock_with_hashes():
    text = (ROOT / "images/harness/install-engine").read_text()
    assert '--no-deps --no-build-isolation --require-hashes --requirement "/lab/requirements-$1.lock"' in text
    for engine in ("ray", "spark"):
        assert allowed_in_the_context(f"requirements-{engine}.lock")


def test_pg_parquet_is_installed_only_under_the_key_it_is_known_by():
    assert (
        "ARG PG_PARQUET_FINGERPRINT=9592A7BC7A682E7333376E09E7935D8DB9BD8B20"
        in (ROOT / "images/postgres/Dockerfile").read_text()
    )
    assert "[signed-by=$keyring]" in (ROOT / "images/postgres/fetch-pg-parquet").read_text()


def test_the_build_context_holds_no_secrets_and_no_results():
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"
    for path in (".env", "results", "datasets", ".git", ".lab", "io"):
        assert not allowed_in_the_context(path)


def test_clickhouse_says_on_its_console_why_it_ends():
    """If a server ends, `make up` shows its console; its log files are gone with the container."""
    changed = yaml.safe_load((ROOT / "images/clickhouse/lab.yaml").read_text())
    assert changed["logger"] == {"console": True, "console_log_level": "error"}


def test_the_contract_reads_the_images_files_and_asks_for_no_user_that_they_do_not_name():
    """Dockerfile.ubuntu names no user, which is root; the image tagged -distroless has another entry point."""
    lines = (ROOT / "images/debian/CONTRACT").read_text().splitlines()
    promises = [line for line in lines if line.startswith("clickhouse/") and not line.startswith("#")]
    assert not [line for line in promises if "docker-init" in line or "distroless" in line]
    (described,) = [line for line in promises if ".Config.User" in line]
    assert '{{or .Config.User "root"}}|' in described
    assert described.endswith(' = root|["/entrypoint.sh"]|0')
