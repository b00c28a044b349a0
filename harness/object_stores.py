"""The S3 server a run uses: the one named in the environment, or a MinIO of its own; and slower links to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from harness.embedded import go_programs, minio, toxiproxy
from harness.embedded.go_programs import NotThere
from harness.embedded.keeper import LabError as EmbeddedLabError
from harness.embedded.lab import EmbeddedLab
from harness.model import LabError, Server
from harness.settings import Settings
from harness.stopping import on_signals
from harness.systems import s3
from harness.systems.s3 import ObjectStore


@dataclass(frozen=True)
class Objects:
    """An object store that answers, what it is, and the API that makes links to it (or why there is none)."""

    store: ObjectStore
    server: Server
    kind: str
    links: str | None
    no_links: str

    def over(self, latency_ms: int, bytes_per_s: int) -> ObjectStore:
        """Return the same store over a new link. Raises LabError: the store is only reached by TLS, no links here."""
        if self.links is None:
            raise LabError(self.no_links)
        parts = urlsplit(self.store.endpoint)
        if parts.scheme != "http":
            raise LabError("an https endpoint cannot be reached over another address")
        upstream = f"{parts.hostname}:{parts.port or 80}"
        name = f"{latency_ms}ms-{bytes_per_s}"
        return replace(
            self.store, endpoint=f"http://{toxiproxy.link(self.links, name, upstream, latency_ms, bytes_per_s)}"
        )


_NOT_STARTED = "this lab was started without S3; make up S3=1 adds it"


@contextmanager
def opened(settings: Settings, with_links: bool, say: Callable[[str], None]) -> Iterator[Objects | str]:
    """Yield the object store, or the reason why there is none.

    One that is named in the environment must answer: LabError. A MinIO of our own is compiled where Go is there, and
    gone at the end with all that is in it.
    """
    named = _named(settings)
    if not named and settings.kind == "compose":
        yield _NOT_STARTED
        return
    try:
        services = (
            {} if named else {"minio": minio.service(go_programs.program(go_programs.MINIO, settings.cache_dir, say))}
        )
    except NotThere as error:
        yield f"{error}; LAB_S3_ENDPOINT, LAB_S3_ACCESS_KEY and LAB_S3_SECRET_KEY name another S3 server"
        return
    no_links = "no experiment asked for a link"
    if with_links:
        try:
            services["toxiproxy"] = toxiproxy.service(
                go_programs.program(go_programs.TOXIPROXY, settings.cache_dir, say)
            )
        except NotThere as error:
            no_links = str(error)
    try:
        with on_signals(), EmbeddedLab(settings.state_dir, (), services) as lab:
            store = named or _own(lab.endpoints["s3"])
            server, kind = s3.check(store), _kind(settings) if named else "embedded"
            if not named:  # the server itself does not tell
                server = replace(server, version=f"{server.version} {go_programs.MINIO.version}")
            yield Objects(store, server, kind, lab.endpoints.get("toxiproxy"), no_links)
    except EmbeddedLabError as error:
        raise LabError(str(error)) from None


def without_a_name(settings: Settings) -> str:
    """Say which S3 server a run uses when the environment names none."""
    if settings.kind != "compose" and go_programs.place(go_programs.MINIO, settings.cache_dir).is_file():
        return f"a MinIO of its own ({go_programs.MINIO.version})"
    if settings.kind != "compose" and go_programs.toolchain():
        return "a MinIO of its own, which the first run that needs it compiles (some minutes)"
    return f"none: {none_here(settings)}"


def none_here(settings: Settings) -> str | None:
    """Say why a run has no S3 server when the environment names none; None where it has one of its own."""
    if settings.kind == "compose":
        return _NOT_STARTED
    if go_programs.place(go_programs.MINIO, settings.cache_dir).is_file() or go_programs.toolchain():
        return None
    return "no Go to compile a MinIO with; LAB_S3_ENDPOINT, LAB_S3_ACCESS_KEY and LAB_S3_SECRET_KEY name another"


def _kind(settings: Settings) -> str:
    return "compose" if settings.kind == "compose" else "external"


def _named(settings: Settings) -> ObjectStore | None:
    """Return the store that the environment names. Raises LabError where it names only a part."""
    values = settings.s3_endpoint, settings.s3_access_key, settings.s3_secret_key
    if not any(values):
        return None
    endpoint, access_key, secret_key = values
    if endpoint is None or access_key is None or secret_key is None:
        raise LabError("expected LAB_S3_ENDPOINT, LAB_S3_ACCESS_KEY and LAB_S3_SECRET_KEY, found only some of them")
    return ObjectStore(endpoint, settings.s3_region, access_key, secret_key)


def _own(address: str) -> ObjectStore:
    parts = urlsplit(address)
    return ObjectStore(f"http://127.0.0.1:{parts.port}", "us-east-1", parts.username or "", parts.password or "")
