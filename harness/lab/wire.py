"""A wire: two network devices of the kernel, one here and one in a namespace of its own, whose rate is limited.

That is the work of the kernel's token bucket filter, tc-tbf(8), at both ends. The namespace lives as long as processes
in it do (network_namespaces(7)): a service of the lab that does nothing, which its keeper ends, and workers. With it go
both devices, so that nothing is left of a lab that was killed. Loopback is another device, and stays as it is.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from harness.embedded.keeper import Command, Task
from harness.embedded.service import Service
from harness.machine import network_namespace
from harness.model import LabError

NAME = "wire"
_OUTPUT = "output.txt"
_PATH = f"{os.defpath}:/usr/sbin:/sbin"
_TOOLS = ("ip", "tc", "unshare", "nsenter")  # of iproute2 and util-linux
_PATIENCE_SECONDS = 5.0
_FIRST, _NETWORKS = IPv4Address("198.18.0.0"), 2**15  # for measuring networks (RFC 2544); in parts of four addresses
# As tc-tbf(8) has it: the bytes that may go at once, two milliseconds of the rate, so that little of it is lost while a
# core is busy (larger packets of the kernel's are cut, as they are for any network), and how long others may wait.
_BURST_BYTES_OF_MBIT, _LEAST_BURST_BYTES, _LATENCY = 250, 16_000, "50ms"
_Answer = TypeVar("_Answer")


class NoWire(LabError):
    """This machine cannot make a wire: the text says why."""


def lacking() -> str:
    """Say what this machine lacks that is needed for a wire, as far as it tells without trying; nothing else."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "it takes Linux and root"
    missing = [name for name in _TOOLS if not shutil.which(name, path=_PATH)]
    return f"it takes {' and '.join(missing)}" if missing else ""


def service() -> Service:
    """Return the service that holds the namespace of a wire open."""

    def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
        return Task(
            folder=str(folder),
            log=str(folder / "server.log"),
            prepare=[],
            service=Command(["unshare", "--net", "sleep", "infinity"], output=str(folder / _OUTPUT)),
            stop=[("SIGTERM", 3.0)],
            environment={"HOME": str(folder), "PATH": _PATH},
        )

    return Service(0, prepare, _OUTPUT, lambda folder: True, lambda ports, password: {}, lambda folder: None)


@dataclass(frozen=True)
class Wire:
    """A wire: the file of its namespace, the device and the address at this end."""

    namespace: str
    device: str
    address: str

    def limit(self, mbit_per_s: int) -> None:
        """Let so many Mbit a second through in each direction, with all headers; 0: as many as there are."""
        burst = str(max(mbit_per_s * _BURST_BYTES_OF_MBIT, _LEAST_BURST_BYTES))
        for inside, device in ((False, self.device), (True, _other(self.device))):
            change = ["replace", "dev", device, "root"]
            change += (
                ["tbf", "rate", f"{mbit_per_s}mbit", "burst", burst, "latency", _LATENCY] if mbit_per_s else ["pfifo"]
            )
            _run(["tc", "qdisc", *change], self.namespace if inside else "")

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


def laid(holder: int) -> Wire:
    """Lay a wire into the namespace of the process that holds it. Raises NoWire where the kernel refuses."""
    namespace = f"/proc/{holder}/ns/net"
    _wait_for(namespace)
    here = _FIRST + 4 * secrets.randbelow(_NETWORKS) + 1
    wire = Wire(namespace, f"lab{secrets.token_hex(4)}", str(here))
    other = _other(wire.device)
    _run(["ip", "link", "add", wire.device, "type", "veth", "peer", "name", other, "netns", str(holder)])
    for device, address, inside in ((wire.device, here, ""), (other, here + 1, namespace)):
        _run(["ip", "address", "add", f"{address}/30", "dev", device], inside)
        _run(["ip", "link", "set", device, "up"], inside)
    _run(["ip", "link", "set", "lo", "up"], namespace)  # for clients that talk to themselves
    wire.limit(100)  # that there is such a limit shows the kernel by setting one
    wire.limit(0)
    return wire


def _wait_for(namespace: str) -> None:
    """Wait until the process that a namespace is of has made it. Raises NoWire where it has not, or has ended."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while os.readlink(namespace) == os.readlink("/proc/self/ns/net"):
            if time.monotonic() > deadline:
                raise NoWire("the process that holds its namespace is in none of its own")
            time.sleep(0.005)
    except OSError:
        raise NoWire("unshare --net: the process that was to hold its namespace has ended") from None


def _other(device: str) -> str:
    return f"{device}-far"


def _run(command: Sequence[str], namespace: str = "") -> None:
    inside = ["nsenter", f"--net={namespace}"] if namespace else []
    environment = {"PATH": _PATH}
    try:
        done = subprocess.run(
            [*inside, *command], env=environment, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoWire(f"{' '.join(command)}: {error}") from None
    if done.returncode:
        said = (done.stderr.strip() or f"status {done.returncode}").splitlines()[0]
        raise NoWire(f"{' '.join(command)}: {said}")
