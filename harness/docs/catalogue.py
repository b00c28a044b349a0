"""The catalogue as pages: an index with a line for each client, a page a client, and the kinds of values."""

import importlib
import importlib.util
import inspect
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from harness import registry
from harness.datasets.hostile.kind import Kind, Own
from harness.datasets.hostile.kinds import KINDS
from harness.docs.words import GENERATED, prose
from harness.fidelity.tables import held
from harness.model import LabError, Operation, Origin, Transport
from harness.report import fidelity
from harness.report.cells import marks
from harness.report.markdown import table
from harness.systems import SYSTEMS

_INDEX = """\
A transport moves a dataframe, and is one function of a client. Each client has a page with all of its transports;
`lab list 'GLOB'` prints a part of them, and `lab show ID` prints one as a complete script that runs.
"""
_LOSES = """\
What a transport is known to lose is listed with it, and how: † `changed` silently, or ‡ `refused` with an error (or the
call `hangs`). [Kinds of values](kinds.md) says what each of the words means. "Nothing" is said of a transport that
declares no loss; the tests hold each to what it declares.
"""
_KINDS = """\
The kinds of values that `lab verify` sends through every transport of a database. What a transport is known not to
bring through stands beside it in the [catalogue](catalogue.md): `changed` without a word, `refused` with an error, or
the call `hangs`.
"""
_ORIGINS = {
    Origin.LIMIT: "a bound: what the server or the machine alone can do",
    Origin.CONTROL: "an A/A control: it has to come out as a tie with the transport it repeats",
}


_LEFT = {
    "no": "the rows sent by then stay in the table",
    "per connection": "the rows of the other connections stay in the table",
}
_NOT_TRIED = "not tried: no server of the tests and of the reference runs has "


def index() -> str:
    """Return the list of all clients, by system, with the number of their transports by operation."""
    parts = [f"# Catalogue of transports\n\n{GENERATED}\n\n{_INDEX}"]
    for system, group in groupby(_by_client(), key=lambda of_client: of_client[0].system):
        clients = list(group)
        found = {entry.operation for entries in clients for entry in entries}
        operations = [operation for operation in Operation if operation in found]
        rows = (
            (
                f"[{entries[0].client}](catalogue/{name(entries[0])}.md)",
                prose(introduction(entries[0]).partition("\n")[0].partition(": http")[0].rstrip(".")),
                *(_count(entries, operation) for operation in operations),
            )
            for entries in clients
        )
        right = range(2, 2 + len(operations))
        parts.append(f"## {system}\n\n{table(('client', 'what it is', *operations), rows, right)}")
    parts.append(f"## What transports of databases may lose\n\n{_LOSES}")
    return "\n".join(parts)


def clients() -> Iterator[tuple[str, str]]:
    """Yield the name and text of each client's page."""
    for entries in _by_client():
        yield name(entries[0]), _page(entries)


def kinds() -> str:
    """Return the page of the kinds of values that transports may lose."""
    rows = table(
        ("kind", "what it is", "in databases"),
        ((f"`{kind.name}`", kind.meaning, "; ".join(_in_databases(kind))) for kind in KINDS.values()),
    )
    return f"# Kinds of values\n\n{GENERATED}\n\n{_KINDS}\n{rows}"


def name(entry: Transport) -> str:
    """Return how the page of a transport's client is called."""
    return f"{entry.system}-{entry.client}"


def introduction(entry: Transport) -> str:
    """Return what a client's folder, its `client.py` or its module says of it.

    Raises LabError where none of them says anything: whoever adds a client has to.
    """
    package = f"harness.transports.{entry.system}.{entry.client}"
    for module in (package, f"{package}.client"):
        found = importlib.util.find_spec(module) and inspect.getdoc(importlib.import_module(module))
        if found:
            return found
    raise LabError(
        f'{package}: expected a docstring that says what the client is, found none; write one into its "__init__.py"'
    )


def _by_client() -> Iterator[list[Transport]]:
    entries = sorted(registry.catalogue().values(), key=lambda entry: (entry.system, entry.client))
    for _, group in groupby(entries, key=name):
        yield list(group)


def _count(entries: Iterable[Transport], operation: Operation) -> str:
    return str(sum(entry.operation == operation for entry in entries) or "")


def _page(entries: Sequence[Transport]) -> str:
    first = entries[0]
    head = f"# {first.system}: {first.client}\n\n{GENERATED} [All clients](../catalogue.md).\n"
    parts = [head, f"{prose(introduction(first))}\n"]
    for operation in Operation:
        if chosen := [entry for entry in entries if entry.operation == operation]:
            parts.append(f"## {operation} ({len(chosen)})\n")
            parts += [_section(entry) for entry in chosen]
    return "\n".join(parts)


def _section(entry: Transport) -> str:
    """Return what is known of one transport: its docstring, and what it declares."""
    said = inspect.getdoc(entry.function) if entry.origin is not Origin.CONTROL else entry.summary
    facts = "".join(f"- {label}: {text}\n" for label, text in _facts(entry) if text)
    return f"### {entry.id.rpartition('.')[2]}\n\n`{entry.id}`\n\n{prose(said or '')}\n\n{facts}"


def _facts(entry: Transport) -> Iterator[tuple[str, str]]:
    yield "frame", entry.frame
    yield "path", entry.path
    yield "payload", entry.payload
    yield "published as", entry.published or ""
    yield "origin", _ORIGINS.get(entry.origin, "")
    yield "needs", ", ".join(f"`{need}`" for need in entry.needs)
    yield "pinned settings", ", ".join(f"`{setting}={value}`" for setting, value in entry.settings.items())
    yield "[loses](../kinds.md)", _loses(entry)
    lacking = SYSTEMS[entry.system].fixes if entry.system in SYSTEMS else ()
    yield "in another time zone", "".join(_NOT_TRIED + need for need in entry.needs if need in lacking)
    yield "when a connection breaks", _LEFT.get(entry.atomic, "")


def _loses(entry: Transport) -> str:
    """Say what a transport of a frame is declared to lose, with the marks of that, or that it is nothing."""
    if entry.lossy:
        return f"{marks(entry.lossy)} {fidelity.loses(entry.lossy)}"
    return "nothing that `lab verify` tries" if entry.moves_a_frame and entry.system in SYSTEMS else ""


def _in_databases(kind: Kind) -> Iterator[str]:
    """Say of each database what is its own about a kind: types of columns, what it holds otherwise or not at all."""
    for system in SYSTEMS.values():
        own = system.hostile.OWN.get(kind.name, Own())
        if of_system := held(kind, system.name):
            types = [f"`{of_system.types[column]}`" for column in {**kind.into, **kind.beyond, **own.types}]
            refused = own.forbidden and f"refused, as {own.forbidden}"
            may_refuse = own.may_refuse and f"may be refused, as {own.may_refuse}"
            said = [*types, own.remark, refused, may_refuse]
        else:
            said = [f"none, as {own.without}" if own.without else "none"]
        if any(said):
            yield f"{system.title}: {', '.join(filter(None, said))}"
