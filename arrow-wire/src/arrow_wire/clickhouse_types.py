"""The names of ClickHouse's types, parsed into their parts: https://clickhouse.com/docs/sql-reference/data-types"""

import re
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|`((?:[^`\\]|\\.)*)`|'((?:[^'\\]|\\.)*)'|([-+]?\d+)|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "0": "\0", "a": "\a", "v": "\v"}
_OF_TYPES = {"Array", "Nullable", "LowCardinality", "Map", "Tuple", "Nested"}
_GEOMETRY = {
    "Point": "Tuple(Float64, Float64)",
    "Ring": "Array(Point)",
    "LineString": "Array(Point)",
    "Polygon": "Array(Ring)",
    "MultiLineString": "Array(LineString)",
    "MultiPolygon": "Array(Polygon)",
}


@dataclass(frozen=True)
class Type:
    """A type: its family, the types in it with their names (of tuples), and its literals (digits, zone, labels)."""

    text: str
    family: str
    inner: tuple["Type", ...] = ()
    names: tuple[str, ...] = ()
    literals: tuple[int | str, ...] = ()
    labels: tuple[tuple[str, int], ...] = ()


@lru_cache(1024)
def parsed(text: str) -> Type:
    """Return the parts of a type's name. Raises ValueError if it is not the name of a type."""
    tokens = [(match.lastindex, match[match.lastindex or 0], match) for match in _TOKEN.finditer(text.strip())]
    found, end = _type(text.strip(), tokens, 0)
    if end != len(tokens):
        raise ValueError(f"{text!r} is not a type of ClickHouse")
    return found


def quoted(name: str) -> str:
    """Return a name between backticks."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def takes_null(of: Type) -> bool:
    """Whether a column of a type can be null: it is Nullable, or the type in it is."""
    if of.family in ("LowCardinality", "SimpleAggregateFunction"):
        return takes_null(of.inner[-1])
    return of.family == "Nullable"


def innermost(of: Type) -> str:
    """Return the family of a type without the types around it."""
    while of.family in ("Nullable", "LowCardinality", "Array"):
        of = of.inner[-1]
    return of.family


def _type(text, tokens, place):
    """Return the type that begins at a token, and the place after it."""
    if place >= len(tokens) or tokens[place][0] != 1:
        raise ValueError(f"{text!r} is not a type of ClickHouse")
    family, begin = tokens[place][1], tokens[place][2].start()
    if family in _GEOMETRY:
        inside = parsed(_GEOMETRY[family])
        return Type(family, inside.family, inside.inner, inside.names), place + 1
    end, inner, names, literals, labels = place + 1, [], [], [], []
    if end < len(tokens) and tokens[end][1] == "(" and tokens[end][0] == 5:
        close = _closing(text, tokens, end)
        arguments = list(_arguments(tokens, end + 1, close))
        for first, last in arguments:
            if family in _OF_TYPES:
                name = _name(tokens, first, last)
                made, behind = _type(text, tokens, first + (name is not None))
                if behind != last:
                    raise ValueError(f"{text!r} is not a type of ClickHouse")
                inner.append(made)
                names.append(name or "")
            elif family.startswith("Enum"):
                labels.append((_unescaped(tokens[first][1]), int(tokens[last - 1][1])))
            elif family == "SimpleAggregateFunction" and (first, last) == arguments[-1]:
                inner.append(_type(text, tokens, first)[0])
            elif last == first + 1 and tokens[first][0] in (3, 4):
                token, value = tokens[first][:2]
                literals.append(int(value) if token == 4 else _unescaped(value))
        end = close + 1
    source = text[begin : tokens[end - 1][2].end()].strip()
    return Type(source, family, tuple(inner), tuple(names), tuple(literals), tuple(labels)), end


def _closing(text, tokens, place):
    depth = 0
    for number in range(place, len(tokens)):
        if tokens[number][0] == 5:
            depth += {"(": 1, ")": -1}.get(tokens[number][1], 0)
            if not depth:
                return number
    raise ValueError(f"{text!r} has no closing parenthesis")


def _arguments(tokens, place, close):
    """Yield the first token of each argument and the token after its last one."""
    first, depth = place, 0
    for number in range(place, close):
        if tokens[number][0] == 5:
            depth += {"(": 1, ")": -1}.get(tokens[number][1], 0)
            if tokens[number][1] == "," and not depth:
                yield first, number
                first = number + 1
    if first < close:
        yield first, close


def _name(tokens, first, last):
    """Return the name before the type of a tuple's element, or None."""
    if last - first < 2 or tokens[first][0] not in (1, 2) or tokens[first + 1][0] != 1:
        return None
    token, value, _ = tokens[first]
    return _unescaped(value) if token == 2 else value


def _unescaped(text):
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), text, flags=re.DOTALL)


def head(name: str, sql_type: str) -> bytes:
    """Return the name and the type of a column as in a block, each after its size."""
    return _sized(name) + _sized(sql_type)


def _sized(text: str) -> bytes:
    data, sizes = text.encode(), bytearray()
    size = len(data)
    while size >= 128:
        sizes.append(size & 127 | 128)
        size >>= 7
    return bytes([*sizes, size]) + data
