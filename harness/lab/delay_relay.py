"""The process that carries a wire's packets: `python -m harness.lab.delay_relay FOLDER`.

It creates two TUN devices (tun(4)), one here and one in a separate network namespace. It carries packets between them
in order, with a delay. The file DELAY in the folder has the delay of one direction in nanoseconds. The process reads it
for every packet, so a write to it changes the link at once. Once both devices exist, the file DEVICE has the name of
the local one.

Packets arrive as the kernel has them before a network card splits them into frames. They have up to 64 kB, with a
virtio header that describes the split. TCP still counts them in segments of 1,448 bytes.

A signal ends the process. Both devices end with it, and its namespace with the last process in it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import gc
import mmap
import os
import select
import struct
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from harness.machine import network_namespace

DELAY, DEVICE = "delay", "device"
DELAY_BYTES = 8
TUN = "/dev/net/tun"
_PATTERN, _FAR = "lab%d", "-far"  # the kernel uses the first free number
_SET_DEVICE, _SET_OFFLOADS = 0x400454CA, 0x400454D0  # TUNSETIFF, TUNSETOFFLOAD of linux/if_tun.h
_OF_PACKETS = 0x0001 | 0x1000 | 0x4000  # IFF_TUN, IFF_NO_PI, IFF_VNET_HDR
_OFFLOADS = 0x01 | 0x02 | 0x04  # checksums, and large packets of TCP over IPv4 and IPv6
_LARGEST = 1 << 17  # bytes of a packet and its header
_AT_ONCE = 16  # packets of a direction before the other direction's turn
_MOST_WAITING = 1 << 26  # bytes of a direction; more wait in the device's queue, which drops packets when it is full
_SET_TIMER_SLACK = 29  # PR_SET_TIMERSLACK: by default the kernel wakes a process up to 50 us late


class Lane:
    """One direction of the wire."""

    def __init__(self, source: int, target: int, delay: mmap.mmap) -> None:
        self.source = source
        self._target, self._delay = target, delay
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._bytes = 0

    def has_room(self) -> bool:
        """Return whether it may take more packets."""
        return self._bytes < _MOST_WAITING

    def next_due(self) -> int | None:
        """Return when the next packet is due; None without one."""
        return self._waiting[0][0] if self._waiting else None

    def take(self) -> None:
        """Take the available packets, up to a limit; each is due after the current delay."""
        for _ in range(_AT_ONCE):
            try:
                packet = os.read(self.source, _LARGEST)
            except BlockingIOError:
                return
            due = time.monotonic_ns() + int.from_bytes(self._delay[:DELAY_BYTES], sys.byteorder)
            self._waiting.append((due, packet))
            self._bytes += len(packet)

    def give(self) -> None:
        """Send the packets that are due, in order."""
        while self._waiting and self._waiting[0][0] <= time.monotonic_ns():
            _, packet = self._waiting.popleft()
            self._bytes -= len(packet)
            try:
                os.write(self._target, packet)
            except OSError as error:
                if error.errno != errno.EIO:  # the device is down and accepts no packets
                    raise


def carry(lanes: tuple[Lane, Lane]) -> None:
    """Carry packets forever."""
    while True:
        dues = [due for lane in lanes if (due := lane.next_due()) is not None]
        patience = max(0, min(dues) - time.monotonic_ns()) / 1e9 if dues else None
        readable, _, _ = select.select([lane.source for lane in lanes if lane.has_room()], [], [], patience)
        for lane in lanes:
            if lane.source in readable:
                lane.take()
            lane.give()


def device(name: str) -> tuple[int, str]:
    """Create a device in this process's namespace; return its file, and the name that the kernel gave it."""
    file = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    made = fcntl.ioctl(file, _SET_DEVICE, struct.pack("16sH22x", name.encode(), _OF_PACKETS))
    fcntl.ioctl(file, _SET_OFFLOADS, _OFFLOADS)
    return file, made[:16].rstrip(b"\0").decode()


def far(name: str) -> str:
    """Return the name of the device at the other end."""
    return name + _FAR


def main(folder: Path) -> None:
    """Create the wire of a folder and carry its packets."""
    gc.disable()  # this process creates no reference cycles
    with suppress(OSError):  # a network needs no core: take priority, if the machine permits
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, 1, 0, 0, 0)
    here, name = device(_PATTERN)
    network_namespace.make()
    there, _ = device(far(name))
    with open(folder / DELAY, "r+b") as file:
        delay = mmap.mmap(file.fileno(), DELAY_BYTES)
    (folder / DEVICE).write_text(f"{name}\n")
    carry((Lane(here, there, delay), Lane(there, here, delay)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
