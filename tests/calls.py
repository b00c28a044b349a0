"""Calling a transport in the process of a test, against the embedded lab."""

import asyncio
from typing import Any

from harness import registry
from harness.lab.embedded import EmbeddedLab
from harness.model import Transport
from harness.systems import SYSTEMS


def call(entry: Transport, lab: EmbeddedLab, *arguments: Any) -> Any:
    """Call a transport on a new connection to a lab, in this process."""
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, lab.endpoints[entry.endpoint])
    return run(entry, uri, *arguments)


def run(entry: Transport, uri: str, *arguments: Any) -> Any:
    """Call a transport on a new connection to an address, in this process."""

    async def in_a_loop() -> Any:
        async with registry.connect_of(entry)(uri) as connection:
            return await entry.function(connection, *arguments)

    if entry.style == "async":
        return asyncio.run(in_a_loop())
    with registry.connect_of(entry)(uri) as connection:
        return entry.function(connection, *arguments)
