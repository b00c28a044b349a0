"""A wire: two network devices, one here and one in a namespace of its own, with a delay between and a limited rate.

The delay is made by a process of the lab that carries the packets (`carrier.py`), the rate by the kernel's token bucket
filter at both ends, tc-tbf(8). In the namespace the way to the ports of servers leads over the wire, though they listen
on 127.0.0.1 alone: clients keep their addresses. The carrier is a service of the lab, which its keeper ends; with it go
both devices, so that nothing is left of a lab that was killed. Loopback is another device, and stays as it is.
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
from harness.lab.carrier import DELAY, DELAY_BYTES, DEVICE, TUN, far
from harness.machine import network_namespace, variables
from harness.machine.network_namespace import ADDRESSES
from harness.model import LabError

NAME = "wire"
_PATH = f"{os.defpath}:/usr/sbin:/sbin"
_TOOLS = ("ip", "tc")  # of iproute2
_LOOPBACK = "127.0.0.1"
_PATIENCE_SECONDS = 5.0
_OVER_THE_WIRE, _NOT_OVER_IT = "10", "20"  # places of the rules of routing in the namespace, and a table of routes
_QUEUED_PACKETS = "10000"  # at a device, before the carrier takes them: more than the windows of TCP let wait there
# As tc-tbf(8) has it: the bytes that may go at once, two milliseconds of the rate, so that little of it is lost while a
# core is busy, and how long others may wait. TCP makes no packets that are larger than the former: those would be cut
# into frames, of which each costs the carrier as much as a large one.
_BURST_BYTES_OF_MBIT, _LEAST_BURST_BYTES, _LATENCY = 250, 16_000, "50ms"
_LARGEST_BYTES = 65_536  # of a packet
_CONGESTION = ("congctl", "cubic")  # what Linux has from the start, whatever is set here: a link is the same everywhere
_Answer = TypeVar("_Answer")


class NoWire(LabError):
    """This machine cannot make a wire: the text says why."""


def lacking() -> str:
    """Say what this machine lacks that is needed for a wire, as far as it tells without trying; nothing else."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "it takes Linux and root"
    missing = [name for name in _TOOLS if not shutil.which(name, path=_PATH)]
    missing += [] if os.access(TUN, os.R_OK | os.W_OK) else [TUN]
    return f"it takes {' and '.join(missing)}" if missing else ""


def service() -> Service:
    """Return the service that carries the packets of a wire, and holds its namespace open."""

    def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
        (folder / DELAY).write_bytes(bytes(DELAY_BYTES))
        return Task(
            folder=str(folder),
            log=str(folder / "server.log"),
            prepare=[],
            service=Command([sys.executable, "-m", "harness.lab.carrier", str(folder)]),
            stop=[("SIGTERM", 3.0)],
            environment=variables.environment_of_a_server(folder),
        )

    return Service(0, prepare, DEVICE, _is_ready, lambda ports, password: {}, lambda folder: None)


def _is_ready(folder: Path) -> bool:
    return (folder / DEVICE).read_text().endswith("\n")


@dataclass(frozen=True)
class Wire:
    """A wire: the process that carries its packets, the folder of that, and the device at this end.

    `reached` are the ports of this machine's loopback that lead over it in the namespace.
    """

    carrier: int
    folder: Path
    device: str
    reached: set[int] = field(default_factory=set)

    @property
    def namespace(self) -> str:
        """The file of the namespace at the other end."""
        return f"/proc/{self.carrier}/ns/net"

    def limit(self, mbit_per_s: int) -> None:
        """Let so many Mbit a second through in each direction, with all headers; 0: as many as there are."""
        burst = max(mbit_per_s * _BURST_BYTES_OF_MBIT, _LEAST_BURST_BYTES)
        queue, most = ["pfifo"], _LARGEST_BYTES
        if mbit_per_s:
            queue = ["tbf", "rate", f"{mbit_per_s}mbit", "burst", str(burst), "latency", _LATENCY]
            most = min(burst * 9 // 10, _LARGEST_BYTES)  # the tenth is for the headers of its segments
        for run, device in ((_run, self.device), (self._run, far(self.device))):
            run("ip", "link", "set", device, "gso_max_size", str(most))
            run("tc", "qdisc", "replace", "dev", device, "root", *queue)

    def delay(self, seconds: float) -> None:
        """Hold packets back for so long in each direction, from now on."""
        with open(self.folder / DELAY, "r+b", buffering=0) as file:
            file.write(round(seconds * 1e9).to_bytes(DELAY_BYTES, sys.byteorder))

    def reach(self, port: int) -> None:
        """Lead what the namespace sends to a port of 127.0.0.1 over the wire, to the server that listens there here."""
        if port not in self.reached:
            rule = f"ip rule add pref {_OVER_THE_WIRE} to {_LOOPBACK} ipproto tcp dport {port} lookup {_OVER_THE_WIRE}"
            self._run(*rule.split())
            self.reached.add(port)

    def bytes(self) -> int:
        """Return how many bytes have come and gone over it so far."""
        counts = Path("/sys/class/net", self.device, "statistics")
        return sum(int((counts / name).read_text()) for name in ("rx_bytes", "tx_bytes"))

    def at_the_other_end(self, call: Callable[[], _Answer]) -> _Answer:
        """Return what a call does in the namespace, such as open a connection."""
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
        """Give both ends their addresses and routes. Raises NoWire where the kernel refuses.

        `route_localnet` lets the addresses of loopback come and go over a device: over these two, and no other.
        """
        other, device = far(self.device), self.device
        _without_ipv6(device)
        self.at_the_other_end(partial(_without_ipv6, other))
        for run, name, address in ((_run, device, here), (self._run, other, here + 1)):
            run("ip", "address", "add", f"{address}/30", "dev", name)
            run("ip", "link", "set", name, "txqueuelen", _QUEUED_PACKETS, "up")
        _run("ip", "route", "replace", f"{here + 1}/32", "dev", device, *_CONGESTION)
        self._run("ip", "link", "set", "lo", "up")  # for clients that talk to themselves
        self._run("ip", "rule", "add", "pref", _NOT_OVER_IT, "lookup", "local")
        self._run("ip", "rule", "del", "pref", "0")  # the same, before all others
        route = ("dev", other, "src", str(here + 1), "table", _OVER_THE_WIRE)
        self._run("ip", "route", "add", f"{_LOOPBACK}/32", *route, *_CONGESTION)
        _allow(device, "route_localnet")
        self.at_the_other_end(partial(_allow, other, "route_localnet", "accept_local"))
        self.limit(100)  # that there is such a limit shows the kernel by setting one
        self.limit(0)

    def _run(self, *command: str) -> None:
        self.at_the_other_end(lambda: _run(*command))


def laid(carrier: int, folder: Path) -> Wire:
    """Lay the wire that a process carries, whose service has a folder. Raises NoWire where the kernel refuses."""
    wire = Wire(carrier, folder, (folder / DEVICE).read_text().strip())
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
    """Keep the kernel from asking for routers over a device that is not up yet: nothing else is to be counted there."""
    switch = Path("/proc/sys/net/ipv6/conf", device, "disable_ipv6")
    if switch.exists():  # not on a machine without IPv6
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
        said = (done.stderr.strip() or f"status {done.returncode}").splitlines()[0]
        raise NoWire(f"{' '.join(command)}: {said}")
