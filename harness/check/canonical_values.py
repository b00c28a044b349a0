"""Single values that came as Python objects or texts, as polars takes them: of logical types that no benchmark has."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from harness.check.logical_types import FLOATS, INTEGERS, fields, items, plain

_BOOLEANS = {"t": True, "true": True, "f": False, "false": False, "1": True, "0": False}


def canonical_value(value: Any, logical: str) -> Any:
    """Return what polars takes for one object or text of a type that no benchmark has. Raises ValueError, TypeError."""
    if logical in INTEGERS:
        return _integer(value)
    return _MADE[plain(logical)](value, logical)


def _integer(value: Any) -> int:
    number = Decimal(value)
    if number != int(number):
        raise ValueError("digits are lost")
    return int(number)


def _binary(value: Any, logical: str) -> bytes:
    if isinstance(value, str):
        return bytes.fromhex(value[2:]) if value.startswith("\\x") else value.encode()
    return bytes(value)


def _moment(value: Any, logical: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, dt.datetime):  # such as the nanoseconds that numpy makes of one
        raise TypeError(f"a moment came as {type(value).__name__}")
    if not logical.startswith("timestamp_tz"):
        return moment.replace(tzinfo=None)
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _span(value: Any, logical: str) -> dt.timedelta:
    if not isinstance(value, dt.timedelta):
        raise TypeError(f"a duration came as {type(value).__name__}")
    return value


def _array(value: Any, logical: str) -> list[Any]:
    if isinstance(value, str):
        raise TypeError("an array came as text")
    return [_item(item, items(logical)) for item in getattr(value, "tolist", lambda: value)()]


def _item(item: Any, logical: str) -> Any:
    """Return one item of an array as polars takes it."""
    if item is None or logical in FLOATS:
        return item
    if logical in INTEGERS:  # numpy has no null among integers: it makes all of them floats and the null a NaN
        return None if item != item else int(item) if item == int(item) else item
    if logical.startswith("timestamp") and item != item:  # NaT of pandas
        return None
    return item if logical in ("text", "date") else canonical_value(item, logical)


def _struct(value: Any, logical: str) -> dict[str, Any]:
    of = fields(logical)
    found = dict(zip(of, value, strict=True)) if isinstance(value, tuple) else dict(value)
    if found.keys() != of.keys():
        raise ValueError("fields are missing, or others are there")
    return {name: _item(found[name], of[name]) for name in of}


def _document(document: Any) -> str:
    """Return a JSON document in the one form that all equal ones have: no spaces, keys in order."""
    compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_of_numpy)
    return compact.encode(document)


def _of_numpy(value: Any) -> Any:
    """Return a number or an array of numpy as Python's own, which JSON knows. Raises TypeError for all else."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} is nothing that stands in JSON")
    return value.tolist()


_MADE: dict[str, Callable[[Any, str], Any]] = {
    "boolean": lambda value, logical: _BOOLEANS[str(value).lower()],
    "decimal": lambda value, logical: Decimal(value),
    "float32": lambda value, logical: float(value),
    "json": lambda value, logical: _document(json.loads(value) if isinstance(value, str | bytes) else value),
    "category": lambda value, logical: value,
    "binary": _binary,
    "duration": _span,
    "time": lambda value, logical: dt.time.fromisoformat(value) if isinstance(value, str) else value,
    "nested": _struct,
    "array": _array,
    **dict.fromkeys(("timestamp", "timestamp_tz", "timestamp_ns", "timestamp_tz_ns"), _moment),
}
