"""Links to the servers of the embedded lab that are slower than loopback, measured before they are used.

They are made by toxiproxy, which holds answers back and limits what each connection carries; it has no limit for the
connections of a link together. Loopback itself stays as it is. docs/methodology.md, Networks, says what such a link is
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from harness.embedded.keeper import ServiceError
from harness.lab import echo, go_programs, toxiproxy
from harness.lab.embedded import EmbeddedLab
from harness.lab.go_programs import NotThere
from harness.lab.reference import GREETING_SECONDS, within
from harness.machine.stopping import on_signals
from harness.model import LabError
from harness.settings import Settings

TOLERANCE = 0.1  # of what was asked
_TRIES = 8  # before a link is said to be off: others may keep the cores busy for a moment
_MESSAGES, _MESSAGES_MS = (4, 30), 100  # a try: as many as take so long, between these two
_MOST_OWN_MS = 0.3  # that a round trip may take of toxiproxy itself: on an idle machine 0.05 were seen
_SECONDS_OF_BYTES = 0.1  # of a limited link, sent for a try in each direction
_MOST_BYTES = 25_000_000  # of a try
_BYTES_WITHOUT_LIMIT = 10_000_000
_BITS = 8e-6  # Mbit of a byte


class Off(LabError):
    """A link is not what was asked for: its text says what was asked and what was found."""


@dataclass(frozen=True)
class Limits:
    """What a link adds to the round trip, and the rate of each connection in each direction; 0 adds, limits nothing."""

    rtt_ms: int
    mbit_per_s: int

    @property
    def name(self) -> str:
        """What a link is called in toxiproxy, and in messages."""
        return f"{self.rtt_ms} ms, {self.mbit_per_s or 'unlimited'} Mbit/s"


@dataclass(frozen=True)
class Found:
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

        The round trip may also be longer by what one takes that nothing was added to, up to _MOST_OWN_MS.
        """
        wrong = []
        most = (1 + TOLERANCE) * asked.rtt_ms + min(self.plain_rtt_ms, _MOST_OWN_MS)
        if asked.rtt_ms and not (1 - TOLERANCE) * asked.rtt_ms <= self.rtt_ms <= most:
            wrong.append(f"a round trip of {asked.rtt_ms} ms, found {self.rtt_ms:.2f}")
        for way, rate in (("sent", self.mbit_per_s_sent), ("received", self.mbit_per_s_received)):
            if asked.mbit_per_s and abs(rate / asked.mbit_per_s - 1) > TOLERANCE:
                wrong.append(f"{asked.mbit_per_s} Mbit/s {way}, found {rate:,.0f}")
        return "; ".join(wrong)

    def and_again(self, other: Found, asked: Limits) -> Found:
        """Return what two tries say together."""

        def nearest(*rates: float) -> float:
            return min(rates, key=lambda rate: abs(rate - asked.mbit_per_s)) if asked.mbit_per_s else max(rates)

        return Found(
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
    """Links that are made on first use; `lab` has the toxiproxy that makes them, `echo` what they are measured by."""

    lab: EmbeddedLab
    echo: str
    _made: dict[tuple[str, Limits], str] = field(default_factory=dict)

    def over(self, uri: str, limits: Limits) -> str:
        """Return a URI with host and port of a link to what it names. Raises LabError: TLS, no port."""
        parts = urlsplit(uri)
        if parts.scheme == "https" or not parts.port:
            raise LabError(f"expected an address with a port and without TLS to make a link to, found {parts.scheme}")
        host = self._link(f"{parts.hostname}:{parts.port}", limits)
        credentials, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{credentials}{at}{host}").geturl()

    def measured(self, limits: Limits) -> Found:
        """Return what a link with these limits is at this moment. Raises Off where it is not what was asked for."""
        found = self._measure(limits)
        for _ in range(_TRIES - 1):
            if not found.off(limits):
                break
            found = found.and_again(self._measure(limits), limits)
        if off := found.off(limits):
            raise Off(f"expected a link with {off}, the best of {_TRIES} tries; end what else keeps the cores busy")
        return found

    def dead(self) -> bool:
        """Say whether toxiproxy has ended; cheap."""
        return bool(self.lab.dead())

    def revive(self) -> list[str]:
        """Bring toxiproxy back where it has ended; all links are new then."""
        revived = self.lab.revive()
        if revived:
            self._made.clear()
        return revived

    def _measure(self, limits: Limits) -> Found:
        number = min(int(limits.mbit_per_s * _SECONDS_OF_BYTES / _BITS), _MOST_BYTES) or _BYTES_WITHOUT_LIMIT
        fewest, most = _MESSAGES
        messages = max(fewest, min(most, _MESSAGES_MS // (limits.rtt_ms or 1)))
        plain, link = (self._link(self.echo, each) for each in (Limits(0, 0), limits))
        with echo.Caller(plain) as caller:
            without = min(caller.round_trip() for _ in range(messages))
        with echo.Caller(link) as caller:
            round_trip = min(caller.round_trip() for _ in range(messages))
            rates = [number * _BITS / (call(number) - round_trip) for call in (caller.send, caller.fetch)]
        return Found(round_trip * 1e3, without * 1e3, *rates)

    def _link(self, upstream: str, limits: Limits) -> str:
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
            )
            self._made[key] = within(GREETING_SECONDS, "toxiproxy", "making a link", make)
        return self._made[key]


@contextmanager
def opened(settings: Settings, say: Callable[[str], None]) -> Iterator[Links | str]:
    """Yield what makes links, or the reason why there is none and what to do. It ends with the block or its process."""
    try:
        program = go_programs.program(go_programs.TOXIPROXY, settings.cache_dir, say)
    except NotThere as error:
        yield f"{error}; install Go (https://go.dev/dl), links are made by toxiproxy"
        return
    try:
        with (
            on_signals(),
            echo.server() as answering,
            EmbeddedLab(settings.state_dir, (), {"toxiproxy": toxiproxy.service(program)}) as lab,
        ):
            yield Links(lab, answering)
    except ServiceError as error:
        raise LabError(str(error)) from None
