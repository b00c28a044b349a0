"""Links to the servers of the embedded lab that are slower than loopback, measured before they are used.

Toxiproxy holds answers back. The rate of all connections of a link together is limited by the kernel where it lets us
lay a wire (`wire.py`), else by toxiproxy that of each connection alone. Loopback itself stays as it is.
docs/methodology.md, Networks, says what such a link is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from harness.embedded.keeper import ServiceError
from harness.lab import echo, go_programs, toxiproxy, wire
from harness.lab.embedded import EmbeddedLab
from harness.lab.go_programs import NotThere
from harness.lab.reference import GREETING_SECONDS, within
from harness.lab.wire import NoWire, Wire
from harness.machine.stopping import on_signals
from harness.model import LabError, Server
from harness.settings import Settings

TOLERANCE = 0.1  # of what was asked
_TRIES = 8  # before a link is said to be off: others may keep the cores busy for a moment
_MESSAGES, _MESSAGES_MS = (4, 30), 100  # a try: as many as take so long, between these two
_FLOOR_MS = 0.2  # that toxiproxy takes itself: its work, and its timers, which were seen late by 0.1 to 0.2
_SECONDS_OF_BYTES = 0.1  # of a limited link, sent for a try in each direction
_MOST_BYTES = 25_000_000  # of a try
_BYTES_WITHOUT_LIMIT = 10_000_000
_BITS = 8e-6  # Mbit of a byte
_TOXIPROXY = "toxiproxy"


class Off(LabError):
    """A link is not what was asked for: its text says what was asked and what was found."""


@dataclass(frozen=True)
class Limits:
    """What a link adds to the round trip, and its rate in each direction; 0 adds nothing, and limits nothing."""

    rtt_ms: int
    mbit_per_s: int

    @property
    def name(self) -> str:
        """What a link is called in toxiproxy, and in messages."""
        return f"{self.rtt_ms} ms, {self.mbit_per_s or 'unlimited'} Mbit/s"


@dataclass(frozen=True)
class Probe:
    """What a link was measured to be: a round trip of it and of one that adds nothing, and its rates to and fro.

    The shortest round trips of all tries, for nothing makes one too short; of each rate the one nearest to what was
    asked, and without a limit the largest: a busy core makes a link slow now and then, and shows nothing of it.
    """

    rtt_ms: float
    plain_rtt_ms: float
    mbit_per_s_sent: float
    mbit_per_s_received: float

    def off(self, asked: Limits) -> str:
        """Say what is further from what was asked than TOLERANCE; nothing where all is as asked.

        The round trip may also be longer by _FLOOR_MS.
        """
        wrong = []
        most = (1 + TOLERANCE) * asked.rtt_ms + _FLOOR_MS
        if asked.rtt_ms and not (1 - TOLERANCE) * asked.rtt_ms <= self.rtt_ms <= most:
            wrong.append(f"a round trip of {asked.rtt_ms} ms, found {self.rtt_ms:.2f}")
        for way, rate in (("sent", self.mbit_per_s_sent), ("received", self.mbit_per_s_received)):
            if asked.mbit_per_s and abs(rate / asked.mbit_per_s - 1) > TOLERANCE:
                wrong.append(f"{asked.mbit_per_s} Mbit/s {way}, found {rate:,.0f}")
        return "; ".join(wrong)

    def and_again(self, other: Probe, asked: Limits) -> Probe:
        """Return what two tries say together."""

        def nearest(*rates: float) -> float:
            return min(rates, key=lambda rate: abs(rate - asked.mbit_per_s)) if asked.mbit_per_s else max(rates)

        return Probe(
            min(self.rtt_ms, other.rtt_ms),
            min(self.plain_rtt_ms, other.plain_rtt_ms),
            nearest(self.mbit_per_s_sent, other.mbit_per_s_sent),
            nearest(self.mbit_per_s_received, other.mbit_per_s_received),
        )

    @property
    def details(self) -> dict[str, int | float]:
        """The figures by the names that they have in the results."""
        return {
            "link_rtt_ms": round(self.rtt_ms, 3),
            "link_plain_rtt_ms": round(self.plain_rtt_ms, 3),
            "link_mbit_per_s_sent": round(self.mbit_per_s_sent, 1),
            "link_mbit_per_s_received": round(self.mbit_per_s_received, 1),
        }


@dataclass
class Links:
    """Links that are made on first use; `lab` has the toxiproxy that makes them, `echo_address` is what measures them.

    `wire` is what the kernel limits; None where it does not (`no_wire` says why), and toxiproxy does.
    """

    lab: EmbeddedLab
    echo_address: str
    wire: Wire | None
    no_wire: str = ""
    _made: dict[tuple[str, Limits], str] = field(default_factory=dict)

    def over(self, uri: str, limits: Limits) -> str:
        """Return a URI with host and port of a link to what it names. Raises LabError: TLS, no port."""
        parts = urlsplit(uri)
        if parts.scheme == "https" or not parts.port:
            raise LabError(f"expected an address with a port and without TLS to make a link to, found {parts.scheme}")
        host = self._link(f"{parts.hostname}:{parts.port}", limits)
        credentials, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{credentials}{at}{host}").geturl()

    @property
    def server(self) -> Server:
        """What they are, as results say it of servers: runs over links of different kinds are told apart by it."""
        program = f"{go_programs.TOXIPROXY.name} {go_programs.TOXIPROXY.version}"
        if self.wire:
            return Server(f"{program}, the rate of the whole by tbf", frozenset(), {})
        return Server(f"{program}, the rate of each connection", frozenset(), {"no_wire": self.no_wire})

    def measured(self, limits: Limits) -> Probe:
        """Set the rate and return what a link is at this moment. Raises Off where it is not what was asked for."""
        if self.wire:
            self.wire.limit(limits.mbit_per_s)
        found = self._measure(limits)
        for _ in range(_TRIES - 1):
            if not found.off(limits):
                break
            found = found.and_again(self._measure(limits), limits)
        if off := found.off(limits):
            raise Off(f"expected a link with {off}, the best of {_TRIES} tries; end what else keeps the cores busy")
        return found

    def dead(self) -> bool:
        """Say whether toxiproxy has ended, or what holds the wire; cheap."""
        return bool(self.lab.dead())

    def revive(self) -> list[str]:
        """Bring back what has ended; all links are new then. Raises NoWire."""
        if wire.NAME in self.lab.dead():
            self.lab.end(_TOXIPROXY)  # it listens at an address that is gone
        revived = self.lab.revive()
        if revived:
            self._made.clear()
        if wire.NAME in revived:
            self.wire = wire.laid(self.lab.pids[wire.NAME])
        return revived

    def _measure(self, limits: Limits) -> Probe:
        number = min(int(limits.mbit_per_s * _SECONDS_OF_BYTES / _BITS), _MOST_BYTES) or _BYTES_WITHOUT_LIMIT
        fewest, most = _MESSAGES
        messages = max(fewest, min(most, _MESSAGES_MS // (limits.rtt_ms or 1)))
        plain, link = (self._link(self.echo_address, each) for each in (Limits(0, 0), limits))
        with self._caller(plain) as caller:
            without = min(caller.round_trip() for _ in range(messages))
        with self._caller(link) as caller:
            round_trip = min(caller.round_trip() for _ in range(messages))
            rates = [number * _BITS / (call(number) - round_trip) for call in (caller.send, caller.fetch)]
        return Probe(round_trip * 1e3, without * 1e3, *rates)

    def _caller(self, address: str) -> echo.Caller:
        call = partial(echo.Caller, address)
        return self.wire.at_the_other_end(call) if self.wire else call()

    def _link(self, upstream: str, limits: Limits) -> str:
        if self.wire:
            limits = Limits(limits.rtt_ms, 0)  # it is for the wire to limit the rate
        key = upstream, limits
        if key not in self._made:
            make = partial(
                toxiproxy.link,
                self.lab.endpoints["toxiproxy"],
                f"{upstream}, {limits.name}".replace(" ", "").replace("/", ""),
                upstream,
                limits.rtt_ms,
                round(limits.mbit_per_s / _BITS),
                buffered=True,
                at=self.wire.address if self.wire else "127.0.0.1",
            )
            self._made[key] = within(GREETING_SECONDS, "toxiproxy", "making a link", make)
        return self._made[key]


@contextmanager
def opened(settings: Settings, say: Callable[[str], None], with_wire: bool = True) -> Iterator[Links | str]:
    """Yield what makes links, or the reason why there is none and what to do. It ends with the block or its process."""
    try:
        program = go_programs.program(go_programs.TOXIPROXY, settings.cache_dir, say)
    except NotThere as error:
        yield f"{error}; install Go (https://go.dev/dl), links are made by toxiproxy"
        return
    services, laid = {_TOXIPROXY: toxiproxy.service(program)}, None
    try:
        with on_signals(), echo.server() as answering, ExitStack() as stack:
            if not (no_wire := wire.lacking() if with_wire else "none was asked for"):
                with_holder = EmbeddedLab(settings.state_dir, (), services | {wire.NAME: wire.service()})
                try:
                    lab = stack.enter_context(with_holder)
                    laid = wire.laid(lab.pids[wire.NAME])
                except (ServiceError, NoWire) as error:
                    stack.close()
                    no_wire = str(error).partition("\n")[0]
            if laid is None:
                lab = stack.enter_context(EmbeddedLab(settings.state_dir, (), services))
            yield Links(lab, answering, laid, no_wire)
    except ServiceError as error:
        raise LabError(str(error)) from None
