"""A wire to the servers of the embedded lab: what it is as a whole, what it leaves alone, and when there is none."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.lab import links, wire
from harness.lab.limits import Limits
from harness.lab.links import OverToxiproxy, OverWire
from harness.settings import Settings
from tests.waiting import until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverWire]:
    folder = tmp_path_factory.mktemp("wire")
    folder.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch, links.opened(Settings(state_dir=folder), print) as found:
        patch.setattr(links, "_TRIES", 100)  # other tests keep the cores busy
        if not isinstance(found, OverWire):
            pytest.skip(found if isinstance(found, str) else getattr(found, "no_wire", ""))
        yield found


@pytest.mark.alone(times=True)
@pytest.mark.parametrize("rtt_ms", [0.2, 1, 10, 50])
def test_a_wire_has_the_round_trip_that_was_asked_for_of_whatever_rate(made: OverWire, rtt_ms: float) -> None:
    for mbit_per_s in (0, 1_000, 100):
        assert made.measured(Limits(rtt_ms, mbit_per_s)).rtt_ms == pytest.approx(rtt_ms, rel=0.1)


def test_a_wire_that_is_gone_is_laid_again(made: OverWire) -> None:
    former = made.wire
    made.lab.end(wire.NAME)
    until(made.dead)
    until(lambda: former.device not in devices())
    assert made.revive() == [wire.NAME]
    assert made.wire != former
    made.measured(Limits(2, 0))  # raises Off where it is not as asked


def devices() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


PARENT = """
import sys, time
from pathlib import Path
from harness.lab import links
from harness.lab.limits import Limits
from harness.settings import Settings

with links.opened(Settings(state_dir=Path(sys.argv[1])), lambda line: None, with_wire=sys.argv[2] == "True") as made:
    made.measured(Limits(1, 100))
    print(made.over("//" + made.echo_address, Limits(1, 100))[2:], made.wire and made.wire.device, flush=True)
    time.sleep(60)
"""


@pytest.mark.process
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
    """What the kernel says of it: its addresses and queue, the rules of routing, and what may go over other devices."""
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


@pytest.mark.parametrize(
    ("what", "value", "why"),
    [
        ("_LATENCY", "nonsense", "tc qdisc replace"),
        ("DELAY_BYTES", 0, "wire: expected it to answer .* length"),
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


def test_a_wire_has_no_round_trip_that_is_shorter_than_its_own(made: OverWire) -> None:
    assert "a link takes nearly 0.1 ms itself, asked was 0.01" in str(made.unavailable(Limits(0.01, 0)))
    assert [made.unavailable(Limits(rtt_ms, 0)) for rtt_ms in (0, 0.1, 0.2, 50)] == [None] * 4


def test_clients_in_the_namespace_talk_to_themselves_without_the_wire_and_reach_no_other_port(made: OverWire) -> None:
    before = at_rest(made)
    made.wire.at_the_other_end(talk_to_oneself)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = other.getsockname()
        with pytest.raises(ConnectionRefusedError):
            made.wire.at_the_other_end(lambda: socket.create_connection(address, timeout=1))
    assert made.wire.bytes() == before


def at_rest(made: OverWire) -> int:
    """Return how many bytes went over a wire, once earlier connections have ended: their last ones come late."""
    deadline, before, now = time.monotonic() + 30, -1, made.wire.bytes()
    while now != before:
        assert time.monotonic() < deadline
        time.sleep(0.5)
        before, now = now, made.wire.bytes()
    return now


def talk_to_oneself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        with socket.create_connection(own.getsockname(), timeout=1) as connection:
            connection.sendall(b"x")
            taken, _ = own.accept()
        with taken:
            assert taken.recv(1) == b"x"


def test_a_wire_takes_no_toxiproxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if wire.lacking():
        pytest.skip("no wire here")
    tmp_path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with links.opened(Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path), print) as found:
        assert isinstance(found, OverWire)
