"""Phases of a call: the events of each, and sums of the parts of one phase, also where one ends with an error."""

from contextlib import suppress
from types import SimpleNamespace

import pytest

from harness import registry


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets; no phase of another test is left."""
    now = [0.0]
    monkeypatch.setattr(registry, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    registry.forget_phases()
    yield now
    registry.forget_phases()


def test_parts_of_a_phase_add_up_in_the_order_in_which_phases_first_ended_and_what_is_forgotten_does_not_count(clock):
    for name, at in (("encode", 1.0), ("send", 3.0), ("encode", 7.0)):
        with registry.phase(name):
            clock[0] = at
    assert list(registry.phase_seconds().items()) == [("encode", 1.0 + 4.0), ("send", 2.0)]
    registry.forget_phases()
    assert registry.phase_seconds() == {}


def test_a_phase_that_overlaps_another_counts_in_both_and_one_that_fails_counts(clock):
    with suppress(KeyError), registry.phase("receive"):
        clock[0] = 1.0
        with registry.phase("decode"):
            clock[0] = 3.0
            raise KeyError
    assert registry.phase_seconds() == {"decode": 2.0, "receive": 3.0}
