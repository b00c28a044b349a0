"""Lines of JSON between the parent and a worker, and the types that they carry. Standard library only.

Importing pydantic would cost every worker 100 ms. The same code made a worker's input from the same types, so the
worker checks only the field names (`made`). Other code in a worker may write to the parent, so the parent also
checks the values with pydantic (`harness.run.execution`). Both treat an unknown or missing field as an error.
"""

import json
from dataclasses import MISSING, fields, is_dataclass
from typing import ClassVar, TypeVar, get_args, get_type_hints

_Made = TypeVar("_Made")


class Message:
    """A message: a frozen dataclass of plain values, lists and dicts of these, and other messages."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # pydantic reads its configuration here


def line(message: object) -> bytes:
    """Return a message as one line of JSON. Raises TypeError for values that JSON cannot represent."""
    return json.dumps(message, default=_fields).encode() + b"\n"


def _fields(value: object) -> object:
    if is_dataclass(value):
        return vars(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def made(of: type[_Made], found: dict[str, object]) -> _Made:
    """Build a message, with nested ones, from its fields. Raises ValueError that names unknown or missing fields."""
    known = {each.name: each for each in fields(of)}  # type: ignore[arg-type]  # every message is a dataclass
    needed = {name for name, each in known.items() if each.default is MISSING and each.default_factory is MISSING}
    wrong = [f"no {name}" for name in sorted(needed - found.keys())]
    wrong += [f"an unknown {name}" for name in sorted(found.keys() - known.keys())]
    if wrong:
        raise ValueError(f"{of.__name__}: {', '.join(wrong)}; its fields are {', '.join(known)}")
    types = get_type_hints(of)
    return of(**{name: _value(types[name], value) for name, value in found.items()})


def _value(of: object, found: object) -> object:
    """Return a field's value as it was in the other process; `of` is a type, a list of it, or a type or None."""
    inner = [each for each in (*get_args(of), of) if isinstance(each, type) and is_dataclass(each)]
    if inner and isinstance(found, list):
        return [made(inner[0], each) for each in found]
    return made(inner[0], found) if inner and isinstance(found, dict) else found
