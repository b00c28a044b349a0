"""A wire: two network devices, one here and one in a separate namespace, with a delay and a limited rate between them.

A process of the lab carries the packets and adds the delay (`delay_relay.py`). The kernel's token bucket filter at both
ends limits the rate, tc-tbf(8). Inside the namespace, the route to the servers' ports leads over the wire, although the
servers listen only on 127.0.0.1, so clients keep their addresses. The relay is a service of the lab, which its keeper
ends. Both devices end with it, so a killed lab leaves nothing behind. Loopback is another device and does not change.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from harness.embedded.keeper import Command, Task
from harness.embedded.service import Service
from harness.lab.delay_relay import DELAY, DELAY_BYTES, DEVICE, TUN, far
from harness.machine import network_namespace, variables
from harness.machine.network_namespace import ADDRESSES
from harness.model import LabError, first_line

NAME = "wire"
_PATH = f"{os.defpath}:/usr/sbin:/sbin"
_TOOLS = ("ip", "tc")  # programs of iproute2
_LOOPBACK = "127.0.0.1"
_PATIENCE_SECONDS = 5.0
_OVER_THE_WIRE, _NOT_OVER_IT = "10", "20"  # priorities of the namespace's routing rules, and a routing table
_QUEUED_PACKETS = "10000"  # queued at a device before the relay takes them: more than TCP windows allow
# Parameters of tc-tbf(8): the burst is two milliseconds of the rate, so that a busy core loses little of it; the
# latency limits waiting packets. TCP sends no packets larger than the burst. Those would be split into frames, each of
# which costs the relay as much as a large packet.
_BURST_BYTES_OF_MBIT, _LEAST_BURST_BYTES, _LATENCY = 250, 16_000, "50ms"
_LARGEST_BYTES = 65_536  # bytes of a packet
_CONGESTION = ("congctl", "cubic")  # Linux's built-in default, set so that a link is the same everywhere
_Answer = TypeVar("_Answer")


class NoWire(LabError):
    """This machine cannot provide a wire: the message has the reason."""


def lacking() -> str:
    """Name the features that this machine lacks for a wire, as far as a check without a trial shows; empty if none."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "it takes Linux and root"
    missing = [name for name in _TOOLS if not shutil.which(name, path=_PATH)]
    missing += [] if os.access(TUN, os.R_OK | os.W_OK) else [TUN]
    return f"it takes {' and '.join(missing)}" if missing else ""


def service() -> Service:
    """Return the service that carries a wire's packets and holds its namespace open."""

    def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
        (folder / DELAY).write_bytes(bytes(DELAY_BYTES))
        return Task(
            folder=str(folder),
            log=str(folder / "server.log"),
            prepare=[],
            service=Command([sys.executable, "-m", "harness.lab.delay_relay", str(folder)]),
            stop=[("SIGTERM", 3.0)],
            environment=variables.environment_of_a_server(folder),
        )

    return Service(
        0,
        prepare,
        DEVICE,
        lambda folder: (folder / DEVICE).read_text().endswith("\n"),
        lambda ports, password: {},
        lambda folder: None,
    )


@dataclass(frozen=True)
class Wire:
    """A wire: the process that carries its packets, that process's folder, and the device at this end.

    `reached` are the ports of this machine's loopback that the namespace reaches over the wire.
    """

    relay: int
    folder: Path
    device: str
    reached: set[int] = field(default_factory=set)

    @property
    def namespace(self) -> str:
        """The file of the namespace at the other end."""
        return f"/proc/{self.relay}/ns/net"

    def limit(self, mbit_per_s: int) -> None:
        """Limit each direction to this many Mbit/s, headers included; 0: no limit."""
        burst = max(mbit_per_s * _BURST_BYTES_OF_MBIT, _LEAST_BURST_BYTES)
        queue, most = ["pfifo"], _LARGEST_BYTES
        if mbit_per_s:
            queue = ["tbf", "rate", f"{mbit_per_s}mbit", "burst", str(burst), "latency", _LATENCY]
            most = min(burst * 9 // 10, _LARGEST_BYTES)  # a tenth is for the headers of its segments
        for run, device in ((_run, self.device), (self._run, far(self.device))):
            run("ip", "link", "set", device, "gso_max_size", str(most))
            run("tc", "qdisc", "replace", "dev", device, "root", *queue)

    def delay(self, seconds: float) -> None:
        """Delay packets by this much in each direction, from now on."""
        with open(self.folder / DELAY, "r+b", buffering=0) as file:
            file.write(round(seconds * 1e9).to_bytes(DELAY_BYTES, sys.byteorder))

    def reach(self, port: int) -> None:
        """Route the namespace's traffic to a port of 127.0.0.1 over the wire, to the server that listens there here."""
        if port not in self.reached:
            rule = f"ip rule add pref {_OVER_THE_WIRE} to {_LOOPBACK} ipproto tcp dport {port} lookup {_OVER_THE_WIRE}"
            self._run(*rule.split())
            self.reached.add(port)

    def bytes(self) -> int:
        """Return how many bytes have been received and sent over it so far."""
        counts = Path("/sys/class/net", self.device, "statistics")
        return sum(int((counts / name).read_text()) for name in ("rx_bytes", "tx_bytes"))

    def at_the_other_end(self, call: Callable[[], _Answer]) -> _Answer:
        """Return the result of a call in the namespace, such as opening a connection."""
        answers: SimpleQueue[tuple[_Answer | None, Exception | None]] = SimpleQueue()

        def work() -> None:
            try:
                network_namespace.enter(self.namespace)
                answers.put((call(), None))
            except Exception as error:
                answers.put((None, error))

        Thread(target=work, name="at the other end", daemon=True).start()
        answer, error = answers.get()
        if error:
            raise error
        return answer  # type: ignore[return-value]  # there is no error

    def set_up(self, here: IPv4Address) -> None:
        """Configure addresses and routes at both ends. Raises NoWire if the kernel refuses.

        `route_localnet` permits loopback addresses on a device: on these two only.
        """
        other, device = far(self.device), self.device
        _without_ipv6(device)
        self.at_the_other_end(partial(_without_ipv6, other))
        for run, name, address in ((_run, device, here), (self._run, other, here + 1)):
            run("ip", "address", "add", f"{address}/30", "dev", name)
            run("ip", "link", "set", name, "txqueuelen", _QUEUED_PACKETS, "up")
        _run("ip", "route", "replace", f"{here + 1}/32", "dev", device, *_CONGESTION)
        self._run("ip", "link", "set", "lo", "up")  # for clients that connect to themselves
        self._run("ip", "rule", "add", "pref", _NOT_OVER_IT, "lookup", "local")
        self._run("ip", "rule", "del", "pref", "0")  # the default rule, which comes before all added ones
        route = ("dev", other, "src", str(here + 1), "table", _OVER_THE_WIRE)
        self._run("ip", "route", "add", f"{_LOOPBACK}/32", *route, *_CONGESTION)
        _allow(device, "route_localnet")
        self.at_the_other_end(partial(_allow, other, "route_localnet", "accept_local"))
        self.limit(100)  # setting a limit shows that the kernel supports it
        self.limit(0)

    def _run(self, *command: str) -> None:
        self.at_the_other_end(lambda: _run(*command))


def laid(relay: int, folder: Path) -> Wire:
    """Set up the wire of a relay process, whose service has a folder. Raises NoWire if the kernel refuses."""
    wire = Wire(relay, folder, (folder / DEVICE).read_text().strip())
    here = ADDRESSES[4 * secrets.randbelow(ADDRESSES.num_addresses // 4) + 1]
    try:
        wire.set_up(here)
    except OSError as error:
        raise NoWire(str(error)) from None
    return wire


def _allow(device: str, *names: str) -> None:
    for name in names:
        Path("/proc/sys/net/ipv4/conf", device, name).write_text("1")


def _without_ipv6(device: str) -> None:
    """Keep the kernel from searching routers over a device that is not up yet, which would add to the counted bytes."""
    switch = Path("/proc/sys/net/ipv6/conf", device, "disable_ipv6")
    if switch.exists():  # does not exist on a machine without IPv6
        switch.write_text("1")


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command,
            env={"PATH": _PATH},
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoWire(f"{' '.join(command)}: {error}") from None
    if done.returncode:
        raise NoWire(f"{' '.join(command)}: {first_line(done.stderr) or f'status {done.returncode}'}")
