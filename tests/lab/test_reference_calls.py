"""A reference connection that a call would not leave: it is given up, and never closed under that call."""

import threading

import pytest

from harness.lab import reference
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import NoAnswer, Reference
from harness.systems import SYSTEMS


def test_a_connection_is_not_closed_under_a_call_that_goes_on(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To close it there crashes clients in C, and the lab with them."""
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
    """Also where the thread of the last call has answered and not ended yet."""
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
    """The connection is closed then, which under a call crashed the lab."""
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
