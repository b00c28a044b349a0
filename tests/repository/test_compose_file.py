import re

import pytest

from harness.docs.tables import compose_settings
from harness.lab.s3_servers import SERVERS
from harness.settings import Settings
from tests.repository.checkout import FLAVOURS, REQUIRED, ROOT, compose, configuration

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
def test_ports_are_published_on_the_loopback_interface_only(flavour, environment):
    services = configuration(flavour, ENVIRONMENTS[environment])["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == sum(name.endswith("_PORT") for name in compose_settings())
    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", REQUIRED)
def test_compose_refuses_to_start_without_a_password_or_uid(flavour, name):
    done = compose(flavour, {key: value for key, value in REQUIRED.items() if key != name}, "config", "--quiet")
    assert done.returncode != 0
    assert name in done.stderr
    assert "is missing in .env" in done.stderr


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_service_is_hardened_and_limited(flavour):
    for service in configuration(flavour, REQUIRED)["services"].values():
        assert service["init"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["pids_limit"] > 0
        assert int(service["mem_limit"]) > 0
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}
        assert service["user"] == "1234:1235"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_access_key_of_s3_and_the_token_of_ray_are_secrets_of_their_own(flavour):
    services = configuration(flavour, REQUIRED | {"LAB_CLUSTER": "ray"})["services"]
    s3, postgres = services["s3"]["environment"], services["postgres"]["environment"]
    assert postgres["AWS_ACCESS_KEY_ID"] == REQUIRED["LAB_S3_USER"]
    for server in SERVERS.values():
        assert [s3[key] for key in server.keys] == [REQUIRED["LAB_S3_USER"], REQUIRED["LAB_S3_PASSWORD"]]
    for name in ("harness", *WORKING):
        assert services[name]["environment"]["RAY_AUTH_TOKEN"] == REQUIRED["LAB_RAY_TOKEN"]
    assert len(set(REQUIRED.values())) == len(REQUIRED)


def test_the_debian_flavour_names_no_image_of_a_registry():
    services = configuration("debian", REQUIRED)["services"]
    for name in SERVICES - WORKING:
        bases = [value for argument, value in services[name]["build"]["args"].items() if argument.endswith("_IMAGE")]
        assert bases
        assert all(image.startswith("localhost/dataframe-io-lab/debian-") for image in bases)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_no_password_reaches_a_build(flavour):
    for service in configuration(flavour, REQUIRED)["services"].values():
        assert "for-tests-only" not in str(service.get("build"))


def test_every_variable_of_the_compose_files_has_its_line_in_the_settings_with_the_same_default():
    text = "".join((ROOT / name).read_text() for name in FLAVOURS["debian"])
    used = dict(re.findall(r"\$\{(LAB_[A-Z0-9_]+)(?::[-?]([^}$]*))?", text))
    settings = compose_settings()
    of_harness = {f"LAB_{name.upper()}" for name in Settings.model_fields}
    assert used["LAB_S3_SERVER"] == Settings.model_fields["s3_server"].default
    assert used.keys() - of_harness <= settings.keys()
    for name in used.keys() - of_harness - REQUIRED.keys() - {"LAB_SERVICE_UID", "LAB_SERVICE_GID"}:
        assert settings[name] == used[name], name
