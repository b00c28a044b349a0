"""The catalogue: the @transport decorator, loading every transport module, and selection by glob."""

import fnmatch
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.model import ATOMIC, CONTROL, LabError, Operation, Origin, Transport, did_you_mean
from harness.registry.imports import imported_by, load
from harness.registry.losses import read_losses
from harness.registry.phases import forget_phases, phase, phase_seconds

__all__ = [
    "FRAMES",
    "Unsupported",
    "catalogue",
    "client_of",
    "connect_of",
    "forget_phases",
    "imported_by",
    "is_unsupported",
    "load",
    "losses_file",
    "one",
    "phase",
    "phase_seconds",
    "registered",
    "select",
    "transport",
]


Function = Callable[..., Any]  # of a transport: it takes a connection first


class Unsupported(Exception):
    """Raised by a transport that cannot do a case at all; its message is the reason."""


def is_unsupported(error: BaseException) -> bool:
    """Return whether an error means that a transport, or our library arrow-wire, cannot do a case at all."""
    wire = sys.modules.get("arrow_wire")
    return isinstance(error, Unsupported) or (wire is not None and isinstance(error, wire.UnsupportedType))


_PACKAGE = "harness.transports"
FRAMES = ("pandas", "polars")
_LIBRARIES = (*FRAMES, "pyarrow")
_CATALOGUE: dict[str, Callable[[], Transport]] = {}


def transport(
    path: str,
    payload: str,
    *,
    operation: str = "",
    frame: str = "",
    requires: Sequence[str] = (),
    needs: Sequence[str] = (),
    settings: dict[str, str] | None = None,
    published: str | None = None,
    origin: str | None = None,
    atomic: str = "",
    control: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as a transport of a dataframe; the function itself is returned unchanged.

    Its id is `<system>.<client>.<function>`: the folder of the system, the module or folder of the client in it, and
    the function. The name of a module within a client's folder is not part of the id. `path` is the route of the data,
    and `payload` is their form.

    The transport's module, otherwise `client.py` in its client's folder, has `connect`, a (sync or async) context
    manager. It gets an address (databases) or a folder (files, stores) and yields the functions' first argument.
    `connect` of a transport that needs an engine's workers also gets these: `connect(uri, workers)`. Both modules may
    name their address with `ENDPOINT` (default: the name of the system's folder).

    `operation` is the first word of the function's name, and `frame` of a read or a write the second, if that is
    `pandas` or `polars`. Give them only if the name does not say them. The other arguments depend on the operation:

    - `write(connection, frame, table)`
    - `read(connection, table) -> frame`
    - `load(connection, source, table)` from a Parquet file
    - `unload(connection, table, destination)` into an empty folder for Parquet files
    - `scan(connection, files) -> number of rows`
    - `transform(connection, source, destination)`
    - `job(connection, **arguments) -> answer`
    - stores: `create(store, data)`, `read(store) -> rows`, `query(store) -> rows`
    - bounds: `call(connection)`, `copy(connection, data) -> data`, `write(connection, source, table)` from one table
      into another (frame `table`), `read(connection, table) -> number of rows`, which are discarded (no frame)

    Imports of the function, of `connect` and of all that they call run before the timing, as does that of the frame's
    library. `requires` are further modules, which these packages import only when they are used. `settings` are the
    server settings that the transport pins and that change its result; they are recorded with every run. `atomic` says
    that a write leaves rows if a connection breaks: "no" or "per connection". The tests break one connection of each
    write. With `control` the function is registered a second time, under its id with the suffix `_control`. Every
    report says whether this A/A pair tied.

    Which kinds of values do not arrive unchanged is in the system's `losses.json` (see `harness.registry.losses`).

    Raises ValueError for an unknown operation, an id that is already taken, or another `atomic`.
    """

    def register(function: Function) -> Function:
        system, client = function.__module__.removeprefix(f"{_PACKAGE}.").split(".")[:2]
        first, second, *_ = f"{function.__name__}_".split("_")
        does = Operation(operation or first)
        named = second if does in (Operation.READ, Operation.WRITE) and second in FRAMES else ""
        entry = Transport(
            id=f"{system}.{client}.{function.__name__}",
            system=system,
            client=client,
            operation=does,
            frame=frame or named,
            path=path,
            payload=payload,
            style="async" if inspect.iscoroutinefunction(function) else "sync",
            origin=Origin(origin) if origin else Origin.PUBLISHED if published else Origin.BEYOND,
            published=published,
            endpoint=_of_module_or_client(function, "ENDPOINT") or system,
            requires=tuple(requires),
            needs=tuple(needs),
            settings=dict(settings or {}),
            lossy={},
            atomic=atomic,
            summary=(inspect.getdoc(function) or "").partition("\n")[0],
            function=function,
        )
        entry = replace(entry, atomic=_atomic(entry))
        _add(entry)
        if control:
            _add(_control_of(entry))
        return function

    return register


def _add(entry: Transport) -> None:
    if entry.id in _CATALOGUE:
        raise ValueError(f"transport {entry.id} is registered twice")
    _CATALOGUE[entry.id] = cache(lambda: _complete(entry))


def _complete(entry: Transport) -> Transport:
    """Return a transport of an imported module, with its complete requirements and its known losses."""
    library = {entry.frame} & {*_LIBRARIES}
    requires = {*entry.requires, *library, *imported_by(entry.function, connect_of(entry))}
    losses = read_losses(losses_file(entry.system)).get(entry.id.removesuffix(CONTROL), {})
    return replace(entry, requires=tuple(sorted(requires)), lossy=dict(losses))


def losses_file(system: str) -> Path:
    """Return the path of the known losses of a system's transports."""
    return Path(importlib.import_module(f"{_PACKAGE}.{system}").__path__[0]) / "losses.json"


def _control_of(entry: Transport) -> Transport:
    summary = f"A/A control: the function of {entry.id} again, under a second id."
    return replace(entry, id=f"{entry.id}{CONTROL}", origin=Origin.CONTROL, published=None, summary=summary)


def _atomic(entry: Transport) -> str:
    """Return the rows that a broken-off write of a frame leaves: nothing, unless declared otherwise."""
    if entry.atomic and entry.atomic not in ATOMIC:
        raise ValueError(f"atomic={entry.atomic!r}: choose from {', '.join(ATOMIC)}")
    return entry.atomic or ("yes" if entry.operation is Operation.WRITE and entry.moves_a_frame else "")


def catalogue() -> dict[str, Transport]:
    """Return every transport by id, in order; imports all transport modules, but no client."""
    _import_all()
    return registered()


def _import_all() -> None:
    package = importlib.import_module(_PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, prefix=f"{_PACKAGE}."):
        if not module.ispkg:
            importlib.import_module(module.name)


def registered() -> dict[str, Transport]:
    """Return the transports of the modules imported so far, by id, in order."""
    return {name: complete() for name, complete in sorted(_CATALOGUE.items())}


def one(transport_id: str, module: str = "") -> Transport:
    """Return the transport with this id. Raises LabError naming the nearest id.

    Only its `module` is imported or, if the caller does not know it, the modules of its client.
    """
    for name in [module] if module else _modules(transport_id):
        importlib.import_module(name)
    if transport_id not in _CATALOGUE:
        _import_all()
        raise _unknown(transport_id, sorted(_CATALOGUE))
    return _CATALOGUE[transport_id]()


def _modules(transport_id: str) -> list[str]:
    """Return the modules of a transport's client; empty without such a client."""
    client = f"{_PACKAGE}.{transport_id.rpartition('.')[0]}"
    try:
        found = importlib.import_module(client)
    except ModuleNotFoundError as error:
        if not client.startswith(error.name or "-"):
            raise
        return []
    return [f"{client}.{module.name}" for module in pkgutil.iter_modules(getattr(found, "__path__", ()))]


def select(pattern: str = "*", among: str = "*") -> list[Transport]:
    """Return the transports whose id matches a glob, or one of several comma-separated globs, in the order of ids.

    `among` (globs as well) limits the transports to choose from. Raises LabError, naming the nearest id, if a pattern
    matches none of them.
    """
    _import_all()
    names = [name for name in sorted(_CATALOGUE) if _matches(name, among)]
    chosen: set[str] = set()
    for part in (piece.strip() for piece in pattern.split(",")):
        matches = [name for name in names if part and _matches(name, part)]
        if not matches:
            raise _unknown(part, names)
        chosen.update(matches)
    return [_CATALOGUE[name]() for name in sorted(chosen)]


def _matches(name: str, patterns: str) -> bool:
    return bool(_globs(patterns).match(name))


@cache
def _globs(patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(part.strip()) for part in patterns.split(",")))


def connect_of(entry: Transport) -> Function:
    """Return the `connect` of a transport: its module's, otherwise its client folder's."""
    connect: Function = _of_module_or_client(entry.function, "connect")
    return connect


def _of_module_or_client(function: Function, name: str) -> Any:
    """Return a name's value in a transport's module, otherwise in its client folder's `client.py`, otherwise None."""
    client = client_of(function.__module__)
    if name in function.__globals__ or not client:
        return function.__globals__.get(name)
    return getattr(importlib.import_module(client), name, None)


def client_of(module: str) -> str:
    """Return the module `client` of the folder with a client's module, or None without one."""
    folder = module.rpartition(".")[0]
    inside = module.startswith(f"{_PACKAGE}.") and folder.count(".") > _PACKAGE.count(".") + 1
    return f"{folder}.client" if inside and importlib.util.find_spec(f"{folder}.client") else ""


def _unknown(pattern: str, among: Iterable[str]) -> LabError:
    """Report an unknown transport name: which names contain it, or the one that was probably meant."""
    word, names = pattern.strip("*"), list(among)
    if having := [name for name in names if word and word in name]:
        count = f"{len(having)} transports have" if len(having) > 1 else f"{having[0]} has"
        return LabError(f"no transport \"{pattern}\"; {count} it in the name: lab list '*{word}*'")
    globs = {f"{name.rsplit('.', parts)[0]}.*" for name in names for parts in (1, 2)}
    return LabError(
        f'no transport "{pattern}".{did_you_mean(word, [*names, *sorted(globs)])} lab list prints all of them'
    )
