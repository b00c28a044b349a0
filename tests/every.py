"""One test of a rule that holds for each of many things: each thing that breaks it is a separate failure."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def every(things: Iterable[Any], name: Callable[[Any], str] = lambda thing: thing.id) -> Callable[[Any], Any]:
    """Make a test of a rule, which takes one thing; `name` says how a thing is called in a failure."""
    checked = list(things)

    def of(rule: Callable[[Any], None]) -> Callable[[pytest.Subtests], None]:
        def test(subtests: pytest.Subtests) -> None:
            assert checked, "expected something to hold the rule against, found nothing"
            for thing in checked:
                with subtests.test(name(thing)):
                    rule(thing)

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        return test

    return of
