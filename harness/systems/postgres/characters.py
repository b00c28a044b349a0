"""Characters that a database in an encoding other than UTF-8 lacks; the server itself is asked.

https://www.postgresql.org/docs/current/multibyte.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl
from adbc_driver_manager import Error

from harness.model import LabError, Scalar

_HOLD_ALL = {"UTF8", "SQL_ASCII"}
_BEYOND_ASCII = r"[^\x00-\x7f]"
_UNTRANSLATABLE = "22P05"  # https://www.postgresql.org/docs/current/errcodes-appendix.html
_Ask = Callable[[str], Sequence[tuple[Scalar, ...]]]


def require_held(ask: _Ask, parquet: str | Path, logical_types: Mapping[str, str]) -> None:
    """Raise LabError, with column and row, for a string of a Parquet file that the database cannot hold.

    `ask` returns the rows of a statement.
    """
    ((encoding,),) = ask("SELECT getdatabaseencoding()")
    if encoding in _HOLD_ALL:
        return
    for place, name in enumerate(logical_types):
        strings = _strings_of(pl.read_parquet(parquet, columns=[place], memory_map=False).to_series())
        if strings is None:
            continue
        there = strings["string"].str.extract_all(_BEYOND_ASCII).explode().drop_nulls().unique().sort().to_list()
        if missing := _first_missing(ask, there):
            row = strings.filter(pl.col("string").str.contains(missing, literal=True))["row"][0]
            raise LabError(
                f'column "{name}", row {row}: the database is in {encoding}, which does not have all of these '
                "characters; use a database in UTF8, or replace them"
            )


def _strings_of(series: pl.Series) -> pl.DataFrame | None:
    """Return the strings of a column, alone or in lists, with their row numbers; None for other columns."""
    found = pl.DataFrame({"row": pl.int_range(len(series), eager=True), "string": series})
    while isinstance(found.schema["string"], pl.List):
        found = found.explode("string")
    is_string = found.schema["string"] in (pl.String, pl.Categorical, pl.Enum)
    return found.cast({"string": pl.String}) if is_string else None


def _first_missing(ask: _Ask, characters: Sequence[str]) -> str:
    """Return the first of these characters that the database lacks; empty if it has all."""
    if not characters or _has(ask, characters):
        return ""
    if len(characters) == 1:
        return characters[0]
    middle = len(characters) // 2
    return _first_missing(ask, characters[:middle]) or _first_missing(ask, characters[middle:])


def _has(ask: _Ask, characters: Sequence[str]) -> bool:
    try:
        ask(f"SELECT length(convert_from('\\x{''.join(characters).encode().hex()}', 'UTF8'))")
    except Error as error:
        if error.sqlstate != _UNTRANSLATABLE:
            raise
        return False
    return True
