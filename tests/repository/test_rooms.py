"""Every database is a package: it has all parts that the lab needs of one, and no code outside of it names it."""

import ast
import inspect
from pathlib import PurePath
from typing import Any

from harness.datasets.hostile.common_kinds import KINDS
from harness.embedded.service import Files, Service
from harness.settings import ROOT
from harness.systems import SYSTEMS, system
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
    "concurrent_changes": system.ConcurrentChanges,
    "settings": system.SettingsOfServer,
    "installed": system.Installed,
}


def has(of: system.System, part: str) -> bool:
    """Whether a database's package must have a part: only shared folders can be checked, and some may be missing."""
    return of.shares_folder if part == "folder" else part not in system.OPTIONAL or not of.lacks(part)


ROOMS = [(of, part) for of in SYSTEMS.values() for part in PARTS if has(of, part)]


def lacking(contract: type, room: Any) -> list[str]:
    """The differences of a package from its contract: a function, its parameters, a table of facts."""
    functions = {name: of for name, of in vars(contract).items() if inspect.isfunction(of) and name[0] != "_"}
    facts = {name for name in contract.__annotations__ if not hasattr(room, name)}
    wrong = {
        name
        for name, of in functions.items()
        if not inspect.isfunction(getattr(room, name, None)) or _asked(of) != _asked(getattr(room, name))
    }
    return sorted(facts | wrong)


def _asked(function: Any) -> list[str]:
    """The parameters, except a connection, which each client calls by its own name."""
    return [name for name in inspect.signature(function).parameters if name not in ("self", "connection", "client")]


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


# The strings that name a system -> its name: its name itself, and features of its server.
NAMES = {name: of.name for of in SYSTEMS.values() for name in (of.name, *of.fixes)}
OF_STORES = {"run/rigs/stores.py", "lab/packages.py", "lab/interpreters.py"}


def named(source: str, own: str = "") -> set[str]:
    """Return the systems other than its `own` that Python source names, except in prose."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(0)
    code = ast.unparse(tree).lower()
    return {name for name, of in NAMES.items() if name in code and of != own}


def own_of(path: PurePath) -> str:
    """The system in whose folder a file of the harness is, or nothing."""
    room, *below = path.parts
    return below[0] if room in ("systems", "transports") and below[0] in SYSTEMS else ""


CODE = [path.relative_to(ROOT / "harness") for path in sorted((ROOT / "harness").rglob("*.py"))]


# Other transports, and what serves stores, may name any engine, so also a database of the lab.
@every([path for path in CODE if str(path) not in OF_STORES and (path.parts[0] != "transports" or own_of(path))], str)
def test_only_its_own_folder_names_a_system(path):
    assert named((ROOT / "harness" / path).read_text(encoding="utf-8"), own_of(path)) == set()
