"""The modules that a function imports when it is called: in its body, or in functions of the catalogue it calls."""

import dis
import importlib
import inspect
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType
from typing import Any


def imported_by(*functions: Callable[..., Any] | None) -> set[str]:
    """Return the imports beyond the standard library of functions, and of all in the catalogue that they refer to.

    Each is named as in an import statement: `pyarrow`, `pyarrow.parquet`, `psycopg.sql.SQL`.
    """
    waiting: list[Any] = [*functions]
    seen, found = set(), set()
    while waiting:
        function = inspect.unwrap(waiting.pop())
        if isinstance(function, type):
            waiting += [method for method in vars(function).values() if isinstance(method, FunctionType)]
        elif isinstance(function, FunctionType) and function not in seen:
            seen.add(function)
            imported, names = _of_code(function.__code__)
            found |= imported
            known = (function.__globals__.get(name) for name in names)
            waiting += [value for value in known if "harness.transports." in str(getattr(value, "__module__", ""))]
    return {name for name in found if name.partition(".")[0] not in ("harness", *sys.stdlib_module_names)}


@cache
def _of_code(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the imports of code and of the functions within it, and the global names that it refers to."""
    imported: set[str] = set()
    names: set[str] = set()
    before = None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            names.add(step.argval)
        elif step.opname == "IMPORT_NAME":  # after the names of `from ... import`, None without `from`
            imported |= {f"{step.argval}.{name}" for name in before} if before else {step.argval}
        before = step.argval
    for within in (constant for constant in code.co_consts if isinstance(constant, CodeType)):
        imported |= _of_code(within)[0]
        names |= _of_code(within)[1]
    return imported, names


def load(name: str) -> None:
    """Import a name from an import statement: a module, or a submodule or attribute of one."""
    package, _, last = name.rpartition(".")
    if not package or not hasattr(importlib.import_module(package), last):
        importlib.import_module(name)
