"""A link's requested limits, its measurement, and whether the two agree."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import LabError

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
