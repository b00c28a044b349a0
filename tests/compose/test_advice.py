"""compose/advice on real output of the tools: the output is of the versions that the lab is run with."""

# ruff: noqa: E501  # the lines of the tools are as long as they are

import re
import subprocess

import pytest

from harness.settings import ROOT

SAID = {
    "pip does not trust the index": (
        "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get "
        "local issuer certificate (_ssl.c:1006)')): /simple/numpy/",
        "set LAB_CA_BUNDLE",
    ),
    "go does not trust the proxy": (
        'go: github.com/minio/minio@v0.0.0: Get "https://goproxy.example/x": tls: failed to verify certificate: x509: '
        "certificate signed by unknown authority",
        "set LAB_CA_BUNDLE",
    ),
    "curl does not trust the server": (
        "curl: (60) SSL certificate problem: unable to get local issuer certificate",
        "set LAB_CA_BUNDLE",
    ),
    "apt does not trust the mirror, with GnuTLS": (
        "Certificate verification failed: The certificate is NOT trusted. The certificate issuer is unknown.  Could not "
        "handshake: Error in the certificate verification. [IP: 151.101.2.132 443]",
        "set LAB_CA_BUNDLE",
    ),
    "apt does not trust the mirror, with OpenSSL": (
        "SSL connection failed: error:0A000086:SSL routines::certificate verify failed / Success [IP: 10.0.0.1 443]",
        "set LAB_CA_BUNDLE",
    ),
    "the bundle is no bundle": ("curl: (77) error setting certificate file: /x", "is no CA bundle"),
    "the engine does not trust the registry": (
        'Error response from daemon: Get "https://registry.example/v2/": tls: failed to verify certificate: x509: '
        "certificate signed by unknown authority",
        "restart the engine",
    ),
    "the builder does not trust the registry": (
        "ERROR: failed to solve: postgres:18-trixie: failed to resolve source metadata for "
        'registry.example/library/postgres:18-trixie: failed to do request: Head "https://registry.example/v2/library/'
        'postgres/manifests/18-trixie": tls: failed to verify certificate: x509: certificate signed by unknown authority',
        "restart the engine",
    ),
    "lists of a past week": (
        "E: Release file for http://mirror.example/debian/dists/forky/InRelease is expired (invalid since 16d 2h 28min 29s). "
        "Updates for this repository will not be applied.",
        "LAB_DEBIAN_MIRROR",
    ),
    "an archive of another release": (
        "E: The repository 'http://mirror.example/debian trixie Release' does not have a Release file.",
        "no such release",
    ),
    "a package that left the archive": (
        "E: Failed to fetch http://mirror.example/debian/pool/main/c/curl/curl_8.14.1-2_amd64.deb  404  Not Found "
        "[IP: 151.101.2.132 80]",
        "builder prune",
    ),
    "the registry's limit": (
        "ERROR: failed to solve: golang:1.26-trixie: failed to resolve source metadata for "
        "registry.example/library/golang:1.26-trixie: failed to copy: httpReadSeeker: failed open: unexpected status code "
        "https://registry.example/v2/library/golang/manifests/sha256:0: 429 Too Many Requests - Server message: "
        "toomanyrequests: You have reached your unauthenticated pull rate limit. "
        "https://www.docker.com/increase-rate-limit",
        "docker login",
    ),
    "an image that is not there": (
        "Error response from daemon: manifest for postgres:99 not found: manifest unknown: manifest unknown",
        "LAB_..._IMAGE",
    ),
    "an image that is not public": (
        "Error response from daemon: pull access denied for example/nothing, repository does not exist or may require "
        "'docker login': denied: requested access to the resource is denied",
        "LAB_..._IMAGE",
    ),
    "no answer of the index": (
        "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='files.pypi.example', port=443): Read "
        "timed out.",
        "LAB_PIP_INDEX_URL",
    ),
    "no way to the index": (
        "WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after connection broken "
        "by 'ConnectTimeoutError(<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>, 'Connection to "
        "pypi.example timed out. (connect timeout=15)')': /simple/numpy/",
        'proxies" in ~/.docker/config.json',
    ),
    "no way to the module proxy": (
        'go: github.com/minio/minio@v0.0.0: Get "https://goproxy.example/github.com/minio/minio/@v/v0.0.0.info": dial tcp '
        "142.251.36.17:443: i/o timeout",
        "LAB_GOPROXY",
    ),
    "no answer of the module proxy": (
        'go: module lookup: Get "https://goproxy.example/x": net/http: TLS handshake timeout',
        "LAB_GOPROXY",
    ),
    "no way to the registry": (
        "target postgres: failed to solve: failed to resolve source metadata for registry.example/library/postgres:18-trixie: "
        'failed to do request: Head "https://registry.example/v2/library/postgres/manifests/18-trixie": dial tcp: '
        "lookup registry.example on 127.0.0.53:53: no such host",
        "make up BASE=debian",
    ),
    "no way to the registry, when pulling": (
        'Error response from daemon: Get "https://registry.example/v2/": net/http: request canceled while waiting for '
        "connection (Client.Timeout exceeded while awaiting headers)",
        "make up BASE=debian",
    ),
    "no name server in a build": (
        "Temporary failure resolving 'mirror.example'",
        "finds no host",
    ),
    "a full disk": (
        "failed to solve: failed to copy files: copy file range failed: no space left on device",
        "the disk is full",
    ),
    "a full disk, as pip says it": (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "the disk is full",
    ),
    "an old processor, in a build": (
        'ERROR: process "/bin/sh -c clickhouse --version" did not complete successfully: exit code: 132',
        "x86-64-v3",
    ),
    "an old processor, in a service": ("lab: clickhouse is exited; exit code 132. Its last lines:", "x86-64-v3"),
    "an old processor, in the official entry point": (
        "/entrypoint.sh: line 40:    23 Illegal instruction     (core dumped) clickhouse extract-from-config",
        "x86-64-v3",
    ),
    "no memory for a build": (
        'ERROR: process "/bin/sh -c go install" did not complete successfully: exit code: 137',
        "memory is short",
    ),
    "no memory for the compiler": (
        "github.com/minio/minio/cmd: /usr/lib/go-1.26/pkg/tool/linux_amd64/compile: signal: killed",
        "memory is short",
    ),
    "a service beyond its limit": (
        "lab: clickhouse is exited; exit code 137; out of memory (the container's limit). Its last lines:",
        "LAB_CLICKHOUSE_MEMORY",
    ),
    "an engine from the snap": (
        "lab: postgres is exited; exit code 255. Its last lines:\n  exec /sbin/docker-init: operation not permitted",
        "sudo snap remove docker",
    ),
    "no engine": (
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "systemctl start docker",
    ),
    "no engine, as of version 28.4": (
        "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the "
        "daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory",
        "systemctl start docker",
    ),
    "no permission": (
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "
        '"http://%2Fvar%2Frun%2Fdocker.sock/v1.51/version": dial unix /var/run/docker.sock: connect: permission denied',
        "usermod -aG docker",
    ),
    "no buildx": (
        "the classic builder doesn't support secrets, set DOCKER_BUILDKIT=1 to use BuildKit",
        "docker-buildx-plugin",
    ),
    "an old buildx": ("compose build requires buildx 0.17 or later", "docker-buildx-plugin"),
    "an old builder": (
        "ERROR: failed to solve: dockerfile parse error on line 13: unknown flag: start-interval",
        "Docker Engine 25",
    ),
    "a taken port": (
        "Error response from daemon: failed to set up container networking: driver failed programming external "
        "connectivity on endpoint dataframe-io-lab-postgres-1: failed to bind host port for 127.0.0.1:15432: address "
        "already in use",
        "set LAB_POSTGRES_PORT",
    ),
    "other passwords": ('FATAL:  password authentication failed for user "lab"', "make clean"),
    "a line of .env that is missing": (
        "error while interpolating services.postgres.user: required variable LAB_UID is missing a value: is missing in "
        ".env (see .env.example)",
        "complete .env",
    ),
    "another processor": ("exec /usr/local/bin/docker-entrypoint.sh: exec format error", "another processor"),
    "few open files": (
        "runc create failed: unable to start container process: error setting rlimits for ready process: error setting "
        "rlimit type 7: operation not permitted",
        "LimitNOFILE",
    ),
    "a folder that SELinux keeps": (
        "Error response from daemon: error while creating mount source path: SELinux relabeling of /home/me is not allowed",
        "SELinux",
    ),
}

MEANS_NOTHING = (
    "E: Package 'ca-certificates' has no installation candidate",
    "Setting up ca-certificates (20250419) ...\nUpdating certificates in /etc/ssl/certs...\n150 added, 0 removed; done.",
    "E: Unable to correct problems, you have held broken packages.",
    "clickhouse is exited; exit code 137. Its last lines:",  # docker kill says the same as a lack of memory
    "ERROR: No matching distribution found for numpy==99",
    "application not healthy after 180s: context deadline exceeded",  # of Compose, about a service that is slow
)


def advice(said: str) -> str:
    return subprocess.run(ROOT / "compose/advice", input=said, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
@pytest.mark.parametrize("case", SAID)
def test_what_a_tool_says_leads_to_what_to_do(case):
    said, advised = SAID[case]
    assert advised in advice(f"#9 12.3 Setting up ca-certificates (20250419) ...\n{said}\n")


@pytest.mark.parametrize("said", MEANS_NOTHING)
def test_words_that_mean_no_known_fault_lead_to_no_advice(said):
    assert advice(said) == ""


@pytest.mark.long
def test_every_line_of_the_table_is_reached_by_a_text_of_this_test():
    lines = (ROOT / "compose/advice.tsv").read_text().splitlines()
    table = [line.split("\t") for line in lines if not line.startswith("#")]
    assert all(len(entry) == 2 for entry in table)
    given = {advice(said).removeprefix("lab: ").strip() for said, _ in SAID.values()}
    assert {advised for _, advised in table} == given


def test_a_setting_that_is_advised_exists():
    example = (ROOT / ".env.example").read_text()
    for name in re.findall(r"LAB_[A-Z_]+[A-Z]", (ROOT / "compose/advice.tsv").read_text()):
        assert f"\n{name}=" in example, name


def test_an_engine_without_a_way_to_the_registry_is_pointed_to_its_proxy_first():
    """Images are pulled by the engine: a proxy that only Docker's client knows is no way for it."""
    for case in ("no way to the registry", "no way to the registry, when pulling"):
        said = advice(SAID[case][0])
        assert said.index("proxy give it to the engine") < said.index("LAB_..._IMAGE") < said.index("BASE=debian")
