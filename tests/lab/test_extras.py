"""What each extra brings and weighs is told in one line, for whoever has the wheel alone."""

from importlib import metadata

import pytest
from packaging.requirements import Requirement

from harness.lab import extras
from harness.lab.extras import EXTRAS
from harness.lab.packages import PROJECT, package_of


def test_every_extra_is_told_of_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda module: None)
    told = dict(extras.lines())
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
    monkeypatch.setattr(extras, "find_spec", lambda module: None if module == "datafusion" else object())
    told = dict(extras.lines())
    assert told["extra scan"].endswith(f'; 271 MB; pip install "{PROJECT}[scan]"')
    assert "duckdb (142 MB)" in told["extras installed"]
    assert "scan" not in told["extras installed"]
