"""The decisions of `.ci/run`: the suites of a day, whether `.ci/compose` has to run, and whether the disk is enough."""

import os
import re
import shutil
import subprocess
from hashlib import sha256

import pytest

from tests.repository.checkout import ROOT

RUN = (ROOT / ".ci/run").read_text(encoding="utf-8")
SUITES = {path.stem for path in (ROOT / "suites").glob("*.toml")}


def bash(text, **options):
    return subprocess.run(("bash", "-euc", text), capture_output=True, text=True, check=False, **options)


def suites_of(day, everything="false"):
    (choice,) = re.findall(r"^others=.*?^fi$", RUN, re.MULTILINE | re.DOTALL)
    done = bash(f'everything={everything} day={day} left_out=()\n{choice}\necho "${{suites[@]}}"')
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_three_days_in_a_row_have_the_matrix_each_and_every_other_suite_once():
    days = [suites_of(day) for day in range(20_000, 20_003)]
    assert all(day[0] == "matrix" and len(day) == 3 for day in days)
    assert {name for day in days for name in day} == SUITES
    assert suites_of(20_003) == days[0]


def test_everything_has_every_suite():
    assert set(suites_of(20_000, "true")) == SUITES


@pytest.mark.parametrize(("gigabytes", "status"), [(0, 0), (10_000_000, 1)])
def test_a_step_that_would_fill_the_disk_is_refused_with_what_it_needs_and_what_is_free(tmp_path, gigabytes, status):
    (room,) = re.findall(r"^room\(\) \{.*?^\}$", RUN, re.MULTILINE | re.DOTALL)
    done = bash(f"{room}\nroom {gigabytes} {tmp_path}/not/there 'a step'")
    assert done.returncode == status
    if status:
        assert re.fullmatch(
            rf"disk: a step needs {gigabytes} GB in {tmp_path}/not/there, found \d+ GB free\n", done.stderr
        )


@pytest.fixture
def checkout(tmp_path):
    """A repository with the check of the Compose lab in it, two files that it is about, and one that it is not."""
    folder = tmp_path / "checkout"
    for name in (".ci/compose", "docker-compose.yml", "requirements.lock", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    subprocess.run(("git", "init", "--quiet", folder), check=True)
    return folder


def due(checkout):
    environment = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(checkout.parent)}
    done = subprocess.run((checkout / ".ci/compose", "is-due"), env=environment, capture_output=True, text=True)
    assert done.returncode == (1 if "compose check: not due: " in done.stdout else 0), done.stderr
    assert len(done.stdout.splitlines()) == 1
    return done.stdout


def was_green(checkout):
    digest = sha256()
    for name in sorted([".ci/compose", "docker-compose.yml", "requirements.lock"]):
        file = checkout / name
        digest.update(f"{name} {file.stat().st_mode & 0o777:o}\n".encode() + file.read_bytes())
    kept = checkout.parent / "dataframe-io-lab" / "compose-green"
    kept.parent.mkdir()
    kept.write_text(f"{digest.hexdigest()}\n2026-11-26 12:00\n")


CHANGES = {
    "README.md": "something else",  # which the check is not about
    "docker-compose.yml": "something else",
    "images/new": "something else",
    "arrow-wire/zig/new.zig": "something else",
    ".ci/new": "something else",
    "requirements.lock": None,
}


def test_the_compose_check_is_due_where_nothing_is_known(checkout):
    assert "due: nothing is known of an earlier one" in due(checkout)


@pytest.mark.parametrize("name", CHANGES)
def test_the_compose_check_is_due_when_one_of_its_own_files_changed_is_new_or_is_gone(checkout, name):
    was_green(checkout)
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).unlink(missing_ok=True)
    if CHANGES[name]:
        (checkout / name).write_text(CHANGES[name])
    said = (
        "not due: docker-compose.yml .* are as on 2026-11-26 12:00, when it was green"
        if name == "README.md"
        else ": due: "
    )
    assert re.search(said, due(checkout))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a checkout to somebody else")
def test_the_compose_check_reads_a_checkout_of_another_user_as_under_sudo(checkout):
    was_green(checkout)
    for path in (checkout, *checkout.rglob("*")):
        os.chown(path, 65534, 65534)
    assert ": not due: " in due(checkout)
