"""A Postgres that the user has installed: a folder of programs, such as Debian's /usr/lib/postgresql/18/bin.

It is set up like the one from the wheel (`service.py`), with these differences:

| what                              | value      | why                                                             |
|-----------------------------------|------------|-----------------------------------------------------------------|
| initdb's locale, before 17        | C          | no provider `builtin` yet; text has the same order              |
| shared_preload_libraries          | pg_parquet | where it is installed, and CREATE EXTENSION in `lab`            |
| folder `io`                       | the lab's  | pg_parquet's transports share their files with the server       |
"""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.embedded.keeper import ServiceError, Task
from harness.embedded.service import SHARED, Service, version_said
from harness.systems.postgres import SYSTEM
from harness.systems.postgres.service import BUILTIN_LOCALE, SERVICE, can_use, described, service_account

_PROGRAMS = ("postgres", "initdb")
_LEAST, _BUILTIN_SINCE = 14, 17  # versions that introduced initdb --no-instructions, and the provider `builtin`
_EXTENSION = "pg_parquet"
# Debian and Ubuntu, postgresql.org's packages for Red Hat, Homebrew: none of them is in PATH.
_USUAL = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")


def service(place: Path, environment: Mapping[str, str]) -> Service:
    """Return the service that runs the programs. Raises ServiceError if some are missing or too old."""
    said = build(place)
    number = re.search(r"\(PostgreSQL\) (\d+)", said)
    if not number or int(number[1]) < _LEAST:
        raise ServiceError(
            f"{_variable()}: {said or 'no version'} in {place}; the lab needs Postgres {_LEAST} or newer"
        )
    locale = BUILTIN_LOCALE if int(number[1]) >= _BUILTIN_SINCE else ()
    return replace(SERVICE, prepare=partial(_prepare, place, locale, _extension(place), environment), said=said)


def build(place: Path) -> str:
    """Return the server's version string."""
    for name in _PROGRAMS:
        if not os.access(place / name, os.X_OK):
            inside = f"; did you mean {place / 'bin'}?" if (place / "bin" / name).exists() else ""
            raise ServiceError(f"{_variable()}: no program `{name}` in {place}{inside}")
    return version_said(place / "postgres", ["--version"])


def found() -> list[Path]:
    """Return the folders with such programs in the usual locations and in PATH, the newest first."""
    in_path = shutil.which("postgres")
    usual = [path for pattern in _USUAL for path in glob.glob(pattern) if os.access(f"{path}/postgres", os.X_OK)]
    newest = sorted(usual, key=lambda path: [int(digits) for digits in re.findall(r"\d+", path)], reverse=True)
    return [
        Path(path) for path in dict.fromkeys([*newest, *([str(Path(in_path).resolve().parent)] if in_path else [])])
    ]


def _prepare(
    programs: Path,
    locale: Sequence[str],
    extension: str,
    environment: Mapping[str, str],
    folder: Path,
    ports: Sequence[int],
    password: str,
) -> Task:
    account = service_account()
    if account and not can_use(account, programs / "postgres"):
        raise ServiceError(
            f"{_variable()}: `{account.pw_name}` cannot reach {programs}, and Postgres refuses to run as root; run the "
            "lab as an ordinary user, or install Postgres where all users reach it"
        )
    if extension:
        (folder / SHARED).mkdir(mode=0o700)
        if account:
            os.chown(folder / SHARED, account.pw_uid, account.pw_gid)
    return described(folder, ports, password, account, programs, locale, extension, environment)


def _extension(place: Path) -> str:
    """Return pg_parquet if this Postgres has it, otherwise an empty string."""
    if not os.access(place / "pg_config", os.X_OK):
        return ""
    shared = version_said(place / "pg_config", ["--sharedir"])
    return _EXTENSION if Path(shared, "extension", f"{_EXTENSION}.control").is_file() else ""


def _variable() -> str:
    assert SYSTEM.installed_at is not None
    return SYSTEM.installed_at.variable
