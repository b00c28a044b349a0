"""Links between a client and the servers of the embedded lab, by connection or over a wire: their delay and limits."""

import mmap
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.lab import delay_relay, links, wire
from harness.lab.delay_relay import DELAY_BYTES, Lane
from harness.lab.links import Limits, Links, Off, OverToxiproxy, OverWire, Probe
from harness.model import LabError
from harness.report.conclusions import slope
from harness.report.intervals import UNKNOWN
from harness.settings import Settings
from tests.waiting import until

_TRIPS_MS = {True: (0.2, 1, 10, 50), False: (0, 15, 30)}  # as a whole or not
_Answer = TypeVar("_Answer")


pytestmark = pytest.mark.process


@pytest.fixture(scope="module", params=[True, False], ids=["wire", "per connection"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Links]:
    folder = tmp_path_factory.mktemp("links")
    folder.chmod(0o755)
    with (
        pytest.MonkeyPatch.context() as patch,
        links.opened(Settings(state_dir=folder), print, with_wire=request.param) as found,
    ):
        patch.setattr(links, "_TRIES", 100)  # other tests keep the cores busy
        if isinstance(found, str) or (request.param and isinstance(found, OverToxiproxy)):
            pytest.skip(found if isinstance(found, str) else found.no_wire)
        yield found


def at_the_far_end(made: Links, call: Callable[[], _Answer]) -> _Answer:
    """The calls of a worker that has entered the namespace of the wire, if the link has one."""
    return made.wire.at_the_other_end(call) if made.wire else call()


@pytest.mark.long
@pytest.mark.alone(times=True)
def test_a_link_is_measured_to_be_what_was_asked_for(made: Links) -> None:
    found = made.measured(Limits(20, 100))
    assert 18 <= found.rtt_ms <= 22 + made.late_ms
    assert found.plain_rtt_ms < found.rtt_ms / 2
    assert 90 <= found.mbit_per_s_sent <= 110
    assert 90 <= found.mbit_per_s_received <= 110
    assert set(found.details) == {
        "link_rtt_ms",
        "link_plain_rtt_ms",
        "link_mbit_per_s_sent",
        "link_mbit_per_s_received",
    }


@pytest.mark.long
def test_a_link_that_cannot_be_made_here_is_refused_with_what_was_asked_and_found(
    made: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_TRIES", 2)
    with pytest.raises(Off, match=r"^the link has \S+ Mbit/s sent instead of 1000000; .*after 2 tries; end"):
        made.measured(Limits(0, 1_000_000))


@pytest.mark.long
@pytest.mark.alone(times=True)
def test_the_slope_counts_the_round_trips_that_a_client_is_known_to_wait_for(made: Links, embedded_lab) -> None:
    """psycopg waits for BEGIN before the first statement of a transaction: two round trips; one with autocommit."""
    taken: dict[int, dict[float, list[float]]] = {1: {}, 2: {}}
    for rtt_ms in _TRIPS_MS[bool(made.wire)]:
        limits = Limits(rtt_ms, 0)
        made.measured(limits)
        uri = made.over(embedded_lab.endpoints["postgres"], limits)
        for trips, points in taken.items():
            connect = partial(psycopg.connect, uri, autocommit=trips == 1)
            with at_the_far_end(made, connect) as connection:
                points[rtt_ms / 1e3] = [min(seconds_of_a_statement(connection) for _ in range(5))]
    for trips, points in taken.items():
        assert slope(points, UNKNOWN, "a").value == pytest.approx(trips, abs=0.3)


def seconds_of_a_statement(connection: psycopg.Connection, statement: str = "SELECT 1") -> float:
    started = time.perf_counter()
    connection.execute(statement)
    seconds = time.perf_counter() - started
    connection.rollback()
    return seconds


def test_bytes_take_at_least_what_the_rate_allows(made: Links, embedded_lab) -> None:
    number, limits = 3_000_000, Limits(0, 100)
    made.measured(limits)
    uri = made.over(embedded_lab.endpoints["postgres"], limits)
    with at_the_far_end(made, partial(psycopg.connect, uri)) as connection:
        started = time.perf_counter()
        with connection.cursor().copy(
            "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 3000)) TO STDOUT"
        ) as copy:
            received = sum(len(block) for block in copy)
    seconds = time.perf_counter() - started
    assert received >= number
    assert seconds > 0.95 * received * 8 / 100e6  # a piece may be ahead of the limit
    with psycopg.connect(embedded_lab.endpoints["postgres"]) as connection:  # loopback is as it was
        until(lambda: seconds_of_a_statement(connection, "SELECT repeat('x', 3000000)") < seconds)


def test_two_connections_share_a_wire_and_have_a_limit_each_without_one(made: Links) -> None:
    limits, number = Limits(0, 100), 2_500_000  # 0.2 s of it
    made.measured(limits)
    connect = partial(links.Caller, made.over(f"//{made.echo_address}", limits).removeprefix("//"))
    with (
        at_the_far_end(made, connect) as one,
        at_the_far_end(made, connect) as other,
        ThreadPoolExecutor(2) as pool,
    ):
        started = time.perf_counter()
        list(pool.map(lambda caller: caller.fetch(number), (one, other)))
        seconds = time.perf_counter() - started
    if made.wire:
        assert seconds > 0.95 * 2 * number * 8 / 100e6
    else:
        assert seconds > 0.95 * number * 8 / 100e6


def test_a_toxiproxy_that_died_is_brought_back_and_its_links_are_made_again(made: Links) -> None:
    if made.wire:
        pytest.skip("there is none")
    made.measured(Limits(0, 0))
    made.lab.end("toxiproxy")
    until(made.lab.dead)
    assert made.revive() == ["toxiproxy"]
    assert made.measured(Limits(2, 0)).rtt_ms > 2


@pytest.mark.long
@pytest.mark.alone(times=True)
def test_over_a_wire_bytes_wait_for_the_window_of_tcp_and_elsewhere_not(made: Links) -> None:
    """A new connection sends 10 segments of 1,448 bytes, and twice as many after each round trip."""
    limits, number = Limits(20, 0), 400_000
    made.measured(limits)
    connect = partial(links.Caller, made.over(f"//{made.echo_address}", limits).removeprefix("//"))
    taken = []
    for _ in range(3):  # new ones: nothing makes one too quick
        with at_the_far_end(made, connect) as caller:
            taken.append(caller.fetch(number))
    trips = min(taken) * 1e3 / limits.rtt_ms
    assert 4 < trips < 8 if made.wire else trips < 3


def test_without_a_wire_and_toxiproxy_there_is_a_reason_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(wire, "lacking", lambda: "it takes Linux and root")
    with links.opened(Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state"), print) as found:
        assert isinstance(found, str)
        assert found.startswith("no wire (it takes Linux and root), and no toxiproxy: no Go to compile it with")
        assert "; run the lab as root on Linux with ip and tc" in found
        assert "or install Go" in found


def test_a_link_keeps_all_of_an_address_and_a_wire_its_port_too(made: Links) -> None:
    with links.server() as other:
        uri = made.over(f"postgresql://me:a%40b@{other}/db?x=1", Limits(0, 0))
    assert uri.startswith("postgresql://me:a%40b@127.0.0.1:")
    assert uri.endswith("/db?x=1")
    assert (f"@{other}/" in uri) == bool(made.wire)


@pytest.mark.parametrize("uri", ["http://here", "http://127.0.0.1", "https://here:1"])
def test_no_link_is_made_to_an_address_without_a_port_or_with_tls_of_another_host(made: Links, uri: str) -> None:
    with pytest.raises(LabError, match=r".*: a link needs an address with a port"):
        made.over(uri, Limits(0, 0))


@given(st.integers(1, 100), st.integers(1, 1000), st.floats(0.9, 1.1), st.floats(0.91, 1.09))
def test_a_link_within_ten_percent_is_as_asked_and_one_further_off_is_not(
    rtt_ms: int, mbit_per_s: int, slower: float, rate: float
) -> None:
    asked = Limits(rtt_ms, mbit_per_s)
    good = Probe(rtt_ms * slower, 0.05, mbit_per_s * rate, mbit_per_s * rate)
    assert good.off(asked, 0) == ""
    assert f"Mbit/s received instead of {mbit_per_s}" in Probe(rtt_ms, 0.05, mbit_per_s, mbit_per_s * 0.8).off(asked, 0)
    assert f"Mbit/s sent instead of {mbit_per_s}" in Probe(rtt_ms, 0.05, mbit_per_s * 1.2, mbit_per_s).off(asked, 0)
    assert f"ms instead of {rtt_ms}" in Probe(rtt_ms * 0.8, 0.05, mbit_per_s, mbit_per_s).off(asked, 0.2)
    late = Probe(rtt_ms * 1.1 + 0.15, 9.0, mbit_per_s, mbit_per_s)
    assert f"ms instead of {rtt_ms}" in late.off(asked, 0.1)
    assert late.off(asked, 0.2) == ""


def test_of_several_tries_the_nearest_round_trip_and_the_nearest_rate_count() -> None:
    one, other = Probe(3.0, 0.2, 80.0, 101.0), Probe(2.0, 0.3, 99.0, 130.0)
    assert one.and_again(other, Limits(2, 100)) == Probe(2.0, 0.2, 99.0, 101.0)
    assert one.and_again(other, Limits(2, 0)) == Probe(2.0, 0.2, 99.0, 130.0)


def test_a_link_without_limits_is_never_off() -> None:
    assert Probe(7.0, 5.0, 1.0, 1.0).off(Limits(0, 0), 0) == ""


def test_an_answer_that_breaks_off_is_an_error() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        links.Caller(f"127.0.0.1:{listening.getsockname()[1]}") as caller,
    ):
        listening.accept()[0].close()
        with pytest.raises(OSError, match=r"in the middle of an answer|reset|Broken pipe"):
            caller.round_trip()


@pytest.fixture
def wired(made: Links) -> OverWire:
    if not isinstance(made, OverWire):
        pytest.skip("it has no wire")
    return made


@pytest.mark.long
@pytest.mark.alone(times=True)
@pytest.mark.parametrize("rtt_ms", [0.2, 1, 10, 50])
def test_a_wire_has_the_round_trip_that_was_asked_for_of_whatever_rate(wired: OverWire, rtt_ms: float) -> None:
    for mbit_per_s in (0, 1_000, 100):
        assert wired.measured(Limits(rtt_ms, mbit_per_s)).rtt_ms == pytest.approx(rtt_ms, rel=0.1)


@pytest.mark.long
def test_a_wire_that_is_gone_is_laid_again(wired: OverWire) -> None:
    former = wired.wire
    wired.lab.end(wire.NAME)
    until(wired.lab.dead)
    until(lambda: former.device not in devices())
    assert wired.revive() == [wire.NAME]
    assert wired.wire != former
    wired.measured(Limits(2, 0))  # raises Off where it is not as asked


def devices() -> set[str]:
    """Return the network devices, without those of Docker, whose containers may start and end meanwhile."""
    names = {path.name for path in Path("/sys/class/net").iterdir()}
    return {name for name in names if not name.startswith(("br-", "docker", "veth"))}


PARENT = """
import sys, time
from pathlib import Path
from harness.lab import links
from harness.lab.links import Limits
from harness.settings import Settings

with links.opened(Settings(state_dir=Path(sys.argv[1])), lambda line: None, with_wire=sys.argv[2] == "True") as made:
    made.measured(Limits(1, 100))
    print(made.over("//" + made.echo_address, Limits(1, 100))[2:], made.wire and made.wire.device, flush=True)
    time.sleep(60)
"""


@pytest.mark.long
@pytest.mark.parametrize("with_wire", [True, False], ids=["wire", "per connection"])
def test_links_end_with_their_process_also_when_it_is_killed_and_loopback_stays_as_it_was(
    folder: Path, with_wire: bool
) -> None:
    before = loopback()
    command = [sys.executable, "-c", PARENT, str(folder), str(with_wire)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        address, device = parent.stdout.readline().split()
        host, _, port = address.partition(":")
        assert listens(host, int(port))
        assert device == "None" or device in devices()
        assert loopback() == before
        os.kill(parent.pid, signal.SIGKILL)
    until(lambda: device not in devices())
    until(lambda: not listens(host, int(port)))
    assert loopback() == before


def loopback() -> list[str]:
    """The kernel's view of loopback: addresses, queue, routing rules, and the traffic allowed over other devices."""
    asked = ("ip address show lo", "tc qdisc show dev lo", "ip rule", "ip route show table local dev lo")
    said = [subprocess.run(one.split(), capture_output=True, text=True, check=False).stdout for one in asked]
    settings = [Path("/proc/sys/net/ipv4/conf", of, "route_localnet") for of in ("all", "default", "lo")]
    return said + [one.read_text() for one in settings if one.exists()]


def listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "value", "why"),
    [
        ("_LATENCY", "nonsense", "tc qdisc replace"),
        ("DELAY_BYTES", 0, "wire does not answer .* length"),
        ("TUN", "/nowhere", "it takes /nowhere"),
    ],
)
def test_what_the_kernel_refuses_leaves_links_that_limit_each_connection(
    what: str, value: object, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    before = devices()
    if wire.lacking():
        pytest.skip("no wire here")
    monkeypatch.setattr(wire, what, value)
    with links.opened(Settings(state_dir=tmp_path), print) as found:
        if isinstance(found, str):
            pytest.skip(found)
        assert isinstance(found, OverToxiproxy)
        assert re.search(why, found.no_wire)
        assert found.server.version.endswith("the rate of each connection")
        assert 2 < found.measured(Limits(2, 0)).rtt_ms < 4
        assert devices() <= before
        assert found.unavailable(Limits(2, 0)) is None
        assert "asked were 0.2, and there is no wire" in str(found.unavailable(Limits(0.2, 0)))
        assert "run the lab as root on Linux with ip and tc" in str(found.unavailable(Limits(0.2, 0)))


@pytest.mark.long
def test_a_wire_has_no_round_trip_that_is_shorter_than_its_own(wired: OverWire) -> None:
    assert "a link takes nearly 0.1 ms itself, asked was 0.01" in str(wired.unavailable(Limits(0.01, 0)))
    assert [wired.unavailable(Limits(rtt_ms, 0)) for rtt_ms in (0, 0.1, 0.2, 50)] == [None] * 4


@pytest.mark.long
def test_clients_in_the_namespace_talk_to_themselves_without_the_wire_and_reach_no_other_port(wired: OverWire) -> None:
    before = at_rest(wired)
    wired.wire.at_the_other_end(talk_to_oneself)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = other.getsockname()
        with pytest.raises(ConnectionRefusedError):
            wired.wire.at_the_other_end(lambda: socket.create_connection(address, timeout=1))
    assert wired.wire.bytes() == before


def at_rest(wired: OverWire) -> int:
    """Return how many bytes went over a wire, once earlier connections have ended: their last ones come late."""
    deadline, before, now = time.monotonic() + 30, -1, wired.wire.bytes()
    while now != before:
        assert time.monotonic() < deadline
        time.sleep(0.5)
        before, now = now, wired.wire.bytes()
    return now


def talk_to_oneself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        with socket.create_connection(own.getsockname(), timeout=1) as connection:
            connection.sendall(b"x")
            taken, _ = own.accept()
        with taken:
            assert taken.recv(1) == b"x"


@pytest.mark.long
def test_a_wire_takes_no_toxiproxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if wire.lacking():
        pytest.skip("no wire here")
    tmp_path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with links.opened(Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path), print) as found:
        assert isinstance(found, OverWire)


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
