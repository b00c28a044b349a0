"""What `compose/write-env` writes into .env: passwords, and the ids of whoever calls it."""

import os
import re
import stat

from lab_scripts import run, settings

from harness.docs.tables import compose_settings

PASSWORDS = ("LAB_POSTGRES_PASSWORD", "LAB_CLICKHOUSE_PASSWORD", "LAB_S3_PASSWORD", "LAB_RAY_TOKEN")
SECRETS = (*PASSWORDS, "LAB_S3_USER")


def test_env_is_written_readable_for_its_owner_only(checkout):
    assert run(checkout, "compose/write-env").returncode == 0
    assert stat.S_IMODE((checkout / ".env").stat().st_mode) == 0o600


def test_env_has_passwords_of_192_bits_all_different_every_time(checkout):
    seen = set()
    for _ in range(2):
        (checkout / ".env").unlink(missing_ok=True)
        run(checkout, "compose/write-env")
        found = settings(checkout)
        seen |= {found[name] for name in PASSWORDS}
    assert len(seen) == 2 * len(PASSWORDS)
    assert all(re.fullmatch("[0-9a-f]{48}", password) for password in seen)


def test_env_names_the_caller(checkout):
    run(checkout, "compose/write-env")
    found = settings(checkout)
    assert (found["LAB_UID"], found["LAB_GID"]) == (str(os.getuid()), str(os.getgid()))


def test_env_of_a_sudo_caller_names_the_person_behind_it(checkout):
    run(checkout, "compose/write-env", SUDO_UID="4321", SUDO_GID="4322")
    found = settings(checkout)
    assert (found["LAB_UID"], found["LAB_GID"], found["LAB_SERVICE_UID"]) == ("4321", "4322", "")


def test_env_gives_roots_services_a_uid_that_is_not_root(checkout):
    run(checkout, "compose/write-env", SUDO_UID="0", SUDO_GID="0")
    assert settings(checkout)["LAB_SERVICE_UID"] == "65532"


def test_the_access_key_of_s3_is_random_and_no_longer_than_s3_allows(checkout):
    seen = set()
    for _ in range(2):
        (checkout / ".env").unlink(missing_ok=True)
        run(checkout, "compose/write-env")
        seen.add(settings(checkout)["LAB_S3_USER"])
    assert len(seen) == 2
    assert all(re.fullmatch("[0-9a-f]{20}", user) for user in seen)


def test_an_env_that_is_there_is_left_alone(checkout):
    text = "LAB_POSTGRES_PASSWORD=mine"
    (checkout / ".env").write_text(text)
    done = run(checkout, "compose/write-env")
    assert (done.returncode, done.stdout) == (0, "")
    assert (checkout / ".env").read_text() == text


def test_env_has_every_line_of_the_example(checkout):
    run(checkout, "compose/write-env")
    assert compose_settings().keys() <= settings(checkout).keys()


def test_passwords_are_not_printed(checkout):
    done = run(checkout, "compose/write-env")
    assert not any(settings(checkout)[name] in done.stdout + done.stderr for name in SECRETS)


def test_env_of_a_rootless_engine_names_the_ids_that_are_the_caller_in_its_containers(checkout):
    run(checkout, "compose/write-env", "rootless", SUDO_UID="4321", SUDO_GID="4322")
    found = settings(checkout)
    ids = [found[f"LAB_{name}"] for name in ("UID", "GID", "SERVICE_UID", "SERVICE_GID")]
    assert ids == ["0", "0", "65532", "0"]
    assert (checkout / ".env").stat().st_uid == (4321 if os.getuid() == 0 else os.getuid())


def test_env_is_written_on_a_file_system_without_links(checkout, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ln").write_text("#!/bin/sh\necho 'ln: Operation not permitted' >&2\nexit 1\n")
    (tmp_path / "bin/ln").chmod(0o755)
    done = run(checkout, "compose/write-env", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert (checkout / ".env").stat().st_mode & 0o777 == 0o600
    assert not list(checkout.glob(".env.??????"))
