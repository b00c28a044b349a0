"""Rules for all scripts of the Compose lab and of its check, and hosts that no tracked file names."""

import os
import re
import shutil
import subprocess

from tests.every import every
from tests.repository.checkout import ROOT

FOLDERS = ("compose", ".ci", "environments", "images/harness")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).iterdir()) if path.is_file()]
SCRIPTS = [path for path in FILES if path.read_text().startswith("#!/usr/bin/env bash\n")]
SOURCED = [path for path in FILES if path.read_text().startswith("# shellcheck shell=bash\n")]
LINUX_ONLY = {"debian-base"}  # debootstrap
EVERYWHERE = [
    path for path in SCRIPTS if path.parent.name in ("compose", "environments") and path.name not in LINUX_ONLY
]


def name(path):
    return str(path.relative_to(ROOT))


# Syntax that only GNU's programs or a bash newer than macOS's 3.2 understand.
ELSEWHERE_UNKNOWN = (
    r"find .*-perm /",
    r"\b(?:stat|wait|xargs) -[cnr]\b|date -d|readlink -f|sort -V|sed -i|head -n -|grep -\w*P",
    r"\b(?:mapfile|readarray|coproc|nproc|tac)\b|declare -[Ag]",
    r"\$\{\w+(?:,,|\^\^|@[A-Z])|\|&|&>>|\$EPOCH",
)


@every([*EVERYWHERE, ROOT / "Makefile"], name)
def test_scripts_of_the_lab_use_nothing_that_macos_has_not(script):
    for line in script.read_text().splitlines():
        if not line.lstrip().startswith("#"):
            assert not [form for form in ELSEWHERE_UNKNOWN if re.search(form, line)], line


@every(FILES, name)
def test_every_script_is_executable_and_parses(path):
    assert os.access(path, os.X_OK) == (path in SCRIPTS)
    if path in (*SCRIPTS, *SOURCED):
        assert subprocess.run(("bash", "-n", path)).returncode == 0


def test_the_compose_check_is_skipped_with_one_line_where_the_user_is_not_root():
    somebody = 65534 if os.getuid() == 0 else None
    with (ROOT / ".ci/compose").open() as script:
        done = subprocess.run(("bash", "-s"), stdin=script, capture_output=True, text=True, cwd="/", user=somebody)
    assert done.returncode == 0
    assert done.stdout.startswith("compose check: skipped: expected root")
    assert len(done.stdout.splitlines()) == 1


@every(FILES, name)
def test_no_pipe_ends_before_all_is_read(file):
    """With pipefail a program whose reader has gone (grep --quiet) counts as failed, on a busy machine."""
    assert not re.search(r"\|\s*grep [^|\n]*(--quiet|-q)", file.read_text())


def test_a_clone_of_git_for_windows_has_no_carriage_returns(tmp_path):
    """Git for Windows writes CRLF unless a repository says otherwise; bash ends on line 1 of such a script."""
    for path in (ROOT / ".gitattributes", *SCRIPTS):
        shutil.copy(path, tmp_path)
    git = ("git", "-C", tmp_path, "-c", "core.autocrlf=true", "-c", "user.name=a", "-c", "user.email=a@b.example")
    for words in (("init",), ("add", "."), ("commit", "--message=a"), ("rm", "*"), ("checkout", "HEAD", "--", ".")):
        subprocess.run((*git, *words), check=True, capture_output=True)
    assert not [path.name for path in SCRIPTS if b"\r" in (tmp_path / path.name).read_bytes()]


def test_no_tracked_file_has_carriage_returns():
    """A new file must not change anything by itself."""
    listed = subprocess.run(("git", "ls-files", "--eol"), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line for line in listed.splitlines() if line.startswith(("i/crlf", "i/mixed"))] == []


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
