"""The lab's extras: the purpose and size of each, and whether it is installed here.

Without an extra, its features are `unavailable`, and the reason names the extra. MB: the addition to the base's 1.6 GB,
on Linux on x86-64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from harness.lab.packages import PROJECT
from harness.settings import CHECKOUT


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
