"""The databases, one package each: description (`SYSTEM`), reference client, tables, hostile values, server.

Every package in this folder is a system of the lab; no other code names them.
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
