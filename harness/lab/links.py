"""Links to the servers of the embedded lab that are slower than loopback, measured before they are used.

Where the kernel lets us lay a wire (`wire.py`), a link is that: one for all connections together. Elsewhere toxiproxy
stands before a server, holds answers back, and limits each connection alone. Loopback itself stays as it is.
docs/explanation/suites/networks.md, says what such links are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from harness.embedded.keeper import ServiceError
from harness.lab import echo, go_programs, toxiproxy, wire
from harness.lab.echo import Caller
from harness.lab.embedded import EmbeddedLab
from harness.lab.go_programs import NotThere
from harness.lab.limits import Limits, Off, Probe
from harness.lab.reference import GREETING_SECONDS, within
from harness.lab.wire import NoWire, Wire
from harness.machine.stopping import on_signals
from harness.model import LabError, Server
from harness.settings import Settings

_TRIES = 8  # before a link is said to be off: others may keep the cores busy for a moment
_MESSAGES, _MESSAGES_MS = (4, 30), 100  # a try: as many as take so long, between these two
_SECONDS_OF_BYTES = 0.1  # of a limited link, sent for a try in each direction
_MOST_BYTES = 25_000_000  # of a try
_BYTES_WITHOUT_LIMIT = 10_000_000
_BITS = 8e-6  # Mbit of a byte
_TOXIPROXY = "toxiproxy"
_LATEST, _MOST_LATE_MS = 9, 0.25  # measurements by which a delay is set; more lateness is that of busy cores
_SHORTEST_MS = 0.1  # of a wire: a carrier with timers takes up to 0.09 itself
_WHAT_A_WIRE_TAKES = "run the lab as root on Linux with ip and tc (iproute2) and /dev/net/tun"


class Links(ABC):
    """Links of one sort; `lab` has what makes them, `echo_address` is what measures them.

    `wire` is None where each connection is limited alone. `late_ms` is by how much a round trip may be longer than
    what was asked, beside its tolerance.
    """

    late_ms: float

    def __init__(self, lab: EmbeddedLab, echo_address: str, laid: Wire | None) -> None:
        self.lab, self.echo_address, self.wire = lab, echo_address, laid

    @abstractmethod
    def over(self, uri: str, limits: Limits) -> str:
        """Return a URI that leads over a link to what one names. Raises LabError where none can be made to that."""

    @property
    @abstractmethod
    def server(self) -> Server:
        """What they are, as results say it of servers: runs over different links are told apart by it."""

    @abstractmethod
    def unavailable(self, limits: Limits) -> str | None:
        """Return why there is no link with these limits, and what to do; or None."""

    @abstractmethod
    def _measure(self, limits: Limits) -> Probe:
        """Make a link and measure it once."""

    @abstractmethod
    def _together(self, one: Probe, other: Probe, limits: Limits) -> Probe:
        """Return what a try and the next say together."""

    @abstractmethod
    def revive(self) -> list[str]:
        """Bring back what has ended; all links are new then. Raises NoWire."""

    def measured(self, limits: Limits) -> Probe:
        """Make a link and return what it is at this moment. Raises Off where it is not what was asked for."""
        found = self._measure(limits)
        for _ in range(_TRIES - 1):
            if not found.off(limits, self.late_ms):
                break
            found = self._together(found, self._measure(limits), limits)
        if off := found.off(limits, self.late_ms):
            raise Off(f"expected a link with {off}, after {_TRIES} tries; end what else keeps the cores busy")
        return found

    def dead(self) -> bool:
        """Say whether what makes them has ended; cheap."""
        return bool(self.lab.dead())


class OverWire(Links):
    """The one link that a wire is: what is asked of it last, it is for all connections.

    Its delay is shorter than what was asked by what everything else on the way takes, the median of what was seen last
    (`_late_ms`): a busy core does not change it.
    """

    late_ms = 0.0

    def __init__(self, lab: EmbeddedLab, echo_address: str, laid: Wire) -> None:
        super().__init__(lab, echo_address, laid)
        self.wire: Wire = laid
        self._late_ms: dict[float, deque[float]] = {}

    @property
    def server(self) -> Server:
        """A name without versions: the kernel's stands in the row of the machine."""
        return Server("tun, a delay of our own and the rate by tbf, of the whole", frozenset(), {})

    def over(self, uri: str, limits: Limits) -> str:
        """Return the URI itself. Raises LabError: no server on this machine's loopback."""
        self.wire.reach(_port(uri))
        return uri

    def unavailable(self, limits: Limits) -> str | None:
        """Return None for round trips that are long enough."""
        if 0 < limits.rtt_ms < _SHORTEST_MS:
            return f"a link takes nearly {_SHORTEST_MS} ms itself, asked was {limits.rtt_ms:g}; ask for that, or for 0"
        return None

    def revive(self) -> list[str]:
        """Lay a new wire where the former has ended."""
        revived = self.lab.revive()
        if revived:
            self.wire, self._late_ms = _laid(self.lab), {}
        return revived

    def _measure(self, limits: Limits) -> Probe:
        """Measure the rates without a delay, so that no window of TCP is measured, and then the round trip with it."""
        self.wire.reach(_port(f"tcp://{self.echo_address}"))
        self.wire.limit(limits.mbit_per_s)
        self.wire.delay(0)
        with self.wire.at_the_other_end(partial(Caller, self.echo_address)) as caller:
            plain = _round_trip(caller, Limits(0, 0))
            rates = _rates(caller, limits, plain)
            return Probe(self._delayed(caller, limits, plain), plain, *rates)

    def _delayed(self, caller: Caller, limits: Limits, plain: float) -> float:
        """Set the delay and return the milliseconds of a round trip with it; set it twice where it is the first."""
        seen = self._late_ms.setdefault(limits.rtt_ms, deque(maxlen=_LATEST))
        for _ in range(1 if seen or not limits.rtt_ms else 2):
            delays = max(0.0, limits.rtt_ms - (median(seen) if seen else plain))  # of both directions
            self.wire.delay(delays / 2e3)
            found = _round_trip(caller, limits)
            seen.append(min(found - delays, _MOST_LATE_MS))
        return found

    def _together(self, one: Probe, other: Probe, limits: Limits) -> Probe:
        both = one.and_again(other, limits)
        return Probe(other.rtt_ms, both.plain_rtt_ms, both.mbit_per_s_sent, both.mbit_per_s_received)


class OverToxiproxy(Links):
    """Links that are made on first use, each a port of toxiproxy; `no_wire` says why there is no wire."""

    late_ms = 0.2  # its own work, and its timers, which were seen late by 0.1 to 0.2

    def __init__(self, lab: EmbeddedLab, echo_address: str, no_wire: str) -> None:
        super().__init__(lab, echo_address, None)
        self.no_wire = no_wire
        self._made: dict[tuple[str, Limits], str] = {}

    @property
    def server(self) -> Server:
        """The program, and why it is used."""
        program = f"{go_programs.TOXIPROXY.name} {go_programs.TOXIPROXY.version}"
        return Server(f"{program}, the rate of each connection", frozenset(), {"no_wire": self.no_wire})

    def over(self, uri: str, limits: Limits) -> str:
        """Return the URI with host and port of a link. Raises LabError: TLS, no port."""
        parts = urlsplit(uri)
        if parts.scheme == "https" or not parts.port:
            raise LabError(f"expected an address with a port and without TLS to make a link to, found {parts.scheme}")
        credentials, at, _ = parts.netloc.rpartition("@")
        link = self._link(f"{parts.hostname}:{parts.port}", limits)
        return parts._replace(netloc=f"{credentials}{at}{link}").geturl()

    def unavailable(self, limits: Limits) -> str | None:
        """Return None for whole milliseconds."""
        if limits.rtt_ms % 1:
            asked = f"toxiproxy adds whole milliseconds, asked were {limits.rtt_ms:g}"
            return f"{asked}, and there is no wire ({self.no_wire}): {_WHAT_A_WIRE_TAKES}"
        return None

    def revive(self) -> list[str]:
        """Start toxiproxy again where it has ended."""
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

    def _together(self, one: Probe, other: Probe, limits: Limits) -> Probe:
        return one.and_again(other, limits)

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
    """Yield what makes links, or the reason why there is none and what to do. It ends with the block or its process.

    `users` are the ids of the transports that need them.
    """
    no_wire = wire.lacking() if with_wire else "none was asked for"
    with on_signals(), echo.server() as answering, ExitStack() as stack:
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
        raise LabError(f"expected an address on 127.0.0.1 with a port to make a link to, found {parts.hostname}")
    return parts.port


def _round_trip(caller: Caller, limits: Limits) -> float:
    """Return the milliseconds of a round trip: the shortest of a try, for nothing makes one too short."""
    fewest, most = _MESSAGES
    number = max(fewest, min(most, int(_MESSAGES_MS / (limits.rtt_ms or 1))))
    return min(caller.round_trip() for _ in range(number)) * 1e3


def _rates(caller: Caller, limits: Limits, rtt_ms: float) -> tuple[float, float]:
    """Return the rates to the server and from there, less the round trip that is waited for."""
    number = min(int(limits.mbit_per_s * _SECONDS_OF_BYTES / _BITS), _MOST_BYTES) or _BYTES_WITHOUT_LIMIT
    sent, received = (number * _BITS / (call(number) - rtt_ms / 1e3) for call in (caller.send, caller.fetch))
    return sent, received
