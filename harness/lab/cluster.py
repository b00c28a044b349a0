"""Workers of engines: of our own on this machine, or those of a cluster that is there already."""

from __future__ import annotations

from harness.model import Transport, Workers
from harness.settings import Settings


def of(settings: Settings) -> object | None:
    return None


def workers(settings: Settings, entry: Transport, number: int, uri: str, folder: str) -> Workers:
    return Workers(number, uri, "", folder)
