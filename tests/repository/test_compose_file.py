import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import PurePosixPath

import pytest

from harness.docs.tables import compose_settings
from harness.lab import go_programs
from harness.lab.s3_servers import SERVERS
from harness.settings import Settings
from tests.repository.checkout import FLAVOURS, REQUIRED, ROOT, compose, configuration, instructions

WORKING = {"cluster-scheduler", "cluster-worker"}  # of an engine
SERVICES = {"postgres", "clickhouse", "s3", "harness"} | WORKING
ENVIRONMENTS = {
    "only what is required": REQUIRED,
    "everything empty, as in .env.example": dict.fromkeys(compose_settings(), "") | REQUIRED,
    "limits, ports and another S3 server": REQUIRED
    | {
        "LAB_POSTGRES_CPUS": "1.5",
        "LAB_CLICKHOUSE_MEMORY": "3g",
        "LAB_POSTGRES_PORT": "25432",
        "LAB_S3_ENDPOINT": "https://s3.example.org",
        "LAB_S3_ACCESS_KEY": "key",
        "LAB_S3_SECRET_KEY": "for-tests-only-4",
    },
    "root, behind a proxy": REQUIRED
    | {
        "LAB_UID": "0",
        "LAB_GID": "0",
        "LAB_SERVICE_UID": "65532",
        "LAB_SERVICE_GID": "0",
        "LAB_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt",
        "LAB_PIP_INDEX_URL": "https://packages.example.org/simple",
        "LAB_GOPROXY": "https://go.example.org",
    },
    "MinIO": REQUIRED | {"LAB_S3": "1", "LAB_S3_SERVER": "minio"},
    "published images": REQUIRED | {"LAB_IMAGES": "registry.example/lab", "LAB_TAG": "v1"},
}
every_combination = pytest.mark.parametrize(
    ("flavour", "environment"), [(flavour, name) for flavour in FLAVOURS for name in ENVIRONMENTS]
)


@every_combination
def test_every_combination_of_flavour_and_environment_is_valid(flavour, environment):
    assert configuration(flavour, ENVIRONMENTS[environment])["services"].keys() == SERVICES


@every_combination
def test_ports_are_published_on_the_loopback_interface_only_and_are_none_of_a_local_install(flavour, environment):
    services = configuration(flavour, ENVIRONMENTS[environment])["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == sum(name.endswith("_PORT") for name in compose_settings())
    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}
    assert not {int(port["published"]) for port in ports} & {5432, 8123, 9000, 9001}


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", REQUIRED)
def test_compose_refuses_to_start_without_a_password_or_uid(flavour, name):
    done = compose(flavour, {key: value for key, value in REQUIRED.items() if key != name}, "config", "--quiet")
    assert done.returncode != 0
    if name not in ("LAB_UID", "LAB_GID"):
        assert compose(flavour, REQUIRED | {name: ""}, "config", "--quiet").returncode != 0
    assert name in done.stderr
    assert "is missing in .env" in done.stderr


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_service_is_hardened_and_limited_and_no_password_reaches_a_build(flavour):
    for name, service in configuration(flavour, REQUIRED)["services"].items():
        assert service["init"] is True
        assert bool(service.get("cap_add")) == (name == "harness")
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["pids_limit"] > 0
        assert int(service["mem_limit"]) > 0
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}
        assert service["user"] == "1234:1235"
        assert "for-tests-only" not in str(service.get("build"))


def test_roots_services_run_as_another_user_and_what_reads_and_writes_their_folders_as_root():
    services = configuration("debian", ENVIRONMENTS["root, behind a proxy"])["services"]
    assert {name: service["user"] for name, service in services.items()} == {
        "postgres": "65532:0",
        "clickhouse": "65532:0",
        "s3": "65532:0",
        **dict.fromkeys({"harness"} | WORKING, "0:0"),
    }


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_everything_carries_the_label_that_make_clean_goes_by(flavour):
    found = configuration(flavour, REQUIRED)
    for section, word in (("services", "service"), ("volumes", "volume"), ("networks", "network")):
        assert found[section]
        for name, entry in found[section].items():
            assert entry["labels"]["dataframe-io-lab"] == word, f"{section}: {name}"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_no_service_is_asked_through_a_proxy(flavour):
    for service in configuration(flavour, REQUIRED | {"NO_PROXY": "s3.example.org"})["services"].values():
        direct = service["environment"]["NO_PROXY"].split(",")
        assert {"localhost", "127.0.0.1", "s3.example.org"} | SERVICES <= set(direct)
        assert service["environment"]["no_proxy"] == service["environment"]["NO_PROXY"]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_folders_are_mounted_in_the_form_that_carries_the_label_of_selinux(flavour):
    """Compose hands `z` to the engine with a bind, and drops it from a mount that must not make the folder."""
    services = configuration(flavour, REQUIRED)["services"]
    binds = [mount["bind"] for service in services.values() for mount in service["volumes"] if mount["type"] == "bind"]
    assert binds
    assert all(bind["selinux"] == "z" and bind["create_host_path"] for bind in binds)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_without_s3_and_a_cluster_there_is_no_server_of_them_no_engine_and_nothing_compiled_from_go(flavour):
    services = configuration(flavour, REQUIRED)["services"]
    harness = services["harness"]
    assert services["s3"]["profiles"] == ["s3"]
    assert all(services[name]["profiles"] == ["cluster"] for name in WORKING)
    assert not any(harness["depends_on"][name]["required"] for name in {"s3", *WORKING})
    assert (harness["build"]["target"], harness["build"]["args"]["ENGINE"]) == ("harness", "")
    variables = ("LAB_S3_ENDPOINT", "LAB_S3_ACCESS_KEY", "LAB_CLUSTER_ADDRESS")
    assert [harness["environment"][name] for name in variables] == ["", "", ""]


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(("told", "name"), [({}, "versitygw"), ({"LAB_S3_SERVER": "minio"}, "minio")])
def test_another_s3_server_is_another_image_and_the_harness_knows_which_it_is(flavour, told, name):
    services = configuration(flavour, REQUIRED | {"LAB_S3": "1"} | told)["services"]
    assert services["s3"]["image"].partition(":")[0] == f"localhost/dataframe-io-lab/{name}"
    assert services["s3"]["build"]["dockerfile"] == f"images/{name}/Dockerfile"
    assert services["harness"]["environment"]["LAB_S3_SERVER"] == name


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(("told", "region"), [({}, "us-east-1"), ({"LAB_S3_REGION": "eu-west-1"}, "eu-west-1")])
def test_requests_are_signed_for_the_region_of_the_s3_server(flavour, told, region):
    services = configuration(flavour, REQUIRED | {"LAB_S3": "1"} | told)["services"]
    asked = services["harness"]["environment"]["LAB_S3_REGION"], services["postgres"]["environment"]["AWS_REGION"]
    assert {services["s3"]["environment"]["VGW_REGION"], *asked} == {region}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_with_s3_the_harness_knows_the_server_and_has_the_program_that_makes_links(flavour):
    harness = configuration(flavour, REQUIRED | {"LAB_S3": "1"})["services"]["harness"]
    assert harness["build"]["target"] == "harness-s3"
    found = {name: harness["environment"][f"LAB_S3_{name}"] for name in ("ENDPOINT", "ACCESS_KEY", "SECRET_KEY")}
    keys = {"ACCESS_KEY": REQUIRED["LAB_S3_USER"], "SECRET_KEY": REQUIRED["LAB_S3_PASSWORD"]}
    assert found == {"ENDPOINT": "http://s3:9000", **keys}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_access_key_of_s3_and_the_token_of_ray_are_separate_secrets(flavour):
    services = configuration(flavour, REQUIRED | {"LAB_CLUSTER": "ray"})["services"]
    s3, postgres = services["s3"]["environment"], services["postgres"]["environment"]
    assert postgres["AWS_ACCESS_KEY_ID"] == REQUIRED["LAB_S3_USER"]
    for server in SERVERS.values():
        assert [s3[key] for key in server.keys] == [REQUIRED["LAB_S3_USER"], REQUIRED["LAB_S3_PASSWORD"]]
    for name in ("harness", *WORKING):
        assert services[name]["environment"]["RAY_AUTH_TOKEN"] == REQUIRED["LAB_RAY_TOKEN"]
    assert len(set(REQUIRED.values())) == len(REQUIRED)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_data_lie_on_named_volumes_and_files_for_others_in_the_io_folder(flavour):
    """Stores and spilled data are on a volume, too: macOS reaches a folder of the checkout through VirtioFS."""
    services = configuration(flavour, REQUIRED)["services"]
    mounts = [(name, mount) for name, service in services.items() for mount in service["volumes"]]
    engines = {"harness"} | WORKING
    assert {(name, mount["target"]) for name, mount in mounts if mount["type"] == "volume"} == {
        ("postgres", "/var/lib/postgresql"),
        ("clickhouse", "/var/lib/clickhouse"),
        ("s3", "/data"),
        *((name, "/lab/.lab") for name in engines),
    }
    assert {mount["source"] for name, mount in mounts if name in engines and mount["type"] == "volume"} == {
        "harness-state"
    }
    assert services["harness"]["environment"]["LAB_STATE_DIR"] == "/lab/.lab"
    io = ("bind", str(ROOT / "io"), "/io")
    sharing = {name for name, mount in mounts if (mount["type"], mount.get("source"), mount["target"]) == io}
    assert sharing == {"postgres", "clickhouse"} | engines


@every_combination
def test_builds_read_no_file_outside_the_checkout(flavour, environment):
    """A plain `docker compose build` may not: buildx asks for a permission that Compose gives only for contexts."""
    secrets = configuration(flavour, ENVIRONMENTS[environment])["secrets"]
    assert [secret["file"] for secret in secrets.values()] == [str(ROOT / "compose/ca-bundle.pem")]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_harness_waits_until_every_service_is_healthy(flavour):
    harness = configuration(flavour, REQUIRED)["services"]["harness"]
    conditions = {name: entry["condition"] for name, entry in harness["depends_on"].items()}
    assert conditions == dict.fromkeys(SERVICES - {"harness"}, "service_healthy")
    assert harness["read_only"] is True


def test_the_debian_flavour_names_no_image_of_a_registry():
    services = configuration("debian", REQUIRED)["services"]
    for name in SERVICES - WORKING:
        bases = [value for argument, value in services[name]["build"]["args"].items() if argument.endswith("_IMAGE")]
        assert bases
        assert all(image.startswith("localhost/dataframe-io-lab/debian-") for image in bases)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_scheduler_and_two_workers_run_on_the_image_of_the_harness_with_its_folders_and_no_ports(flavour):
    told = {"LAB_CLUSTER": "ray", "LAB_CLUSTER_ADDRESS": "ray://cluster-scheduler:10001"}
    services = configuration(flavour, REQUIRED | told)["services"]
    harness = services["harness"]
    assert harness["build"]["args"]["ENGINE"] == "ray"
    assert harness["environment"]["LAB_CLUSTER_ADDRESS"] == told["LAB_CLUSTER_ADDRESS"]
    for name in WORKING:
        service = services[name]
        assert (service["image"], service["volumes"]) == (harness["image"], harness["volumes"])
        assert (service["read_only"], service["environment"]["LAB_CLUSTER"]) == (True, "ray")
        assert service["environment"]["RAY_AUTH_TOKEN"] == harness["environment"]["RAY_AUTH_TOKEN"]
        assert service["healthcheck"]["test"] == ["CMD", "cluster", "healthy", name.removeprefix("cluster-")]
        # As that of images (test_dockerfiles): often at the start, and once a minute while transports are timed.
        asked = [service["healthcheck"][word] for word in ("interval", "timeout", "start_period", "start_interval")]
        assert [*asked, service["healthcheck"]["retries"]] == ["1m0s", "5s", "2m0s", "1s", 3]
        assert service["command"] == ["cluster", name.removeprefix("cluster-")]
        assert not service.keys() & {"build", "ports"}
    assert services["cluster-worker"]["scale"] == 2


def test_every_variable_of_the_compose_files_has_its_line_in_the_settings_with_the_same_default():
    text = "".join((ROOT / name).read_text() for name in FLAVOURS["debian"])
    used = dict(re.findall(r"\$\{(LAB_[A-Z0-9_]+)(?::[-?]([^}$]*))?", text))
    settings = compose_settings()
    of_harness = {f"LAB_{name.upper()}" for name in Settings.model_fields}
    assert used["LAB_S3_SERVER"] == Settings.model_fields["s3_server"].default
    assert used.keys() - of_harness <= settings.keys()
    for name in used.keys() - of_harness - REQUIRED.keys() - {"LAB_SERVICE_UID", "LAB_SERVICE_GID"}:
        assert settings[name] == used[name], name


def test_env_example_explains_every_setting_in_the_line_above_it():
    lines = (ROOT / ".env.example").read_text().splitlines()
    for name in compose_settings():
        assert f"{name}=" in lines
        assert lines[lines.index(f"{name}=") - 1].startswith("# ")


DOCKERFILES = sorted((ROOT / "images").glob("*/Dockerfile"))
IMAGES = [path for path in DOCKERFILES if path.parent.name != "debian"]


def name(path):
    return path.parent.name


every_dockerfile = pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=name)
every_service = pytest.mark.parametrize("dockerfile", IMAGES, ids=name)


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


def test_the_build_context_holds_no_secrets_and_no_results():
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"
    for path in (".env", "results", "datasets", ".git", ".lab", "io"):
        assert not allowed_in_the_context(path)
