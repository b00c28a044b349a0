"""The embedded lab: starts its services together, watches them, restarts them, and always stops them.

    with on_signals(), EmbeddedLab(Path(".lab")) as lab:
        print(lab.endpoints)

Every service runs under a keeper (`keeper.py`), which stops it when this process ends, however it ends. All files of a
lab are in its own folder (see below).
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from harness.embedded.keeper import LOCK, ServiceError, Task, ask_to_stop, close, launch, remove_folder
from harness.embedded.service import Files, Service
from harness.systems import SYSTEMS

# The folders of the embedded labs: one fresh folder per lab, locked while in use, removed when left over.
#
# The lock is a flock on a file in the folder, held by the lab's process and by its keepers. When all of them are gone,
# even by `kill -9`, the kernel has released it. The next lab can then tell a left-over folder from one in use. The lock
# is on a file open for writing, not on the folder: NFS turns flock into a lock of a file's bytes.

PREFIX = "lab-"
GRACE_SECONDS = 3.0


def new_lab_folder(root: Path, release: Callable[[Path], None], programs: Collection[str]) -> tuple[Path, int]:
    """Remove left-over folders below `root` and create a lab folder; return it with its lock's descriptor.

    `release(folder)` is called for each left-over folder before it is removed. `programs`: see `end_processes_in`.
    Raises OSError if `root` cannot be used.
    """
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root, fcntl.LOCK_EX):  # a folder that its creator has not locked yet would look left over
        for folder in filter(_ours, root.glob(f"{PREFIX}*")):
            with suppress(BlockingIOError, FileNotFoundError), _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                end_processes_in(folder, programs)
                release(folder)
                remove_folder(str(folder))
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        folder.chmod(0o755)  # the account of a service must pass through
        lock = _opened(folder)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def _opened(folder: Path) -> int:
    """Open the file of a folder's lock, which may not exist yet."""
    return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _ours(folder: Path) -> bool:
    """Return whether this user created a folder: other users' files are not trusted about resources elsewhere."""
    with suppress(FileNotFoundError):
        found = folder.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return False


def end_processes_in(folder: Path, programs: Collection[str], at_once: bool = False) -> None:
    """End the services that still work inside a folder, left by a killed keeper or server.

    A server's busy process may outlive its killed parent until its query ends, and a new server may refuse to start
    meanwhile. The function sends SIGTERM, then after GRACE_SECONDS SIGKILL; with `at_once` only SIGKILL, for services
    that hang.

    Services are identified by their HOME, which is in the folder. Programs in `programs` overwrite their environment
    with titles, so their names and working folders identify them. A user's shell in the folder is not touched.
    """
    import psutil

    place = folder.resolve()

    def works_there(process: psutil.Process) -> bool:  # a zombie has neither, so it counts as ended
        with suppress(psutil.Error, OSError):
            if process.name() in programs:
                return Path(process.cwd()).is_relative_to(place)
            home = process.environ().get("HOME")
            return home is not None and Path(home).resolve().is_relative_to(place)
        return False

    found = [process for process in psutil.process_iter() if works_there(process)]
    for number in (signal.SIGKILL,) if at_once else (signal.SIGTERM, signal.SIGKILL):
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        deadline = time.monotonic() + GRACE_SECONDS
        while found and time.monotonic() < deadline:
            time.sleep(0.01)
            found = [process for process in found if works_there(process)]


@contextmanager
def _locked(folder: Path, operation: int) -> Iterator[None]:
    """Hold a lock on a folder. Raises BlockingIOError under LOCK_NB if another process holds it."""
    descriptor = _opened(folder)
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)


__all__ = ["EmbeddedLab", "ServiceError"]

START_SECONDS = 60.0
POLL_SECONDS = 0.005
LOG_LINES = 15
_NO_SPACE = os.strerror(errno.ENOSPC)
_TAKEN = (os.strerror(errno.EADDRINUSE).lower(), "port is already in use")  # the second is MinIO's message

_OF_SYSTEMS = {name: system.service for name, system in SYSTEMS.items()}
SERVICES = {name: service for name, service in _OF_SYSTEMS.items() if isinstance(service, Service)}
FILES = {name: files for name, files in _OF_SYSTEMS.items() if isinstance(files, Files)}
_PROGRAMS = [program for service in SERVICES.values() for program in service.programs]


@dataclass
class _Running:
    """A service under its keeper."""

    task: Task
    ports: list[int]
    keeper: subprocess.Popen[bytes]
    log_began: int = 0  # offset where the current life's log begins
    pid: int = 0


class EmbeddedLab:
    """Real services on free loopback ports with generated passwords, in a fresh folder below `folder`.

    A context manager: the services run within `with`. `services` are keys of SERVICES, or of FILES for databases
    without a server. `more` adds services by name, or replaces the one of that name. Raises ServiceError if a service
    cannot be started. Threads that start, end or restart services wait for one another. After `start`, `folder` is the
    lab's own folder. It is below the system's temporary folder if a service's account cannot reach the given one.
    """

    def __init__(
        self, folder: Path, services: Iterable[str] = tuple(_OF_SYSTEMS), more: Mapping[str, Service] | None = None
    ) -> None:
        self.folder = self._root = folder.absolute()
        asked, others = tuple(services), dict(more or {})
        self._services, self._files = SERVICES | others, {name: FILES[name] for name in asked if name in FILES}
        self._names = tuple(dict.fromkeys([*(name for name in asked if name not in FILES), *others]))
        self._password = secrets.token_urlsafe(24)
        self._running: dict[str, _Running] = {}
        self._lock: int | None = None
        self._one_at_a_time = threading.RLock()
        if unknown := set(self._names) - set(self._services):
            raise ServiceError(
                f"lab: no service is called {', '.join(sorted(unknown))}; choose from {', '.join(sorted(_OF_SYSTEMS))}"
            )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def endpoints(self) -> dict[str, str]:
        """Addresses by name, passwords included: those of the systems, and "s3" for the S3 server."""
        found = [
            self._services[name].endpoints(running.ports, self._password) for name, running in self._running.items()
        ]
        if self._lock is not None:
            found += [files.endpoints(self.folder / name) for name, files in self._files.items()]
        return {key: address for addresses in found for key, address in addresses.items()}

    @property
    def pids(self) -> dict[str, int]:
        """Pid by name of a started service."""
        return {name: running.pid for name, running in self._running.items() if running.pid}

    @property
    def keepers(self) -> dict[str, int]:
        """Pid of the keeper by service."""
        return {name: running.keeper.pid for name, running in self._running.items()}

    def log(self, name: str) -> Path | None:
        """The log of a service; None for a database of files."""
        return Path(self._running[name].task.log) if name in self._running else None

    def start(self) -> None:
        """Start all services in parallel and wait until they answer (at most START_SECONDS); stops all on failure."""
        try:
            root = self._root
            for name in self._names:
                root = self._services[name].reachable(root)
            self.folder, self._lock = new_lab_folder(root, _release, _PROGRAMS)
            for name in self._files:
                (self.folder / name).mkdir()
            for name in self._names:
                self._launch(name)
            for name in self._names:
                self._wait_first_time(name)
        except OSError as error:
            self.stop()
            raise ServiceError(f"lab: cannot start in {self._root}: {error}; choose another folder") from error
        except BaseException:
            self.stop()
            raise

    def dead(self) -> list[str]:
        """Names of the services that have ended or whose keeper has; takes microseconds."""
        return [name for name, running in self._running.items() if running.keeper.poll() is not None]

    def revive(self, only: Iterable[str] | None = None) -> list[str]:
        """Restart the dead services (or `only` these) with the same ports, passwords and data. Returns their names.

        Raises ServiceError with the service's last log lines if it does not start again. Also raises it if the service
        ended because its disk was full, because it would end again.
        """
        with self._one_at_a_time:
            names = [name for name in self.dead() if only is None or name in only]
            for name in names:
                running = self._running[name]
                if reason := _line_about_space(running, self._services[name].last_words):
                    raise ServiceError(
                        f"{name} ended because no space is left for it in {self.folder} ({reason}); make room"
                    )
                close(running.keeper)
                end_processes_in(Path(running.task.folder), _PROGRAMS)
                self._run(name, replace(running.task, prepare=[]), running.ports)
            for name in names:
                self._wait(name)
            return names

    def end(self, name: str) -> None:
        """Kill a service that hangs, with its keeper and all its processes; `revive` restarts it.

        A database of files has no process to kill.
        """
        if name in self._files:
            return
        with self._one_at_a_time:
            running = self._running[name]
            running.keeper.kill()
            running.keeper.wait()
            end_processes_in(Path(running.task.folder), _PROGRAMS, at_once=True)

    def restart(self, name: str) -> None:
        """Stop a service in an orderly way and start it again, see `revive`. Raises ServiceError."""
        with self._one_at_a_time:
            running = self._running[name]
            how, _ = running.task.stop[0]
            os.kill(running.pid, signal.Signals[how])  # the service, not its keeper, which would remove its data
            try:
                running.keeper.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                self.end(name)
            self.revive([name])

    def stop(self) -> None:
        """Stop all services and remove the lab's folder; a second call does nothing."""
        for running in self._running.values():  # signal all before waiting, so that their stops overlap
            ask_to_stop(running.keeper)
        for name, running in self._running.items():
            with suppress(subprocess.TimeoutExpired):
                running.keeper.wait(running.task.stop_seconds())
            if running.keeper.poll() != 0:  # killed, hanging, or its service died before
                running.keeper.kill()
                running.keeper.wait()
                end_processes_in(Path(running.task.folder), _PROGRAMS)
                self._services[name].release(Path(running.task.folder))
            close(running.keeper)
        self._running.clear()
        if self._lock is not None:
            remove_folder(str(self.folder))
            os.close(self._lock)
            self._lock = None

    def _launch(self, name: str) -> None:
        """Prepare a service in a new folder and pass it to a keeper."""
        assert self._lock is not None
        folder, ports = self.folder / name, free_ports(self._services[name].ports)
        folder.mkdir(mode=0o700)  # server logs may contain values of rows
        self._run(name, self._services[name].prepare(folder, ports, self._password), ports)

    def _run(self, name: str, task: Task, ports: list[int]) -> None:
        assert self._lock is not None
        (Path(task.folder) / self._services[name].ready_file).unlink(missing_ok=True)  # left by an earlier life
        log = Path(task.log)
        began = log.stat().st_size if log.exists() else 0
        self._running[name] = _Running(task, ports, launch(task, keep_open=self._lock), began)

    def _wait_first_time(self, name: str) -> None:
        """Wait for a service; start it once more on new ports if another process took one in between."""
        try:
            self._wait(name)
        except ServiceError:
            running = self._running[name]
            ended = running.keeper.poll() is not None
            if not (_port_taken(running) or (ended and not all(map(_is_free, running.ports)))):
                raise
            self.end(name)
            close(running.keeper)
            remove_folder(running.task.folder)
            self._launch(name)
            self._wait(name)

    def _wait(self, name: str) -> None:
        """Wait until a service answers. Raises ServiceError if it ends, has no port, or takes too long."""
        service, running = self._services[name], self._running[name]
        folder, deadline = Path(running.task.folder), time.monotonic() + START_SECONDS
        while not ((folder / service.ready_file).exists() and service.is_ready(folder)):
            ended = running.keeper.poll()
            if ended is not None or _port_taken(running) or time.monotonic() > deadline:
                found = "it is still starting" if ended is None else f"it ended with status {ended}"
                ports = " and ".join(map(str, running.ports))
                raise ServiceError(
                    f"{name} does not answer on 127.0.0.1, port {ports}, within {START_SECONDS:.0f} s: {found}. "
                    f"Its last lines:\n{_last_lines(Path(running.task.log))}\n"
                    f"Remove the cause that they name (disk full, memory, a program on the port) and start again."
                )
            time.sleep(POLL_SECONDS)
        assert running.keeper.stdout is not None
        running.pid = running.pid or int(running.keeper.stdout.readline())


def free_ports(count: int) -> list[int]:
    """Return different loopback ports on which no process listens now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # like servers, ignore closing connections
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _release(folder: Path) -> None:
    """Free the resources that killed services of a left-over lab folder still hold outside it."""
    for name, service in SERVICES.items():
        service.release(folder / name)


def _line_about_space(running: _Running, last_words: str) -> str:
    """Return the log line of an ended service about a full disk since its start, if any."""
    said = _lines(running) if last_words else []
    return next((line for line in reversed(said) if last_words in line and _NO_SPACE in line), "")


def _port_taken(running: _Running) -> bool:
    """Return whether a service found its port taken; MinIO may continue without one."""
    return any(words in line.lower() for line in _lines(running) for words in _TAKEN)


def _lines(running: _Running) -> list[str]:
    """Return the lines of a service's log since its start."""
    with suppress(FileNotFoundError), open(running.task.log, "rb") as file:
        file.seek(running.log_began)
        return file.read().decode(errors="replace").splitlines()
    return []


def _last_lines(log: Path) -> str:
    with suppress(FileNotFoundError):
        return "\n".join("  " + line for line in log.read_text(errors="replace").splitlines()[-LOG_LINES:])
    return "  (no log)"
