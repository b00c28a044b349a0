"""No tracked file names a public registry's host: each tool asks its own default, and tests name reserved hosts."""

import re
import subprocess

from tests.repository.checkout import ROOT

# With spaces for dots, or this file would name them.
REGISTRIES = (
    *("pypi org", "pythonhosted org", "conda anaconda org"),
    *("deb debian org", "security debian org", "ftp debian org", "snapshot debian org"),
    *("archive ubuntu com", "ports ubuntu com", "security ubuntu com"),
    *("registry-1 docker io", "index docker io", "auth docker io", "docker io/library", "hub docker com"),
    *("download docker com", "ghcr io", "quay io", "gcr io", "mcr microsoft com", "public ecr aws"),
    *("proxy golang org", "sum golang org", "goproxy io", "goproxy cn"),
    *("repo1 maven org", "repo maven apache org", "central sonatype com", "repos spark-packages org"),
    *("registry npmjs org", "crates io", "rubygems org", "extensions duckdb org"),
    *("packages clickhouse com", "apt postgresql org", "repo pigsty io"),
)
# No tool has a default for the one archive that has pg_parquet.
KEPT = {"repo pigsty io": {"images/postgres/Dockerfile"}}


def named(text: str) -> set[str]:
    """Return the hosts of registries in a text, with spaces for dots."""
    found = set()
    for host in REGISTRIES:
        name = host.replace(" ", ".")
        if name in text and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
            found.add(host)
    return found


def tracked() -> dict[str, str]:
    """Return every tracked text file."""
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    contents = {name: (ROOT / name).read_bytes() for name in listed.split("\0") if name and (ROOT / name).is_file()}
    return {name: content.decode(errors="replace") for name, content in contents.items() if b"\0" not in content[:8000]}


def test_no_tracked_file_names_the_host_of_a_registry():
    files = tracked()
    assert len(files) > 500
    found = {(name, host) for name, text in files.items() for host in named(text)}
    assert found == {(name, host) for host, names in KEPT.items() for name in names}


def test_a_host_is_found_where_it_is_named_and_nowhere_else():
    for host in REGISTRIES:
        name = host.replace(" ", ".")
        assert named(f'mirror: "http://{name}/x" or files.{name}:443') == {host}
        assert named(f"{name}x or un{name}") == set()
    assert named("pypi.example, registry.example, apt-get install docker.io, /usr/share/docker.io/contrib") == set()
