"""The S3 server of a run: the one named in the environment, or one that the lab starts; and slower links to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from harness.embedded.keeper import ServiceError
from harness.embedded.service import Service
from harness.lab import go_programs, s3, s3_servers, toxiproxy
from harness.lab.embedded import EmbeddedLab
from harness.lab.go_programs import NotThere
from harness.lab.packages import not_installed
from harness.lab.reference import GREETING_SECONDS, NoAnswer, within
from harness.lab.s3_servers import S3Server
from harness.machine.stopping import on_signals
from harness.model import LabError, ObjectStore, Server
from harness.settings import Settings

_PATIENCE_SECONDS = 120.0  # for one call: emptying a bucket, fetching a run's files
_Answer = TypeVar("_Answer")


@dataclass
class Objects:
    """An object store, its description, and the API that creates links to it (or the reason for none).

    `lab` has our services: a server unless the environment names one, and the links' process. Every call through `ask`
    ends; `revive` restarts our services that hung.
    """

    store: ObjectStore
    server: Server
    lab_name: str
    links: str | None
    no_links: str
    lab: EmbeddedLab
    _over: dict[tuple[int, int], ObjectStore] = field(default_factory=dict)
    _hung: bool = False

    def ask(self, call: Callable[..., _Answer], *arguments: object) -> _Answer:
        """Return the result of a call to this store. Raises NoAnswer, and the call's exceptions."""
        return self._watched(call, self.store, *arguments, seconds=_PATIENCE_SECONDS)

    def greet(self, store: ObjectStore) -> None:
        """Check that the store answers at its own or a link's address. Raises NoAnswer and the client's exceptions."""
        self._watched(s3.greet, store, seconds=GREETING_SECONDS)

    def over(self, latency_ms: int, bytes_per_s: int) -> ObjectStore:
        """Return the same store over a link, created on first use.

        Raises LabError if the store requires TLS or there are no links here, and NoAnswer if the process of the links
        hangs.
        """
        key = latency_ms, bytes_per_s
        if key not in self._over:
            self._over[key] = self._watched(self._linked, *key, seconds=GREETING_SECONDS)
        return self._over[key]

    @contextmanager
    def bucket(self, run_id: str, say: Callable[[str], None]) -> Iterator[str]:
        """Create a run's bucket; empty and remove it at the end, however it ends, or report that it remains.

        Raises LabError if it cannot be created: it exists (and stays unchanged), or the keys do not permit it.
        """
        name = s3.bucket_name(run_id)
        self.ask(s3.make_bucket, name)
        try:
            yield name
        finally:
            try:
                self.ask(s3.remove_bucket, name)
            except Exception as error:  # a store that is gone or hangs cannot be cleaned up; our own is removed anyway
                if self.lab_name != "embedded":
                    say(f"s3: the bucket {name} is left, remove it: {type(error).__name__}: {error}")

    def revive(self) -> list[str]:
        """Restart our services that have ended or did not answer. Returns their names."""
        if self._hung:  # a client cannot tell which of them it was
            self._hung = False
            for name in self.lab.pids.keys() - set(self.lab.dead()):
                self.lab.end(name)
        revived = self.lab.revive()
        if "toxiproxy" in revived:  # otherwise its links still exist, and their names are taken
            self._over.clear()
        return revived

    def _watched(self, call: Callable[..., _Answer], *arguments: object, seconds: float) -> _Answer:
        try:
            return within(seconds, "s3", call.__name__, partial(call, *arguments))
        except Exception as error:
            if not isinstance(error, NoAnswer) and not s3.timed_out(error):
                raise
            self._hung = True
            raise error if isinstance(error, NoAnswer) else NoAnswer(f"the s3 server did not answer: {error}") from None

    def _linked(self, latency_ms: int, bytes_per_s: int) -> ObjectStore:
        if self.links is None:
            raise LabError(self.no_links)
        parts = urlsplit(self.store.endpoint)
        if parts.scheme != "http":
            raise LabError(f"{parts.hostname}: a link needs an endpoint with http: a certificate is of one address")
        upstream = f"{parts.hostname}:{parts.port or 80}"
        name = f"{latency_ms}ms-{bytes_per_s}"
        return replace(
            self.store, endpoint=f"http://{toxiproxy.link(self.links, name, upstream, latency_ms, bytes_per_s)}"
        )


_OF_COMPOSE = "s3"  # host name of the Compose lab's own server
_NOT_STARTED = "this lab was started without S3; make up S3=1 adds it"


@contextmanager
def opened(
    settings: Settings, with_links: bool, say: Callable[[str], None], users: Sequence[str] = ()
) -> Iterator[Objects | str]:
    """Yield the object store, or the reason if the lab has none or no client for it.

    A store named in the environment must answer: LabError. Our own is compiled if Go is installed, and removed at the
    end with its content. `users` are the ids of the transports that need it.
    """
    named, compiled = _named(settings), partial(go_programs.program, cache=settings.cache_dir, say=say, users=users)
    if reason := not_installed(s3.REQUIRES):
        yield reason
        return
    if not named and settings.name == "compose":
        yield _NOT_STARTED
        return
    services: dict[str, Service] = {}
    try:
        if not named:
            chosen = _chosen(settings)
            services[settings.s3_server] = s3_servers.service(chosen, compiled(chosen.program))
    except NotThere as error:
        yield f"{error}; LAB_S3_ENDPOINT, LAB_S3_ACCESS_KEY and LAB_S3_SECRET_KEY name another S3 server"
        return
    no_links = "no experiment asked for a link"
    if with_links:
        try:
            services["toxiproxy"] = toxiproxy.service(compiled(go_programs.TOXIPROXY))
        except NotThere as error:
            no_links = str(error)
    try:
        with on_signals(), EmbeddedLab(settings.state_dir, (), services) as lab:
            store = named or _own(lab.endpoints["s3"])
            lab_name = "embedded" if not named else "compose" if settings.name == "compose" else "external"
            yield Objects(store, check(settings, store), lab_name, lab.endpoints.get("toxiproxy"), no_links, lab)
    except ServiceError as error:
        raise LabError(str(error)) from None


def check(settings: Settings, store: ObjectStore) -> Server:
    """Return a store's description: ours, or the server's own name. Raises LabError, see `s3.check`."""
    server = s3.check(store)
    of_compose = settings.name == "compose" and urlsplit(store.endpoint).hostname == _OF_COMPOSE
    ours = of_compose or not settings.s3_endpoint
    return replace(server, version=_chosen(settings).version) if ours else server


def without_a_name(settings: Settings) -> str:
    """Describe which S3 server a run uses if the environment names none."""
    if reason := none_here(settings):
        return f"none: {reason}"
    chosen = _chosen(settings)
    if go_programs.place(chosen.program, settings.cache_dir).is_file():
        return f"{chosen.version}, started for a run"
    return f"{chosen.version}, which the first run that needs it compiles (some minutes)"


def none_here(settings: Settings) -> str | None:
    """Return why a run has no S3 server; None if the environment names one, or it has its own."""
    if reason := not_installed(s3.REQUIRES):
        return reason
    if settings.s3_endpoint:
        return None
    if settings.name == "compose":
        return _NOT_STARTED
    chosen = _chosen(settings)
    if go_programs.place(chosen.program, settings.cache_dir).is_file() or shutil.which("go"):
        return None
    return (
        f"no Go to compile {chosen.title} with; LAB_S3_ENDPOINT, LAB_S3_ACCESS_KEY and LAB_S3_SECRET_KEY name another "
        "S3 server"
    )


def _chosen(settings: Settings) -> S3Server:
    return s3_servers.SERVERS[settings.s3_server]


def _named(settings: Settings) -> ObjectStore | None:
    """Return the store that the environment names. Raises LabError if it names only a part."""
    values = settings.s3_endpoint, settings.s3_access_key, settings.s3_secret_key
    if not any(values):
        return None
    endpoint, access_key, secret_key = values
    if endpoint is None or access_key is None or secret_key is None:
        raise LabError("set all of LAB_S3_ENDPOINT, LAB_S3_ACCESS_KEY and LAB_S3_SECRET_KEY, or none; some are set")
    return ObjectStore(endpoint, settings.s3_region, access_key, secret_key)


def _own(address: str) -> ObjectStore:
    parts = urlsplit(address)
    return ObjectStore(f"http://127.0.0.1:{parts.port}", "us-east-1", parts.username or "", parts.password or "")


@contextmanager
def object_store(
    settings: Settings, users: Sequence[str], run_id: str, say: Callable[[str], None], with_links: bool = False
) -> Iterator[tuple[Objects | str, str]]:
    """Yield the S3 server and a bucket on it, or the reason if the lab has none.

    `users` are the ids of the transports that need it and can run; without any, no server is compiled or started.
    """
    if not users:
        yield "no case that can run here uses one", ""
        return
    with opened(settings, with_links, say, users) as objects:
        if isinstance(objects, str):
            yield objects, ""
            return
        with objects.bucket(run_id, say) as bucket:
            yield objects, bucket
