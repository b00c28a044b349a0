"""The process that carries the packets of a wire: the time and the order in which it delivers them."""

import mmap
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from harness.lab import delay_relay
from harness.lab.delay_relay import DELAY_BYTES, Lane


@dataclass
class Ends:
    """The two ends of a lane, and its delay."""

    lane: Lane
    sender: socket.socket
    receiver: socket.socket
    memory: mmap.mmap

    def delay(self, seconds: float) -> None:
        self.memory[:DELAY_BYTES] = round(seconds * 1e9).to_bytes(DELAY_BYTES, sys.byteorder)

    def received(self) -> list[bytes]:
        found = []
        while True:
            try:
                found.append(self.receiver.recv(100))
            except BlockingIOError:
                return found


@pytest.fixture
def ends() -> Iterator[Ends]:
    sender, source = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    target, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with sender, source, target, receiver, mmap.mmap(-1, DELAY_BYTES) as memory:
        for end in (source, receiver):
            end.setblocking(False)
        yield Ends(Lane(source.fileno(), target.fileno(), memory), sender, receiver, memory)


def test_without_a_delay_packets_go_on_at_once(ends: Ends) -> None:
    assert ends.lane.next_due() is None
    for packet in (b"one", b"two"):
        ends.sender.send(packet)
    ends.lane.take()
    ends.lane.give()
    assert ends.received() == [b"one", b"two"]
    assert ends.lane.next_due() is None


def test_a_packet_is_given_when_its_delay_is_over_and_not_before(ends: Ends) -> None:
    ends.delay(0.05)
    ends.sender.send(b"one")
    before = time.monotonic_ns()
    ends.lane.take()
    due = ends.lane.next_due()
    assert due is not None
    assert 0.05e9 <= due - before < 0.06e9
    ends.lane.give()
    assert ends.received() == []
    time.sleep(0.06)
    ends.lane.give()
    assert ends.received() == [b"one"]


def test_a_shorter_delay_lets_no_packet_overtake_another(ends: Ends) -> None:
    ends.delay(0.03)
    ends.sender.send(b"one")
    ends.lane.take()
    ends.delay(0)
    ends.sender.send(b"two")
    ends.lane.take()
    ends.lane.give()
    assert ends.received() == []
    time.sleep(0.04)
    ends.lane.give()
    assert ends.received() == [b"one", b"two"]


def test_what_waits_is_bounded(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delay_relay, "_MOST_WAITING", 5)
    for packet in (b"one", b"two"):
        assert ends.lane.has_room()
        ends.sender.send(packet)
        ends.lane.take()
    assert not ends.lane.has_room()
    ends.lane.give()
    assert ends.lane.has_room()
