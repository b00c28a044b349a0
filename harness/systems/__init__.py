"""The databases, a room each: what it says of itself (`SYSTEM`), its reference client, tables, hostile values, server.

A room that stands in this folder is a system of the lab; nothing else names them.
"""

from __future__ import annotations

import importlib
import pkgutil

from harness.systems.system import System


def _rooms() -> dict[str, System]:
    found = [
        importlib.import_module(f"{__name__}.{module.name}").SYSTEM
        for module in pkgutil.iter_modules(__path__)
        if module.ispkg
    ]
    return {system.name: system for system in sorted(found, key=lambda system: system.place)}


SYSTEMS = _rooms()
