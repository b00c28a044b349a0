"""How a frame was read, as data, so that a program does exactly the same: the lines, and steps that convert columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import polars as pl

from harness.model import Frame

_STRICT = {"cast", "replace_strict", "str.to_date", "str.to_datetime", "str.to_time"}  # raise if a cell is invalid


@dataclass(frozen=True)
class Call:
    """A method call on a polars Series, and its spelling in a program."""

    method: str
    arguments: tuple[object, ...] = ()
    keywords: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, column: Frame) -> Frame:
        """Return the column after the call."""
        return reduce(getattr, self.method.split("."), column)(*self.arguments, **self.keywords)

    def loosely(self, column: Frame) -> Frame:
        """Return the column after the call, with nulls where it would raise."""
        loose = {"default": None} if self.method == "replace_strict" else {"strict": False}
        return replace(self, keywords={**self.keywords, **loose})(column) if self.method in _STRICT else self(column)

    def __str__(self) -> str:
        """The call as spelled in a program."""
        said = [_spelled(one) for one in self.arguments]
        return f".{self.method}({', '.join(said + [f'{name}={_spelled(one)}' for name, one in self.keywords.items()])})"


def _spelled(argument: object) -> str:
    is_type = isinstance(argument, pl.DataType) or (isinstance(argument, type) and issubclass(argument, pl.DataType))
    return f"polars.{argument!r}" if is_type else repr(argument)


Steps = tuple[Call, ...]


def applied(column: Frame, steps: Iterable[Call]) -> Frame:
    """Return a column after all steps."""
    return reduce(lambda made, step: step(made), steps, column)


@dataclass(frozen=True)
class Program:
    """How a program reads the same frame again: `lines` with {} for a file build a `frame`, or an Arrow `table`.

    `columns` are the expressions that convert columns. For a table, `offsets` are the columns with an offset zone,
    `wide` those with many digits. A `pattern` finds several files, whose folders name the columns `hive`. Its last
    `below` parts may have wildcards, and match no hidden file.
    """

    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    offsets: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()
    pattern: str = ""
    below: int = 0
    hive: tuple[str, ...] = ()


@dataclass(frozen=True)
class Read:
    """A frame, how a program reads it, how much of it was compared with its source, and notes for the user."""

    frame: pl.DataFrame
    program: Program = field(default_factory=Program)
    compared: str = ""
    notes: tuple[str, ...] = ()
