"""What `compose/write-env` writes into .env: passwords, and the ids of whoever calls it."""

import os
import re
import stat

import pytest
from lab_scripts import run, settings

from harness.docs.tables import compose_settings

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
        ([], ("0", "0"), ["0", "0", "65532"]),  # root's services run as somebody else
        (["rootless"], ("4321", "4322"), ["0", "0", "65532", "0"]),  # who are the caller in its containers
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
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ln").write_text("#!/bin/sh\necho 'ln: Operation not permitted' >&2\nexit 1\n")
    (tmp_path / "bin/ln").chmod(0o755)
    done = run(checkout, "compose/write-env", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert (checkout / ".env").stat().st_mode & 0o777 == 0o600
    assert not list(checkout.glob(".env.??????"))
