"""The lab's Python packages: which of them are missing, and how to install them.

The lab's base dependencies include the clients of the database matrix. Extras add everything else (pyproject.toml).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harness.lab import interpreters
from harness.model import HERE, Transport
from harness.settings import CHECKOUT

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PROJECT = "dataframe-io-lab"
# Module -> the lab's package that contains or requires it, if the names differ.
_PACKAGES = {
    "_ch_core": "clickhouse-connect-core",
    "botocore": "boto3",
    "lance": "pylance",
    "psycopg2": "psycopg2-binary",
    "py4j": "pyspark",
    "s3transfer": "boto3",
}
NOT_ON_PYPI = {"arrow-wire": "make wheel"}  # in no lock; and the command that builds it in a checkout of the lab
# Extras outside "all", because each has its own lock; and the install command, by where the lab runs.
_ENGINES = ("ray", "spark")
_INSTALLS = {"checkout": "make engine ENGINE={}", "compose": "make up CLUSTER={}"}


def not_installed(modules: Iterable[str], lab: str = "", environment: str = HERE) -> str | None:
    """Return which packages of these modules are missing, and how to install them, as a reason, or None.

    `lab` is the name of the lab that asks, if any. `environment` is the Python environment that is asked for.
    """
    names = {module.partition(".")[0] for module in modules}
    if elsewhere := interpreters.of(names, environment):
        if environment != HERE and not elsewhere.exists:
            return f'the Python environment "{environment}" is not installed: {elsewhere.remedy}'
        sought = names if elsewhere.exists else {elsewhere.name}
        absent = sorted({package_of(name) for name in sought if not elsewhere.has(name)})
        return f"{_said(absent)}: {elsewhere.remedy}" if absent else None
    if not (absent := sorted({package_of(name) for name in names if find_spec(name) is None})):
        return None
    place = "compose" if lab == "compose" else "checkout" if CHECKOUT else "elsewhere"
    return ": ".join([_said(absent), *remedy(absent, *_declared(), place)])


def _said(absent: Sequence[str]) -> str:
    named = ", ".join(f'"{package}"' for package in absent)
    return f"the Python package{f' {named} is' if len(absent) == 1 else f's {named} are'} not installed"


def package_of(module: str) -> str:
    """Return the lab's package for a module."""
    return _PACKAGES.get(module, _canonical(module))


def packages_of(entry: Transport) -> set[str]:
    """Return the packages that a transport imports, beyond the standard library."""
    return {package_of(module) for module in entry.modules - set(sys.stdlib_module_names)}


def from_pypi(entry: Transport) -> bool:
    """Return whether a transport needs only packages from PyPI, with an unmodified database.

    Each module that it requires is in the standard library or in a PyPI package (DuckDB's extensions are, as wheels).
    It needs no server extension, no folder or bucket shared with the server, and no workers.
    """
    return not beyond_pypi(entry)


def beyond_pypi(entry: Transport) -> tuple[str, ...]:
    """Return the needs of a transport that PyPI does not have, each with its source if the lab knows it."""
    packages = sorted(packages_of(entry) & set(NOT_ON_PYPI))
    needs = (f"{need} of the server" for need in entry.needs)
    return *(f"{package} (not on PyPI: {NOT_ON_PYPI[package]})" for package in packages), *needs


def installed(entry: Transport) -> tuple[str, ...]:
    """Return the arguments of pip that install what a transport needs besides the library of its frame.

    These are packages of PyPI. One that another of them requires is left out.
    """
    packages, frame = packages_of(entry), {entry.frame} - {""}  # some bounds have no frame
    required = {name for package in packages | frame for name in _required(package)}
    asked = {package: asked_for(package) for package in packages - frame - set(NOT_ON_PYPI)}
    return tuple(sorted(said for package, said in asked.items() if package not in required or said != package))


def _canonical(name: str) -> str:
    """Return the name of a package as PyPI compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _parsed(requirements: Iterable[str]) -> Iterator[Requirement]:
    """Parse requirements."""
    from packaging.requirements import Requirement  # not at the top: a wrong command line does not wait for it

    return map(Requirement, requirements)


@cache
def _required(package: str) -> frozenset[str]:
    """Return the packages that an installed one requires here; none if it is not installed."""
    try:
        found = _parsed(metadata(package).get_all("Requires-Dist") or ())
    except PackageNotFoundError:
        return frozenset()
    return frozenset(_canonical(one.name) for one in found if not one.marker or one.marker.evaluate({"extra": ""}))


@cache  # a race calls this for every package of every transport
def asked_for(package: str) -> str:
    """Return a package with the extras that the lab itself asks for: `psycopg[binary]`."""
    asked = (one for one in _parsed(_declared()[0]) if _canonical(one.name) == package)
    extras = sorted(next((one.extras for one in asked), ()))
    return f"{package}[{','.join(extras)}]" if extras else package


def remedy(
    packages: Iterable[str], requirements: Iterable[str], extras: Iterable[str], place: str = "elsewhere"
) -> list[str]:
    """Return the command that installs packages, or why this platform lacks them; empty if the lab does not know.

    `requirements` and `extras` are the lab's own, from its metadata. If several extras contain a package, the smallest
    is named, and none that another one includes. In a `checkout` and in the harness container (`compose`) an engine has
    its own command.
    """
    asked = tuple(requirements)
    brought = {extra: _brought(extra, asked) for extra in extras}
    chosen = set()
    for package in packages:
        if bringing := [extra for extra, of_extra in brought.items() if package in of_extra]:
            chosen.add(min(bringing, key=lambda extra: (len(brought[extra]), extra)))
        elif where := left_out(package, asked):
            return [f"it is left out unless {where}"]
    names = sorted(name for name in chosen if not any(brought[name] < brought[other] for other in chosen))
    if place in _INSTALLS and len(names) == 1 and names[0] in _ENGINES:
        return [_INSTALLS[place].format(names[0])]
    return [f'pip install "{PROJECT}[{",".join(names)}]"'] if names else []


@cache  # a run calls this for every case that cannot run, and reading a hundred requirements takes a while
def _brought(extra: str, requirements: tuple[str, ...]) -> set[str]:
    """Return the packages that only this extra, or a similar one, adds to the base."""
    found = _parsed(requirements)
    return {
        _canonical(one.name)
        for one in found
        if one.marker and one.marker.evaluate({"extra": extra}) and not one.marker.evaluate({"extra": ""})
    }


def left_out(package: str, requirements: Iterable[str], platform: Mapping[str, str] | None = None) -> str | None:
    """Return the condition under which the lab requires a package, if this platform does not meet it.

    `platform` replaces this machine's own markers (sys_platform, platform_machine ...).
    """
    for requirement in _parsed(requirements):
        marker = requirement.marker
        if requirement.name == package and marker and not marker.evaluate({"extra": ""} | dict(platform or {})):
            return str(marker)
    return None


@cache
def _declared() -> tuple[list[str], list[str]]:
    """Return the requirements and the extras of the installed lab."""
    try:
        found = metadata(PROJECT)
    except PackageNotFoundError:  # runs from a checkout that is not installed
        return [], []
    return found.get_all("Requires-Dist") or [], found.get_all("Provides-Extra") or []


# The lab's extras: the purpose and size of each, and whether it is installed here.
#
# Without an extra, its features are `unavailable`, and the reason names the extra. MB: the addition to the base's 1.6
# GB, on Linux on x86-64.


@dataclass(frozen=True)
class Extra:
    """An extra: its description in one line, the megabytes it adds, and modules that show that it is installed."""

    brings: str
    megabytes: int
    modules: tuple[str, ...]

    @property
    def installed(self) -> bool:
        """Whether it is installed, or its modules are available without it."""
        return all(find_spec(module) for module in self.modules)


EXTRAS = {
    "tuned": Extra(
        "arrow-wire, over which the tuned transports are thin; Numba for others", 218, ("arrow_wire", "numba")
    ),
    "duckdb": Extra("DuckDB: its own transports; data of the suites scan, stores, elt, tuning", 142, ("duckdb",)),
    "connectorx": Extra("ConnectorX, which reads from both databases", 206, ("connectorx",)),
    "clients": Extra("more clients of databases: asynch, and an SQLAlchemy dialect, which pip builds", 66, ("asynch",)),
    "s3": Extra("object storage: the reference client and others", 65, ("awscrt", "boto3", "obstore")),
    "scan": Extra("the suite scan: DuckDB and DataFusion", 271, ("duckdb", "datafusion")),
    "stores": Extra(
        "the suite stores: DuckDB, ParquetDB, Delta Lake, Lance",
        576,
        ("duckdb", "parquetdb", "deltalake", "lance", "adbc_driver_sqlite"),
    ),
    "tuning": Extra("the suite tuning: DuckDB, and numexpr for memory bandwidth", 144, ("duckdb", "numexpr")),
    "dask": Extra("Dask, an engine of the suite cluster", 37, ("dask", "distributed")),
    "ray": Extra("Ray Data, an engine of the suite cluster", 271, ("ray",)),
    "spark": Extra("Spark, an engine of the suite cluster; needs Java 17 or newer", 512, ("pyspark",)),
}
ENGINES = {"ray", "spark"}
ALL = ("all", "all of these but ray and spark", 1262)


def lines() -> Iterator[tuple[str, bool, str]]:
    """Yield the installed extras, then each other one: a subject, whether it is installed, and its description."""
    if installed := [name for name, extra in EXTRAS.items() if extra.installed]:
        yield "extras", True, ", ".join(installed)
    # In a checkout, make engine installs the engines, and the reasons of their transports say so.
    left_out = ENGINES if CHECKOUT else set()
    others = {name: extra for name, extra in EXTRAS.items() if not extra.installed and name not in left_out}
    for name, extra in others.items():
        yield f"extra {name}", False, f'{extra.brings}; {extra.megabytes} MB; pip install "{PROJECT}[{name}]"'
    if others.keys() - ENGINES:
        name, brings, megabytes = ALL
        yield f"extra {name}", False, f'{brings}; {megabytes:,} MB; pip install "{PROJECT}[{name}]"'
