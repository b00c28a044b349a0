"""Steps that convert a column of strings to values: as data, so that a program does exactly the same."""

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
