"""One line lists the contents and size of each extra; tests of the transports that need packages of PyPI only."""

from importlib import metadata

import pytest
from packaging.requirements import Requirement

from harness import registry
from harness.lab import packages
from harness.lab.packages import EXTRAS, PROJECT, from_pypi, package_of


def test_every_extra_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "CHECKOUT", False)
    monkeypatch.setattr(packages, "find_spec", lambda module: None)
    told = {name: found for name, here, found in packages.lines() if not here}
    asked = metadata.metadata(PROJECT).get_all("Provides-Extra") or []
    assert told.keys() == {f"extra {name}" for name in asked}
    for line in told.values():
        assert " MB; " in line
        assert "\n" not in line
        assert len(line) < 140


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_is_known_by_what_it_brings(name: str) -> None:
    asked = [Requirement(one) for one in metadata.requires(PROJECT) or []]
    brought = {one.name for one in asked if one.marker and one.marker.evaluate({"extra": name})}
    known = {package_of(module) for module in EXTRAS[name].modules}
    assert known <= brought
    assert len(EXTRAS[name].modules) == len(known)


def test_one_that_is_not_installed_has_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda module: None if module == "datafusion" else object())
    told = {name: found for name, _, found in packages.lines()}
    assert told["extra scan"].endswith(f'; 271 MB; pip install "{PROJECT}[scan]"')
    assert "duckdb" in told["extras"].split(", ")
    assert "scan" not in told["extras"].split(", ")
    assert "extra all" in told


def test_all_is_offered_only_where_it_would_add_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda module: None if module in ("ray", "pyspark") else object())
    assert [name for name, here, _ in packages.lines() if not here] == []  # a checkout has make engine for these
    monkeypatch.setattr(packages, "CHECKOUT", False)
    assert [name for name, here, _ in packages.lines() if not here] == ["extra ray", "extra spark"]


@pytest.mark.parametrize(
    ("transport", "alone"),
    [
        ("postgres.pgpq.write_polars_copy_binary", True),
        ("postgres.duckdb.write_polars_insert", True),  # its extensions are wheels of PyPI
        ("postgres.asyncpg.read_pandas_copy_binary", True),  # compiled by Numba, which is one
        ("clickhouse.urllib.write_polars_parquet", True),
        ("postgres.psycopg.write_polars_tuned", False),
        ("postgres.psycopg.read_pandas_tuned", False),  # requires a module within arrow_wire
        ("clickhouse.http_client.read_polars_tuned", False),
        ("postgres.pg_parquet.write_polars_parquet_stream", False),  # the server needs an extension
    ],
)
def test_a_transport_is_from_pypi_where_neither_a_module_nor_the_server_asks_for_more(transport, alone):
    assert from_pypi(registry.one(transport)) is alone
