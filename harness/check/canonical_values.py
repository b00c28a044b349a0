"""Single values that arrived as Python objects or strings, as polars accepts them, for types that no benchmark has."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from decimal import Context, Decimal

from harness.check.logical_types import FLOATS, INTEGERS, digits, fields, is_wide, items, mapped, plain
from harness.model import Scalar

_EXACT = Context(prec=1_000)  # precision while a number is rounded to its scale
_BOOLEANS = {"t": True, "true": True, "f": False, "false": False, "1": True, "0": False}


def canonical_value(value: Scalar, logical: str) -> Scalar:
    """Return the value that polars accepts for one object or string of such a type. Raises ValueError, TypeError."""
    if logical in INTEGERS:
        return _integer(value)
    return _MADE[plain(logical)](value, logical)


def _integer(value: Scalar) -> int:
    number = Decimal(value)
    if number != int(number):
        raise ValueError("digits are lost")
    return int(number)


def _decimal(value: Scalar, logical: str) -> Decimal | str:
    return decimal_text(value, logical) if is_wide(logical) else Decimal(value)


def decimal_text(value: Scalar, logical: str) -> str:
    """Return the one string that all equal decimals share. Raises ValueError if the decimal has more digits."""
    number, (precision, scale) = Decimal(value), digits(logical)
    made = _EXACT.plus(number.quantize(Decimal(1).scaleb(-scale), context=_EXACT))  # no database has a decimal -0
    if made != number or len(made.as_tuple().digits) > precision:
        raise ValueError("digits are lost")
    return format(made, "f")


def strings_of(decimals: Scalar) -> Scalar:
    """Return an Arrow column of decimals as one of strings, with all their digits."""
    import pyarrow as pa

    strings = [value if value is None else format(value, "f") for value in decimals.to_pylist()]
    return pa.array(strings, pa.large_string())


def _uuid(value: Scalar, logical: str) -> str:
    return str(uuid.UUID(bytes=value)) if isinstance(value, bytes) else str(value)


def _binary(value: Scalar, logical: str) -> bytes:
    if isinstance(value, str):
        return bytes.fromhex(value[2:]) if value.startswith("\\x") else value.encode()
    return bytes(value)


def _moment(value: Scalar, logical: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, dt.datetime):  # such as the nanoseconds that numpy returns
        raise TypeError(f"a timestamp came as {type(value).__name__}")
    if not logical.startswith("timestamp_tz"):
        return moment.replace(tzinfo=None)
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _span(value: Scalar, logical: str) -> dt.timedelta:
    if not isinstance(value, dt.timedelta):
        raise TypeError(f"a duration came as {type(value).__name__}")
    return value


def _array(value: Scalar, logical: str) -> list[Scalar]:
    if isinstance(value, str):
        raise TypeError("an array came as a string")
    return [_item(item, items(logical)) for item in getattr(value, "tolist", lambda: value)()]


def _item(item: Scalar, logical: str) -> Scalar:
    """Return one item of an array as polars accepts it."""
    if item is None or logical in FLOATS:
        return item
    if logical in INTEGERS:  # numpy has no integer null: it turns all integers into floats and the null into NaN
        return None if item != item else int(item) if item == int(item) else item
    if logical.startswith("timestamp") and item != item:  # pandas' NaT
        return None
    return item if logical in ("text", "date") else canonical_value(item, logical)


def _map(value: Scalar, logical: str) -> dict[Scalar, Scalar]:
    """Return a map, which Arrow returns as pairs, with its entries in order."""
    keys, values = mapped(logical)
    pairs = list(value.items() if isinstance(value, dict) else value)
    made = {_item(key, keys): _item(item, values) for key, item in pairs}
    if len(made) < len(pairs):
        raise ValueError("keys are there twice")
    return made


def _struct(value: Scalar, logical: str) -> dict[str, Scalar]:
    of = fields(logical)
    found = dict(zip(of, value, strict=True)) if isinstance(value, tuple) else dict(value)
    if found.keys() != of.keys():
        raise ValueError("fields are missing, or others are there")
    return {name: _item(found[name], of[name]) for name in of}


def _document(document: Scalar) -> str:
    """Return a JSON document in the one form that all equal documents share: no spaces, sorted keys."""
    compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_of_numpy)
    return compact.encode(document)


def _of_numpy(value: Scalar) -> Scalar:
    """Return a numpy number or array as Python's own type, which JSON supports. Raises TypeError for other values."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return value.tolist()


_MADE: dict[str, Callable[[Scalar, str], Scalar]] = {
    "boolean": lambda value, logical: _BOOLEANS[str(value).lower()],
    "decimal": _decimal,
    "uuid": _uuid,
    "float32": lambda value, logical: float(value),
    "json": lambda value, logical: _document(json.loads(value) if isinstance(value, str | bytes) else value),
    "category": lambda value, logical: value,
    "binary": _binary,
    "duration": _span,
    "time": lambda value, logical: dt.time.fromisoformat(value) if isinstance(value, str) else value,
    "nested": _struct,
    "array": _array,
    "map": _map,
    **dict.fromkeys(("timestamp", "timestamp_tz", "timestamp_ns", "timestamp_tz_ns"), _moment),
}
