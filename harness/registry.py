"""The catalogue: the @transport decorator, loading every transport module, and selection by glob."""

import difflib
import fnmatch
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from harness.model import CONTROL, LabError, Operation, Origin, Transport
from harness.phases import phase

__all__ = ["Unsupported", "catalogue", "connect_of", "one", "phase", "select", "transport"]


class Unsupported(Exception):
    """Raised by a transport that cannot do a case at all; its text is the reason."""


_PACKAGE = "harness.transports"
_CATALOGUE: dict[str, Transport] = {}


def transport(
    operation: str,
    *,
    frame: str = "",
    path: str,
    payload: str,
    requires: Sequence[str] = (),
    needs: Sequence[str] = (),
    settings: dict[str, str] | None = None,
    published: str | None = None,
    origin: str | None = None,
    lossy: dict[str, str] | None = None,
    control: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as one way to move a dataframe; the function itself is returned unchanged.

    The module around it has `connect`, a (sync or async) context manager that is given an address (databases) or a
    folder (files, stores) and yields what the functions are called with first. What follows depends on the operation:
    `write(connection, frame, table)`, `read(connection, table) -> frame`, `scan(connection, files) -> number of rows`,
    `transform(connection, source, destination)`, `job(connection, **arguments) -> answer`, and of stores
    `create(store, data)`, `read(store) -> rows`, `query(store) -> rows`. Bounds are `call(connection)`,
    `copy(connection, data) -> data`, `write(connection, source, table)` from one table into another (frame `table`) and
    `read(connection, table) -> number of rows` thrown away (no frame).
    A module may name its address with `ENDPOINT` (default: the name of its system folder) and its client with `CLIENT`
    (default: its own name).
    `settings` are the server settings that the transport pins and that change its result; they are recorded with every
    run.
    `lossy` says how the kinds of values fare that are known not to come through: `{"changed": "nulls nan", "refused":
    "infinity"}`. The tests expect exactly these to fail, and tables and docs name them.
    With `control` the function is registered a second time, under its id with `_control` at the end: an A/A pair, of
    which every report says whether it came out as a tie.
    Raises ValueError for an unknown operation, an id that is already taken, or a kind of value that fares in two ways.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        system, client = function.__module__.split(".")[-2:]
        entry = Transport(
            id=f"{system}.{client}.{function.__name__}",
            system=system,
            client=function.__globals__.get("CLIENT", client),
            operation=Operation(operation),
            frame=frame,
            path=path,
            payload=payload,
            style="async" if inspect.iscoroutinefunction(function) else "sync",
            origin=Origin(origin) if origin else Origin.PUBLISHED if published else Origin.BEYOND,
            published=published,
            endpoint=function.__globals__.get("ENDPOINT", system),
            requires=tuple(requires),
            needs=tuple(needs),
            settings=dict(settings or {}),
            lossy=_fates(lossy or {}),
            summary=(inspect.getdoc(function) or "").partition("\n")[0],
            function=function,
        )
        _add(entry)
        if control:
            _add(_control_of(entry))
        return function

    return register


def _add(entry: Transport) -> None:
    if entry.id in _CATALOGUE:
        raise ValueError(f"transport {entry.id} is registered twice")
    _CATALOGUE[entry.id] = entry


def _control_of(entry: Transport) -> Transport:
    summary = f"A/A control: the function of {entry.id} again, under a second id."
    return replace(entry, id=f"{entry.id}{CONTROL}", origin=Origin.CONTROL, published=None, summary=summary)


def _fates(lossy: dict[str, str]) -> dict[str, str]:
    """Return how each kind of value fares, from the kinds that fare in each way."""
    pairs = [(kind, fate) for fate, kinds in lossy.items() for kind in kinds.split()]
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"expected every kind of value once in lossy, found {lossy}")
    return dict(pairs)


def catalogue() -> dict[str, Transport]:
    """Return every transport by id, in the order of their ids; imports all transport modules, but no client."""
    package = importlib.import_module(_PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, prefix=f"{_PACKAGE}."):
        if not module.ispkg:
            importlib.import_module(module.name)
    return dict(sorted(_CATALOGUE.items()))


def one(transport_id: str) -> Transport:
    """Return the transport with this id, importing its module only. Raises LabError naming the nearest id."""
    module = f"{_PACKAGE}.{transport_id.rpartition('.')[0]}"
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not module.startswith(error.name or "-"):
            raise
    if transport_id not in _CATALOGUE:
        raise _unknown(transport_id, catalogue())
    return _CATALOGUE[transport_id]


def select(pattern: str = "*", among: str = "*") -> list[Transport]:
    """Return the transports whose id matches a glob, or one of several separated by commas, in the order of their ids.

    `among` (globs likewise) says which transports there are to choose from. Raises LabError when a pattern matches
    none of them, naming the nearest id.
    """
    entries = {name: entry for name, entry in catalogue().items() if _matches(name, among)}
    chosen: set[str] = set()
    for part in (piece.strip() for piece in pattern.split(",")):
        matches = fnmatch.filter(entries, part) if part else []
        if not matches:
            raise _unknown(part, entries)
        chosen.update(matches)
    return [entry for name, entry in entries.items() if name in chosen]


def _matches(name: str, patterns: str) -> bool:
    return any(fnmatch.fnmatchcase(name, part.strip()) for part in patterns.split(","))


def connect_of(entry: Transport) -> Callable[..., Any]:
    """Return the `connect` function that stands beside the transport in its module."""
    return getattr(sys.modules[entry.function.__module__], "connect")  # noqa: B009 - the name is the contract


def _unknown(pattern: str, among: Iterable[str]) -> LabError:
    nearest = difflib.get_close_matches(pattern.replace("*", ""), list(among), n=1, cutoff=0.0)
    hint = f'; nearest: "{nearest[0]}"' if nearest else ""
    return LabError(f'no transport matches "{pattern}"{hint}; run "lab list" for all of them')
