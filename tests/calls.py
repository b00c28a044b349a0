"""Calling a transport in the process of a test, and a test of each of several transports."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from harness import registry
from harness.lab.embedded import EmbeddedLab
from harness.model import Transport
from harness.systems import SYSTEMS


def each(entries: Iterable[Transport]) -> pytest.MarkDecorator:
    """Make a test of one transport, `entry`, a test of each of these."""
    return pytest.mark.parametrize("entry", list(entries), ids=lambda entry: entry.id)


def uri_of(entry: Transport, lab: EmbeddedLab) -> str:
    """Return the address that a transport gets of the embedded lab."""
    return SYSTEMS[entry.system].client.transport_uri(entry.endpoint, lab.endpoints[entry.endpoint])


def call(entry: Transport, lab: EmbeddedLab, *arguments: Any) -> Any:
    """Call a transport on a new connection to the embedded lab, in this process."""
    return called(entry, uri_of(entry, lab), *arguments)


def called(entry: Transport, uri: str, *arguments: Any, then: Callable[[Any], Any] = lambda found: found) -> Any:
    """Call a transport on a new connection, in this process; `then` is called before the connection is closed."""

    async def in_a_loop() -> Any:
        async with registry.connect_of(entry)(uri) as connection:
            return then(await entry.function(connection, *arguments))

    if entry.style == "async":
        return asyncio.run(in_a_loop())
    with registry.connect_of(entry)(uri) as connection:
        return then(entry.function(connection, *arguments))
