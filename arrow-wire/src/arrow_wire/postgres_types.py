"""The types of Postgres, with the Arrow types of their columns and the encoder for each array.

A server describes its own types (enums, arrays of them): `question`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

# The types that every server knows by the same numbers: name, oid, oid of its arrays.
_BUILT_IN = (
    ("bool", 16, 1000), ("bytea", 17, 1001), ("name", 19, 1003), ("int8", 20, 1016), ("int2", 21, 1005),
    ("int4", 23, 1007), ("text", 25, 1009), ("oid", 26, 1028), ("json", 114, 199), ("xml", 142, 143),
    ("cidr", 650, 651), ("float4", 700, 1021), ("float8", 701, 1022), ("macaddr8", 774, 775), ("macaddr", 829, 1040),
    ("inet", 869, 1041), ("bpchar", 1042, 1014), ("varchar", 1043, 1015), ("date", 1082, 1182), ("time", 1083, 1183),
    ("timestamp", 1114, 1115), ("timestamptz", 1184, 1185), ("interval", 1186, 1187), ("timetz", 1266, 1270),
    ("numeric", 1700, 1231), ("uuid", 2950, 2951), ("jsonb", 3802, 3807),
)  # fmt: skip
TEXTS = frozenset(("text", "varchar", "bpchar", "json", "xml", "name", "enum"))  # sent as they are
ENUM = "enum"
OTHER = "other"  # a type that only the server itself knows


def question(oids: Iterable[int]) -> str:
    """Return the query for the types of these numbers: name, `typtype` (e: enum), the same of an array's items."""
    listed = ", ".join(str(int(oid)) for oid in oids)
    return (
        "SELECT t.oid::bigint, format_type(t.oid, NULL), t.typtype::text, "
        "i.oid::bigint, format_type(i.oid, NULL), i.typtype::text FROM pg_type t "
        "LEFT JOIN pg_type i ON t.typcategory = 'A' AND i.oid = t.typelem "
        f"WHERE t.oid = ANY (ARRAY[{listed}]::oid[])"
    )


@dataclass(frozen=True)
class ServerType:
    """A type of a column: its number, its names in this library and on the server, its modifier, and its items."""

    oid: int
    name: str
    shown: str
    modifier: int = -1
    item: "ServerType | None" = None

    def __hash__(self) -> int:  # in a third of the time of hashing all fields
        return self.oid

    @property
    def digits(self) -> tuple[int, int] | None:
        """Return how many digits a numeric has, and how many of them after the point; None without a limit."""
        if self.name != "numeric" or self.modifier < 4:
            return None
        places = (self.modifier - 4) & 0x7FF
        return (self.modifier - 4) >> 16 & 0xFFFF, (places ^ 1024) - 1024


@lru_cache(1024)
def built_in(oid: int, modifier: int = -1) -> ServerType | None:
    """Return the type of this number that every server has; None if it is unknown."""
    if oid in _NAMES:
        return ServerType(oid, _NAMES[oid], _NAMES[oid], modifier)
    item = built_in(_ARRAYS[oid], modifier) if oid in _ARRAYS else None
    return item and ServerType(oid, "array", f"{item.shown}[]", modifier, item)


@lru_cache(256)
def all_built_in(described: tuple[tuple[int, int], ...]) -> list[ServerType] | None:
    """Return the types of these numbers and modifiers; None if one of them is not on every server."""
    found = [built_in(*of) for of in described]
    return None if None in found else found  # type: ignore[return-value]


def types(described: Iterable[tuple[int, int]], answer: Iterable[tuple[object, ...]] = ()) -> list[ServerType]:
    """Return the types of columns given by oid and modifier; `answer` has the rows of `question` for unknown types."""
    asked = {row[0]: row for row in answer}

    def made(oid: int, modifier: int) -> ServerType:
        if found := built_in(oid, modifier):
            return found
        if oid not in asked:
            return ServerType(oid, OTHER, f"type {oid}", modifier)
        _, name, typtype, item_oid, item_name, item_typtype = asked[oid]
        if isinstance(item_oid, int):
            of_items = ENUM if item_typtype == "e" else OTHER
            below = built_in(item_oid, modifier) or ServerType(item_oid, of_items, str(item_name))
            return ServerType(oid, "array", str(name), modifier, below)
        return ServerType(oid, ENUM if typtype == "e" else OTHER, str(name), modifier)

    return [made(oid, modifier) for oid, modifier in described]


_NAMES = {oid: name for name, oid, _ in _BUILT_IN}
_ARRAYS = {array: oid for _, oid, array in _BUILT_IN}
EPOCH_DAYS, EPOCH_MICROSECONDS = 10_957, 946_684_800_000_000  # the server counts from 2000, Arrow from 1970
MICROSECONDS_A_DAY = 86_400_000_000
# The least and the most, counted as the server does: src/include/datatype/timestamp.h
DATES = -2_451_545, 2_145_031_948
TIMESTAMPS = -211_813_488_000_000_000, 9_223_371_331_199_999_999
TIMES = 0, MICROSECONDS_A_DAY
ALL = -(2**63), 2**63 - 1
TO_MICROSECONDS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
is_binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
