"""Links to the embedded lab's servers that are slower than loopback, measured before use.

If the kernel permits a wire (`wire.py`), the link is one wire for all connections together. Otherwise toxiproxy runs in
front of a server, delays answers, and limits each connection separately. Loopback itself does not change.
docs/explanation/suites/networks.md lists the limits of such links.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from harness.embedded.keeper import ServiceError
from harness.lab import go_programs, toxiproxy, wire
from harness.lab.embedded import EmbeddedLab
from harness.lab.go_programs import NotThere
from harness.lab.reference import GREETING_SECONDS, within
from harness.lab.wire import NoWire, Wire
from harness.machine.stopping import on_signals
from harness.model import LabError, Server
from harness.settings import Settings

# Measure a link with our own server: the round trip of a message, and the rate of bytes in each direction.
#
# A database would add its own work to the measurement.

_PATIENCE_SECONDS = 10.0  # seconds to wait for one answer
_BLOCK = bytes(1 << 18)
_ASKED = struct.Struct("!cQ")  # a message: the request, and its number of bytes
_ECHO, _GIVE, _TAKE = b"e", b"g", b"t"
_ANSWER = b"."


@contextmanager
def server() -> Iterator[str]:
    """Yield the address, host:port on loopback, of a server in threads of this process; it ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening,), name="echo", daemon=True).start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)  # closing it alone would not end a thread that waits for a connection


def _accept(listening: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_answer, args=(connection,), name="echo", daemon=True).start()


def _answer(connection: socket.socket) -> None:
    with suppress(OSError), connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while len(message := connection.recv(_ASKED.size, socket.MSG_WAITALL)) == _ASKED.size:
            asked, number = _ASKED.unpack(message)
            if asked == _GIVE:
                _send(connection, number)
                continue
            if asked == _TAKE:
                _drop(connection, number)
            connection.sendall(_ANSWER)


class Caller:
    """A connection to the server at an address, over any link. Raises OSError if it breaks."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._connection = socket.create_connection((host, int(port)), timeout=_PATIENCE_SECONDS)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def round_trip(self) -> float:
        """Return the seconds of a message of nine bytes and its answer of one."""
        started = time.perf_counter()
        self._connection.sendall(_ASKED.pack(_ECHO, 0))
        self._require(len(_ANSWER))
        return time.perf_counter() - started

    def fetch(self, number: int) -> float:
        """Return the seconds from requesting this many bytes until the last one arrived."""
        started = time.perf_counter()
        self._connection.sendall(_ASKED.pack(_GIVE, number))
        self._require(number)
        return time.perf_counter() - started

    def send(self, number: int) -> float:
        """Return the seconds from sending the first of this many bytes until the server confirms the last."""
        started = time.perf_counter()
        self._connection.sendall(_ASKED.pack(_TAKE, number))
        _send(self._connection, number)
        self._require(len(_ANSWER))
        return time.perf_counter() - started

    def _require(self, number: int) -> None:
        if not _drop(self._connection, number):
            raise ConnectionError("the connection was closed in the middle of an answer")


def _send(connection: socket.socket, number: int) -> None:
    for sent in range(0, number, len(_BLOCK)):
        connection.sendall(memoryview(_BLOCK)[: number - sent])


def _drop(connection: socket.socket, number: int) -> bool:
    """Receive and discard this many bytes; return whether all arrived."""
    buffer = memoryview(bytearray(min(number, len(_BLOCK))))
    while number:
        received = connection.recv_into(buffer[:number])
        if not received:
            return False
        number -= received
    return True


# A link's requested limits, its measurement, and whether the two agree.

TOLERANCE = 0.1  # relative to the request


class Off(LabError):
    """A link differs from the request: its message has the request and the measurement."""


@dataclass(frozen=True)
class Limits:
    """The round trip of a link and its rate in each direction; 0 adds nothing, and limits nothing."""

    rtt_ms: float
    mbit_per_s: int

    @property
    def name(self) -> str:
        """The name of the link in toxiproxy and in messages."""
        return f"{self.rtt_ms:g} ms, {self.mbit_per_s or 'unlimited'} Mbit/s"


@dataclass(frozen=True)
class Probe:
    """The measurement of a link: its round trip, that of one without delay, and its rates in each direction."""

    rtt_ms: float
    plain_rtt_ms: float
    mbit_per_s_sent: float
    mbit_per_s_received: float

    def off(self, asked: Limits, late_ms: float) -> str:
        """Describe the values that differ from the request by more than TOLERANCE; empty if none does.

        The round trip may also be longer by `late_ms`.
        """
        wrong = []
        most = (1 + TOLERANCE) * asked.rtt_ms + late_ms
        if asked.rtt_ms and not (1 - TOLERANCE) * asked.rtt_ms <= self.rtt_ms <= most:
            wrong.append(f"a round trip of {self.rtt_ms:.2f} ms instead of {asked.rtt_ms:g}")
        for way, rate in (("sent", self.mbit_per_s_sent), ("received", self.mbit_per_s_received)):
            if asked.mbit_per_s and abs(rate / asked.mbit_per_s - 1) > TOLERANCE:
                wrong.append(f"{rate:,.0f} Mbit/s {way} instead of {asked.mbit_per_s}")
        return "; ".join(wrong)

    def and_again(self, other: Probe, asked: Limits) -> Probe:
        """Combine two measurements: of each figure the one closest to the request.

        Without a request, the shortest round trip and the largest rate count. A busy core sometimes slows a link down,
        and that says nothing about the link.
        """

        def nearest(*rates: float) -> float:
            return min(rates, key=lambda rate: abs(rate - asked.mbit_per_s)) if asked.mbit_per_s else max(rates)

        return Probe(
            min(self.rtt_ms, other.rtt_ms, key=lambda found: abs(found - asked.rtt_ms)),
            min(self.plain_rtt_ms, other.plain_rtt_ms),
            nearest(self.mbit_per_s_sent, other.mbit_per_s_sent),
            nearest(self.mbit_per_s_received, other.mbit_per_s_received),
        )

    @property
    def details(self) -> dict[str, int | float]:
        """The figures by their names in the results."""
        return {
            "link_rtt_ms": round(self.rtt_ms, 3),
            "link_plain_rtt_ms": round(self.plain_rtt_ms, 3),
            "link_mbit_per_s_sent": round(self.mbit_per_s_sent, 1),
            "link_mbit_per_s_received": round(self.mbit_per_s_received, 1),
        }


_TRIES = 8  # tries before a link counts as off: other processes may keep the cores busy for a short time
_MESSAGES, _MESSAGES_MS = (4, 30), 100  # messages per try: as many as fit into this time, within these bounds
_SECONDS_OF_BYTES = 0.1  # seconds of a limited link's bytes, sent per try in each direction
_MOST_BYTES = 25_000_000  # bytes per try at most
_BYTES_WITHOUT_LIMIT = 10_000_000
_BITS = 8e-6  # Mbit per byte
_TOXIPROXY = "toxiproxy"
_LATEST, _MOST_LATE_MS = 9, 0.25  # number of measurements that set a delay; more lateness comes from busy cores
_SHORTEST_MS = 0.1  # of a wire: a relay with timers itself takes up to 0.09 ms
_WHAT_A_WIRE_TAKES = "run the lab as root on Linux with ip and tc (iproute2) and /dev/net/tun"


class Links(ABC):
    """Links of one type; `lab` has the processes that make them, `echo_address` the server that measures them.

    `wire` is None if each connection is limited separately. A round trip may exceed the request by `late_ms`, in
    addition to its tolerance.
    """

    late_ms: float

    def __init__(self, lab: EmbeddedLab, echo_address: str, laid: Wire | None) -> None:
        self.lab, self.echo_address, self.wire = lab, echo_address, laid

    @abstractmethod
    def over(self, uri: str, limits: Limits) -> str:
        """Return a URI that leads over a link to the server of another. Raises LabError if no link can reach that."""

    @property
    @abstractmethod
    def server(self) -> Server:
        """The links' description among the servers in results, which separates runs over different links."""

    @abstractmethod
    def unavailable(self, limits: Limits) -> str | None:
        """Return why no link can have these limits, and the fix; or None."""

    @abstractmethod
    def _measure(self, limits: Limits) -> Probe:
        """Set up a link and measure it once."""

    def _together(self, one: Probe, other: Probe, limits: Limits) -> Probe:
        """Combine a try with the next one."""
        return one.and_again(other, limits)

    @abstractmethod
    def revive(self) -> list[str]:
        """Restart the processes that have ended; all links are new then. Raises NoWire."""

    def measured(self, limits: Limits) -> Probe:
        """Set up a link and return its current measurement. Raises Off if it differs from the request."""
        found = self._measure(limits)
        for _ in range(_TRIES - 1):
            if not found.off(limits, self.late_ms):
                break
            found = self._together(found, self._measure(limits), limits)
        if off := found.off(limits, self.late_ms):
            raise Off(f"the link has {off}, after {_TRIES} tries; end what else keeps the cores busy")
        return found


class OverWire(Links):
    """The one link over a wire: the last request applies to all connections.

    Its delay is shorter than requested by the time that everything else takes, the median of recent measurements
    (`_late_ms`). A busy core does not change the median.
    """

    late_ms = 0.0

    def __init__(self, lab: EmbeddedLab, echo_address: str, laid: Wire) -> None:
        super().__init__(lab, echo_address, laid)
        self.wire: Wire = laid
        self._late_ms: dict[float, deque[float]] = {}

    @property
    def server(self) -> Server:
        """The name alone; the machine's row has the kernel's version."""
        return Server("tun, a delay of our own and the rate by tbf, of the whole", frozenset(), {})

    def over(self, uri: str, limits: Limits) -> str:
        """Return the URI itself. Raises LabError for a server that is not on this machine's loopback."""
        self.wire.reach(_port(uri))
        return uri

    def unavailable(self, limits: Limits) -> str | None:
        """Return None if the round trip is long enough, otherwise the reason."""
        if 0 < limits.rtt_ms < _SHORTEST_MS:
            return f"a link takes nearly {_SHORTEST_MS} ms itself, asked was {limits.rtt_ms:g}; ask for that, or for 0"
        return None

    def revive(self) -> list[str]:
        """Lay a new wire if the former has ended."""
        revived = self.lab.revive()
        if revived:
            self.wire, self._late_ms = _laid(self.lab), {}
        return revived

    def _measure(self, limits: Limits) -> Probe:
        """Measure the rates without a delay, so that TCP windows do not limit them, then the round trip with it."""
        self.wire.reach(_port(f"tcp://{self.echo_address}"))
        self.wire.limit(limits.mbit_per_s)
        self.wire.delay(0)
        with self.wire.at_the_other_end(partial(Caller, self.echo_address)) as caller:
            plain = _round_trip(caller, Limits(0, 0))
            rates = _rates(caller, limits, plain)
            return Probe(self._delayed(caller, limits, plain), plain, *rates)

    def _delayed(self, caller: Caller, limits: Limits, plain: float) -> float:
        """Set the delay and return the milliseconds of a round trip with it; for the first delay, do so twice."""
        seen = self._late_ms.setdefault(limits.rtt_ms, deque(maxlen=_LATEST))
        for _ in range(1 if seen or not limits.rtt_ms else 2):
            delays = max(0.0, limits.rtt_ms - (median(seen) if seen else plain))  # sum of both directions
            self.wire.delay(delays / 2e3)
            found = _round_trip(caller, limits)
            seen.append(min(found - delays, _MOST_LATE_MS))
        return found

    def _together(self, one: Probe, other: Probe, limits: Limits) -> Probe:
        return replace(one.and_again(other, limits), rtt_ms=other.rtt_ms)


class OverToxiproxy(Links):
    """Links created on first use, each a port of toxiproxy; `no_wire` is the reason why there is no wire."""

    late_ms = 0.2  # its own work, and its timers, which were 0.1 to 0.2 ms late

    def __init__(self, lab: EmbeddedLab, echo_address: str, no_wire: str) -> None:
        super().__init__(lab, echo_address, None)
        self.no_wire = no_wire
        self._made: dict[tuple[str, Limits], str] = {}

    @property
    def server(self) -> Server:
        """The program, and the reason for it."""
        program = f"{go_programs.TOXIPROXY.name} {go_programs.TOXIPROXY.version}"
        return Server(f"{program}, the rate of each connection", frozenset(), {"no_wire": self.no_wire})

    def over(self, uri: str, limits: Limits) -> str:
        """Return the URI with host and port of a link. Raises LabError for TLS and for a URI without port."""
        parts = urlsplit(uri)
        if parts.scheme == "https" or not parts.port:
            raise LabError(f"{parts.hostname}: a link needs an address with a port and without TLS")
        credentials, at, _ = parts.netloc.rpartition("@")
        link = self._link(f"{parts.hostname}:{parts.port}", limits)
        return parts._replace(netloc=f"{credentials}{at}{link}").geturl()

    def unavailable(self, limits: Limits) -> str | None:
        """Return None for whole milliseconds, otherwise the reason."""
        if limits.rtt_ms % 1:
            asked = f"toxiproxy adds whole milliseconds, asked were {limits.rtt_ms:g}"
            return f"{asked}, and there is no wire ({self.no_wire}): {_WHAT_A_WIRE_TAKES}"
        return None

    def revive(self) -> list[str]:
        """Restart toxiproxy if it has ended."""
        revived = self.lab.revive()
        if revived:
            self._made.clear()
        return revived

    def _measure(self, limits: Limits) -> Probe:
        with Caller(self._link(self.echo_address, Limits(0, 0))) as caller:
            plain = _round_trip(caller, Limits(0, 0))
        with Caller(self._link(self.echo_address, limits)) as caller:
            found = _round_trip(caller, limits)
            return Probe(found, plain, *_rates(caller, limits, found))

    def _link(self, upstream: str, limits: Limits) -> str:
        key = upstream, limits
        if key not in self._made:
            make = partial(
                toxiproxy.link,
                self.lab.endpoints["toxiproxy"],
                f"{upstream}, {limits.name}".replace(" ", "").replace("/", ""),
                upstream,
                round(limits.rtt_ms),
                round(limits.mbit_per_s / _BITS),
                buffered=True,
            )
            self._made[key] = within(GREETING_SECONDS, "toxiproxy", "making a link", make)
        return self._made[key]


@contextmanager
def opened(
    settings: Settings, say: Callable[[str], None], with_wire: bool = True, users: Sequence[str] = ()
) -> Iterator[Links | str]:
    """Yield the links, or the reason for none and the fix. They end with the block or its process.

    `users` are the ids of the transports that need them.
    """
    no_wire = wire.lacking() if with_wire else "none was asked for"
    with on_signals(), server() as answering, ExitStack() as stack:
        if not no_wire:
            try:
                found = stack.enter_context(_over_wire(settings, answering))
            except NoWire as error:
                no_wire = str(error)
            else:
                yield found
                return
        try:
            program = go_programs.program(go_programs.TOXIPROXY, settings.cache_dir, say, users)
            services = {_TOXIPROXY: toxiproxy.service(program)}
            lab = stack.enter_context(EmbeddedLab(settings.state_dir, (), services))
        except NotThere as error:
            yield f"no wire ({no_wire}), and {error}; {_WHAT_A_WIRE_TAKES}, or install Go (https://go.dev/dl)"
            return
        except ServiceError as error:
            raise LabError(str(error)) from None
        yield OverToxiproxy(lab, answering, no_wire)


@contextmanager
def _over_wire(settings: Settings, answering: str) -> Iterator[OverWire]:
    """Yield links over a wire that carries messages. Raises NoWire."""
    with ExitStack() as stack:
        try:
            lab = stack.enter_context(EmbeddedLab(settings.state_dir, (), {wire.NAME: wire.service()}))
            found = OverWire(lab, answering, _laid(lab))
            found.measured(Limits(0, 0))
        except (ServiceError, OSError) as error:
            raise NoWire(" ".join(str(error).split())) from None
        yield found


def _laid(lab: EmbeddedLab) -> Wire:
    return wire.laid(lab.pids[wire.NAME], Path(lab.folder, wire.NAME))


def _port(uri: str) -> int:
    parts = urlsplit(uri)
    if parts.hostname != "127.0.0.1" or not parts.port:
        raise LabError(f"{parts.hostname}: a link needs an address with a port, on 127.0.0.1")
    return parts.port


def _round_trip(caller: Caller, limits: Limits) -> float:
    """Return the milliseconds of a round trip: the shortest of a try, because no error makes one too short."""
    fewest, most = _MESSAGES
    number = max(fewest, min(most, int(_MESSAGES_MS / (limits.rtt_ms or 1))))
    return min(caller.round_trip() for _ in range(number)) * 1e3


def _rates(caller: Caller, limits: Limits, rtt_ms: float) -> tuple[float, float]:
    """Return the rates to and from the server, without the round trip spent waiting."""
    number = min(int(limits.mbit_per_s * _SECONDS_OF_BYTES / _BITS), _MOST_BYTES) or _BYTES_WITHOUT_LIMIT
    sent, received = (number * _BITS / (call(number) - rtt_ms / 1e3) for call in (caller.send, caller.fetch))
    return sent, received
