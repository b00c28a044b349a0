"""Every database is a room: it has what the lab asks of one, and nothing outside of it names it."""

import ast
import inspect
from pathlib import Path
from typing import Any, Protocol

import pytest

from harness.datasets.hostile.common_kinds import KINDS
from harness.embedded.service import Files, Service
from harness.settings import ROOT
from harness.systems import SYSTEMS, change_protocol, settings_of_server, system
from tests.every import every

PARTS: dict[str, type] = {
    "client": system.Client,
    "session": system.QuerySession,
    "tables": system.TableDefinitions,
    "hostile": system.Hostile,
    "sql": system.Sql,
    "folder": system.Folder,
    "script": system.Script,
    "sums": system.SumsOfTables,
    "concurrent_changes": change_protocol.ConcurrentChanges,
    "settings": settings_of_server.SettingsOfServer,
    "installed": system.Installed,
}


def has(of: system.System, part: str) -> bool:
    """Whether a room is to have a part: only what is shared can be looked at, and some it may be without."""
    return of.shares_folder if part == "folder" else part not in system.OPTIONAL or not of.lacks(part)


ROOMS = [(of, part) for of in SYSTEMS.values() for part in PARTS if has(of, part)]


def parameters(function: Any) -> list[str]:
    """The names of the parameters, of a method without self; those that the database names itself are no matter."""
    names = list(inspect.signature(function).parameters)
    return names[1:] if names[:1] == ["self"] else names


def lacking(contract: type, room: Any) -> list[str]:
    """What a room lacks of its contract, or has otherwise: a function, its parameters, a table of facts."""
    functions = {name: of for name, of in vars(contract).items() if inspect.isfunction(of) and name[0] != "_"}
    facts = {name for name in contract.__annotations__ if not hasattr(room, name)}
    wrong = {
        name
        for name, of in functions.items()
        if not inspect.isfunction(getattr(room, name, None)) or _asked(of) != _asked(getattr(room, name))
    }
    return sorted(facts | wrong)


def _asked(function: Any) -> list[str]:
    """The parameters, but for a connection: each client calls it by the name of its own."""
    return [name for name in parameters(function) if name not in ("connection", "client")]


@every(ROOMS, lambda room: f"{room[0].name} {room[1]}")
def test_a_room_offers_what_its_contract_says(room):
    of, part = room
    assert lacking(PARTS[part], getattr(of, part)) == []


@every(SYSTEMS.values(), lambda of: of.name)
def test_a_room_says_what_the_lab_needs_to_know_of_it(of):
    assert (ROOT / "harness" / "systems" / of.name / "__init__.py").is_file()
    assert of.title
    assert of.addresses
    assert isinstance(of.service, Service | Files)
    assert bool(of.installed_at) is not bool(of.lacks("installed"))
    assert set(KINDS["one_row"].columns.values()) <= of.hostile.TYPES.keys()


def test_no_two_rooms_have_one_place_in_reports_or_one_address():
    for facts in (
        [of.place for of in SYSTEMS.values()],
        [name for of in SYSTEMS.values() for name in of.endpoints],
        [address.setting for of in SYSTEMS.values() for address in of.addresses],
    ):
        assert len(set(facts)) == len(facts)


class Asks(Protocol):
    FACT: str

    def look(self, connection: Any, table: str) -> str: ...


class Right:
    FACT = ""

    @staticmethod
    def look(client, table):
        return table


class OtherName:
    FACT = ""

    @staticmethod
    def look(connection, name):
        return name


@pytest.mark.parametrize(("room", "found"), [(Right, []), (OtherName, ["look"]), (object, ["FACT", "look"])])
def test_what_a_room_lacks_is_found(room, found):
    assert lacking(Asks, room) == found


# What names a system, and which: its name, and what its server may offer.
NAMES = {name: of.name for of in SYSTEMS.values() for name in (of.name, *of.fixes)}


def named(source: str, own: str = "") -> list[str]:
    """Return where Python source names a system other than its `own`: in texts but prose, names and imports."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if id(node) not in prose:
            words = " ".join(_words(node)).lower()
            found += [f"line {node.lineno}: {name}" for name, of in NAMES.items() if name in words and of != own]
    return found


def _words(node: Any) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.ImportFrom(module=name) | ast.keyword(arg=name):
            return [name or ""]
    return []


def own_of(path: Path) -> str:
    """The system in whose room a file of the harness stands, or nothing."""
    room, *below = path.relative_to(ROOT / "harness").parts
    return below[0] if room in ("systems", "transports") and below[0] in SYSTEMS else ""


OF_STORES = [
    ROOT / "harness" / name
    for name in ("check/stores.py", "run/rigs/stores.py", "lab/extras.py", "lab/packages.py", "lab/interpreters.py")
]


def names_engines(path: Path) -> bool:
    """Say whether a file names engines by what they are: transports of files and stores, who runs, reads, packs those.

    A database of the lab may be one of them, too.
    """
    room = path.relative_to(ROOT / "harness").parts[0]
    return (room == "transports" and not own_of(path)) or path in OF_STORES


CODE = [path for path in sorted((ROOT / "harness").rglob("*.py")) if not names_engines(path)]


@every(CODE, lambda path: str(path.relative_to(ROOT)))
def test_no_code_names_a_system_but_in_its_own_room(path):
    assert named(path.read_text(encoding="utf-8"), own_of(path)) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""Of postgres."""\nx = 1', 0),
        ('if system == "postgres":\n    pass', 1),
        ('X = {"postgres": 1, "clickhouse": 2}', 2),
        ("from harness.systems.clickhouse.client import check", 1),
        ("from harness.transports.postgres import sql", 1),
        ("from harness.systems import postgres", 1),
        ("import harness.systems.postgres", 1),
        ("def of(postgres=''):\n    return postgres", 2),
        ('f"{name} clickhouse_http"', 1),
        ('"pg_parquet" in offers', 1),
    ],
)
def test_what_names_a_system_is_found(source, found):
    assert len(named(source)) == found
    assert named(source.replace("clickhouse", "postgres"), own="postgres") == []
