"""Reference connections that reach no server, wait for one or are given up: one line, in time, never during a call."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import address
from harness.lab import reference
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import NoAnswer, Reference, within
from harness.model import LabError
from harness.systems import SYSTEMS
from harness.systems.postgres import client as postgres
from tests.commands import one_line
from tests.waiting import until

# Addresses that lead to a server, with their databases; files have none.
SERVED = {address.name: name for name, of in SYSTEMS.items() for address in of.addresses if address.port}


def test_a_wrong_password_is_reported_without_the_password(embedded_lab: EmbeddedLab) -> None:
    for name, system in SERVED.items():
        uri = embedded_lab.endpoints[name]
        user, _, rest = uri.partition("://")[2].partition(":")
        wrong = f"{uri.partition('://')[0]}://{user}:wr0ng-secret@{rest.partition('@')[2]}"
        with one_line(r"(?i)password|authentication") as caught:
            SYSTEMS[system].client.check(embedded_lab.endpoints | {name: wrong})
        assert "wr0ng-secret" not in str(caught.value)


@pytest.mark.parametrize("name", SERVED)
def test_an_unreachable_server_is_reported_at_once_with_host_and_port(name: str, embedded_lab: EmbeddedLab) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        port = taken.getsockname()[1]
        scheme = embedded_lab.endpoints[name].partition("://")[0]
        endpoints = embedded_lab.endpoints | {name: f"{scheme}://lab:secret@127.0.0.1:{port}/"}
        with pytest.raises(LabError, match=f"cannot reach 127.0.0.1:{port}"):
            SYSTEMS[SERVED[name]].client.check(endpoints)


def test_a_server_that_accepts_and_says_nothing_is_given_up(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "CONNECT_SECONDS", 2)
    with socket.socket() as silent, ThreadPoolExecutor() as at_once:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = f"127.0.0.1:{silent.getsockname()[1]}"

        def given_up(name: str) -> float:
            uri = f"{embedded_lab.endpoints[name].partition('://')[0]}://lab:secret@{place}/"
            started = time.monotonic()
            with pytest.raises(LabError, match=place):
                SYSTEMS[SERVED[name]].client.check(embedded_lab.endpoints | {name: uri})
            return time.monotonic() - started

        assert max(at_once.map(given_up, SERVED)) < 60  # clients alone would wait for ever


def test_the_servers_lock_names_the_run_that_holds_it(embedded_lab: EmbeddedLab) -> None:
    first, second = (postgres.open_connection(embedded_lab.endpoints) for _ in range(2))
    assert postgres.hold(first, "run-1") == ""
    assert postgres.hold(second, "run-2") == "run-1"
    first.close()
    until(lambda: postgres.hold(second, "run-2") == "")  # the server ends the process shortly after the good-bye
    second.close()


def test_a_client_that_tries_again_over_another_connection_is_cut_again():
    ends, used = [socket.socketpair() for _ in range(3)], []

    def persistent():
        for mine, _ in ends:
            used.append(mine)
            mine.recv(1)

    with pytest.raises(NoAnswer):
        within(0.2, "made up", "asking", persistent, lambda: used[-1].shutdown(socket.SHUT_RDWR))
    assert len(used) == 3
    assert not [thread for thread in threading.enumerate() if thread.name == "made up asking"]


def test_a_connection_is_not_closed_under_a_call_that_goes_on(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing it there crashes clients in C, and the lab with them."""
    monkeypatch.setattr(reference, "_CUT_SECONDS", 0.1)
    one = Reference(SYSTEMS["postgres"], embedded_lab.endpoints, 0.2)
    one.greet()
    closed: list[bool] = []
    monkeypatch.setattr(one._connection, "close", lambda: closed.append(True))
    goes_on, go = one._connection, threading.Event()
    with pytest.raises(NoAnswer, match="did not answer within 0 s"):
        one.ask(lambda _: go.wait(30))
    one.close()
    assert closed == []
    assert goes_on in reference._ABANDONED
    go.set()
    one.greet()  # over a new one
    one.close()


@pytest.mark.long
def test_a_connection_whose_calls_have_answered_is_closed(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the thread of the last call has answered but has not ended yet."""
    before = list(reference._ABANDONED)
    for _ in range(20):
        one = Reference(SYSTEMS["postgres"], embedded_lab.endpoints, 20.0)
        one.greet()
        closed: list[bool] = []
        close = one._connection.close
        monkeypatch.setattr(one._connection, "close", lambda closed=closed, close=close: closed.append(close() is None))
        one.close()
        assert closed == [True]
    assert before == reference._ABANDONED


def test_a_call_whose_thread_had_only_begun_when_a_signal_came_is_not_made(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is then closed; during a call, this crashed the lab."""
    one = Reference(SYSTEMS["postgres"], embedded_lab.endpoints, 20.0)
    one.greet()
    begun: list[threading.Thread] = []
    made: list[bool] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if not begun:
            begun.append(thread)
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.ask(lambda _: made.append(True))
    begun[0].join(60)
    assert not begun[0].is_alive()
    assert made == []
    assert one._connection is None
