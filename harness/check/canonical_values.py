"""Single values that came as Python objects or texts, as polars takes them: of the kinds that no benchmark has."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any


def canonical_value(value: Any, kind: str) -> Any:
    """Return what polars takes for one object or text of a kind that no benchmark has. Raises ValueError, TypeError."""
    if kind == "boolean":
        return {"t": True, "true": True, "f": False, "false": False, "1": True, "0": False}[str(value).lower()]
    if kind == "decimal":
        return Decimal(value)
    if kind in ("uint32", "uint64"):
        number = Decimal(value)
        if number != int(number):
            raise ValueError("digits are lost")
        return int(number)
    if kind == "float32":
        return float(value)
    if kind == "json":
        return _document(json.loads(value) if isinstance(value, str | bytes) else value)
    if kind == "category":
        return value
    if kind == "nested":
        return dict(zip("ab", value, strict=True)) if isinstance(value, tuple) else dict(value)
    if kind == "array":
        if isinstance(value, str):
            raise TypeError("an array came as text")
        items = getattr(value, "tolist", lambda: value)()
        # numpy has no null among integers: it makes all of them floats and the null a NaN.
        return [None if item is None or item != item else int(item) if item == int(item) else item for item in items]
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    if kind == "timestamp":
        return moment.replace(tzinfo=None)
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _document(document: Any) -> str:
    """Return a JSON document in the one form that all equal ones have: no spaces, keys in order."""
    compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_of_numpy)
    return compact.encode(document)


def _of_numpy(value: Any) -> Any:
    """Return a number or an array of numpy as Python's own, which JSON knows. Raises TypeError for all else."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} is nothing that stands in JSON")
    return value.tolist()
