"""The catalogue as pages: an index with a line for each client, a page per client, and the kinds of values."""

import ast
import importlib
import importlib.util
import inspect
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby

from harness import registry
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.hostile.kind import Kind, Own
from harness.docs import readme, reference
from harness.docs.tables import COMMENT, prose
from harness.fidelity.tables import held
from harness.lab.packages import NOT_ON_PYPI, asked_for, packages_of
from harness.model import LabError, Operation, Origin, Transport
from harness.report import fidelity
from harness.report.answers import competing, defaults_among
from harness.report.figures import loss_marks, megabytes, ranged, significant
from harness.report.markdown import table
from harness.report.summary import Summary, factors
from harness.systems import SYSTEMS

_INDEX = """\
A transport moves a dataframe, and is one function of a client. Each client has a page with the code of all its
transports. `lab list 'GLOB'` prints a part of them, and `lab show ID` prints one as a complete script.
"""
_LOSES = """\
Each page lists the kinds of values that a transport is known to lose: † `changed` silently, ‡ `refused` with an error,
or the call `hangs`. [Kinds of values](reference/values.md) explains each kind. A transport with "nothing" declares no
loss, and the tests hold each to its declarations.
"""
_ALL = """\
## All that the reference run measured

{figures}
[The whole report](../results/reference/{suite}/report.md) has the conditions.
"""
_KINDS = """\
`lab verify` sends these kinds of values through every transport of a database. The [catalogue](../catalogue.md) lists
those that a transport is known to lose: `changed` silently, `refused` with an error, or the call `hangs`.
"""
_ORIGINS = {
    Origin.LIMIT: "a bound: what the server or the machine alone can do",
    Origin.CONTROL: "an A/A control: it has to come out as a tie with the transport it repeats",
}


_LEFT = {
    "no": "the rows sent by then stay in the table",
    "per connection": "the rows of the other connections stay in the table",
}
_MEASURED = """\
## In the reference run

{figures}
[All transports](../catalogue.md#all-that-the-reference-run-measured).
"""
_FIGURES = """\
Median seconds of {rows:,} rows, the fastest first. The factor is how many times as fast as what most code does.
† changes some kinds of values silently, ‡ refuses some, and "loses" counts these kinds."""
_CODE = """\
<details markdown data-search-exclude>
<summary>Code; <code>lab show {id}</code> prints it as a script</summary>

```python
{code}
```

</details>
"""
_Measured = list[tuple[Summary, Summary | None]]  # cases, each with the default transport of its cell
_TESTED = "by the Compose check alone, if the server has {}: all kinds of values, also in another time zone"


def index() -> str:
    """Return the list of all clients, by system, with the number of their transports by operation."""
    parts = [f"# Catalogue of transports\n\n{COMMENT}\n\n{_INDEX}"]
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
    parts.append(_ALL.format(figures=_said(_measured()), suite=readme.SUITE))
    parts.append(_table(_measured(), "catalogue/{}.md#{}", of_database=False))
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
    return f"# Kinds of values\n\n{COMMENT}\n\n{_KINDS}\n{rows}"


def name(entry: Transport) -> str:
    """Return the name of the page of a transport's client."""
    return f"{entry.system}-{entry.client}"


def introduction(entry: Transport) -> str:
    """Return the docstring of a client's folder, its `client.py` or its module.

    Raises LabError if none of them has a docstring, which a new client must add.
    """
    package = f"harness.transports.{entry.system}.{entry.client}"
    for module in (package, f"{package}.client"):
        found = importlib.util.find_spec(module) and inspect.getdoc(importlib.import_module(module))
        if found:
            return found
    raise LabError(f'{package}: no docstring describes the client; write one into its "__init__.py"')


def _by_client() -> Iterator[list[Transport]]:
    entries = sorted(registry.catalogue().values(), key=lambda entry: (entry.system, entry.client))
    for _, group in groupby(entries, key=name):
        yield list(group)


def _count(entries: Iterable[Transport], operation: Operation) -> str:
    return str(sum(entry.operation == operation for entry in entries) or "")


def _page(entries: Sequence[Transport]) -> str:
    first = entries[0]
    head = f"# {first.system}: {first.client}\n\n{COMMENT}\n\n[All clients](../catalogue.md)\n"
    parts = [head, f"{prose(introduction(first))}\n", *_figures(entries)]
    for operation in Operation:
        if chosen := [entry for entry in entries if entry.operation == operation]:
            parts.append(f"## {operation} ({len(chosen)})\n")
            parts += [_section(entry) for entry in chosen]
    return "\n".join(parts)


def _figures(entries: Iterable[Transport]) -> Iterator[str]:
    """Yield a table with the figures of these transports in the matrix's reference run, if it has any."""
    names = {entry.id for entry in entries}
    if ran := [(case, default) for case, default in _measured() if case.transport in names]:
        yield _MEASURED.format(figures=_said(ran))
        yield _table(ran, "#{1}", of_database=True)


def _said(ran: _Measured) -> str:
    return _FIGURES.format(rows=ran[0][0].rows)


def _table(ran: _Measured, link: str, of_database: bool) -> str:
    """Return measured cases as a table, which website/filter.js filters by database, direction and frame."""
    head = ("database", "direction", "frame", "transport", "median s", "factor", "peak MB", "values", "loses", "needs")
    rows = [_figure(case, default, link) for case, default in sorted(ran, key=lambda pair: _place(pair[0]))]
    skipped = 1 if of_database else 0
    return table(head[skipped:], (row[skipped:] for row in rows), range(4 - skipped, 7 - skipped))


def _figure(case: Summary, default: Summary | None, link: str) -> tuple[str, ...]:
    entry = registry.one(case.transport)
    function = case.transport.rpartition(".")[2]
    shown = f"{entry.client} {function}" if link.startswith("catalogue") else function
    return (
        entry.system,
        case.operation,
        case.frame,
        f"[{shown}]({link.format(name(entry), function)}) {loss_marks(entry.lossy)}".rstrip(),
        significant(case.median_seconds),
        ranged(factors(default, case)) if default else "",
        megabytes(case.peak_rss_bytes),
        case.fidelity.partition(":")[0],
        str(len(entry.lossy) or ""),
        ", ".join(sorted(packages_of(entry))),
    )


def _place(case: Summary) -> tuple[str, str, str, float]:
    return case.transport.partition(".")[0], case.operation, case.frame, case.took


@cache
def _measured() -> _Measured:
    """Return the cases of the reference run that have figures, each with the default transport of its cell."""
    suite, _, summaries = reference.of(readme.SUITE)
    assert suite.answers
    found: list[tuple[Summary, Summary | None]] = []
    for cell in competing(suite.answers, summaries).values():
        ran = [case for case in cell if case.n]
        default = next(iter(defaults_among(ran, suite.answers.defaults)), None)
        found += [(case, default) for case in ran]
    return found


def _section(entry: Transport) -> str:
    """Return the facts about one transport: its docstring and its declarations."""
    said = inspect.getdoc(entry.function) if entry.origin is not Origin.CONTROL else entry.summary
    facts = "".join(f"- {label}: {text}\n" for label, text in _facts(entry) if text)
    head = f"### {entry.id.rpartition('.')[2]}\n\n`{entry.id}`\n\n{prose(said or '')}\n\n{_install(entry)}{facts}"
    return f"{head}\n{_CODE.format(id=entry.id, code=_code(entry))}"


def _install(entry: Transport) -> str:
    """Return a paragraph: the command that installs a transport's packages, and those that are not on PyPI."""
    needed = sorted(packages_of(entry))
    asked = [asked_for(package) for package in needed if package not in NOT_ON_PYPI]
    pip = [f'"{one}"' if "[" in one else one for one in asked]
    lines = [f"    pip install {' '.join(pip)}\n"] if pip else []
    lines += [
        f"`{package}` is not on PyPI: [install it](../explanation/arrow-wire.md#install).\n"
        for package in needed
        if package in NOT_ON_PYPI
    ]
    return "".join(f"{line}\n" for line in lines)


def _code(entry: Transport) -> str:
    """Return the source of a transport's function, without its decorator and its docstring, which the page shows."""
    lines = inspect.getsource(entry.function).splitlines()
    (node,) = ast.parse("\n".join(lines)).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    first = node.body[0]
    end = first.end_lineno if ast.get_docstring(node) else first.lineno - 1
    return "\n".join([*lines[node.lineno - 1 : first.lineno - 1], *lines[end:]])


def _facts(entry: Transport) -> Iterator[tuple[str, str]]:
    yield "frame", entry.frame
    yield "path", entry.path
    yield "payload", entry.payload
    yield "published as", entry.published or ""
    yield "origin", _ORIGINS.get(entry.origin, "")
    yield "needs", ", ".join(f"`{need}`" for need in entry.needs)
    yield "pinned settings", ", ".join(f"`{setting}={value}`" for setting, value in entry.settings.items())
    yield "[loses](../reference/values.md)", _loses(entry)
    lacking = SYSTEMS[entry.system].fixes if entry.system in SYSTEMS else ()
    alone = [_TESTED.format(need) for need in entry.needs if need in lacking]
    yield "tested", "".join(alone) + ("; no row stays if a write breaks" if alone and entry.atomic else "")
    yield "when a connection breaks", _LEFT.get(entry.atomic, "")


def _loses(entry: Transport) -> str:
    """Return a transport's declared losses with their marks, or that it has none; empty if it moves no frame."""
    if entry.lossy:
        return f"{loss_marks(entry.lossy)} {fidelity.loses(entry.lossy)}"
    return "nothing that `lab verify` tries" if entry.moves_a_frame and entry.system in SYSTEMS else ""


def _in_databases(kind: Kind) -> Iterator[str]:
    """Describe each database's particulars of a kind: column types, values it stores differently or not at all."""
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
