"""The content of the lock files."""

import itertools
import re
import sys
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from harness.lab.packages import NOT_ON_PYPI, left_out, package_of
from harness.registry import catalogue
from harness.results.environment import held_back
from harness.settings import ROOT
from tests.repository.locks import LOCKS, PROJECT, entries

GROUPS = PROJECT["dependency-groups"]


def names(requirements):
    return {Requirement(text).name for text in requirements}


@pytest.mark.parametrize(
    ("group", "lock"),
    [
        ("build", "requirements.lock"),
        ("dev", "requirements-dev.lock"),
        ("docs", "requirements-docs.lock"),
        ("native", "requirements-native.lock"),
        ("sources", "requirements-sources.lock"),
    ],
)
def test_a_group_of_dependencies_is_in_its_lock(group, lock):
    assert names(GROUPS[group]) <= entries(lock).keys()


def test_what_only_checks_the_lab_is_in_no_image():
    assert not names(GROUPS["dev"]) & entries("requirements.lock").keys()
    assert "requirements-dev" not in (ROOT / "images/harness/Dockerfile").read_text()


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(LOCKS, 2)))
def test_two_lock_files_have_the_same_version_of_what_both_have(one, other):
    first, second = entries(one), entries(other)
    for name in first.keys() & second.keys():
        assert re.match(r"\S+", first[name])[0] == re.match(r"\S+", second[name])[0]


@pytest.mark.parametrize(("engine", "package"), [("ray", "ray"), ("spark", "pyspark")])
def test_the_lock_of_an_engine_has_it_and_nothing_that_every_lab_has(engine, package):
    of_engine, of_images = entries(f"requirements-{engine}.lock"), entries("requirements.lock")
    (asked,) = map(Requirement, PROJECT["project"]["optional-dependencies"][engine])
    assert asked.name == package
    assert of_engine[package].startswith(f"{package}{asked.specifier} ")
    assert not of_engine.keys() & of_images.keys()
    assert package not in of_images


def test_dask_is_locked_for_every_lab_as_its_extra_asks():
    for asked in map(Requirement, PROJECT["project"]["optional-dependencies"]["dask"]):
        assert entries("requirements.lock")[asked.name].startswith(f"{asked.name}{asked.specifier} ")


def test_pgpq_is_left_out_on_linux_on_aarch64_alone():
    machines = [("linux", "aarch64"), ("linux", "x86_64"), ("darwin", "arm64")]
    arm, *others = (
        left_out("pgpq", PROJECT["project"]["dependencies"], {"sys_platform": system, "platform_machine": processor})
        for system, processor in machines
    )
    assert "aarch64" in arm
    assert others == [None, None]
    assert re.search(r"^pgpq==\S+ ; .*aarch64", entries("requirements.lock")["pgpq"])


@pytest.mark.parametrize("other", ["requirements.lock", "requirements-dev.lock"])
def test_what_builds_the_site_is_only_in_its_own_lock(other):
    assert not names(GROUPS["docs"]) & entries(other).keys()


def test_what_compiles_the_library_has_its_own_lock_and_stays_nowhere():
    asked = tomllib.loads((ROOT / "arrow-wire/pyproject.toml").read_text())
    assert sorted(asked["build-system"]["requires"]) == sorted(GROUPS["native"])
    assert f"arrow-wire=={asked['project']['version']}" in PROJECT["project"]["optional-dependencies"]["tuned"]
    for other in LOCKS:
        assert not {"ziglang", "arrow-wire"} & entries(other).keys()
    assert (
        "/lab/arrow-wire/install /opt/lab/bin/python /lab/requirements-native.lock"
        in (ROOT / "images/harness/Dockerfile").read_text()
    )


def test_what_builds_packages_without_a_wheel_is_pinned_wherever_they_are_installed():
    assert all("--hash=sha256:" in text for text in entries("requirements-sources.lock").values())
    assert '{"UV_BUILD_CONSTRAINT": str(SOURCES)}' in (ROOT / "environments/uv.py").read_text()
    for path in ("images/harness/Dockerfile", "images/harness/install-engine"):
        installing = [
            line for line in (ROOT / path).read_text().splitlines() if "pip install" in line and "--requirement" in line
        ]
        assert installing
        for line in installing:
            assert "--no-build-isolation" in line or "requirements-sources.lock" in line


@pytest.mark.parametrize("name", ["daft", "sqlalchemy-2.1"])
def test_the_lock_of_an_environment_has_what_it_is_asked_for_with(name: str) -> None:
    locked = (ROOT / f"requirements-{name}.lock").read_text()
    for requirement in map(Requirement, GROUPS[name]):
        found = re.search(rf"^{requirement.name}==(\S+)", locked, re.MULTILINE)
        assert found
        assert requirement.specifier.contains(found[1])


@pytest.mark.parametrize("name", held_back())
def test_a_package_is_older_than_the_newest_only_where_another_one_excludes_that(name: str) -> None:
    """`make lock` asks the index for the newest."""
    one, (environment, _, package) = held_back()[name], name.rpartition("/")
    lock = f"requirements-{environment}.lock" if environment else "requirements.lock"
    assert re.search(rf"^{package}=={re.escape(one['locked'])} ", (ROOT / lock).read_text(), re.MULTILINE)
    assert Version(one["newest"]) > Version(one["locked"])
    if not environment:
        asked = [each for each in map(Requirement, metadata.requires(one["by"]) or []) if each.name == package]
        assert not all(each.specifier.contains(one["newest"]) for each in asked)


def test_the_environment_with_another_sqlalchemy_differs_from_the_lab_in_that_alone() -> None:
    pattern = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
    ours, theirs = (
        {*pattern.findall((ROOT / f"requirements{name}.lock").read_text())} for name in ("", "-sqlalchemy-2.1")
    )
    versions = dict(ours)
    assert {name for name, version in theirs - ours if name in versions} == {"sqlalchemy"}


def test_what_transports_require_is_locked_from_pypi_unless_it_is_said_not_to_be_there():
    locked = {package for path in ROOT.glob("requirements*.lock") for package in entries(path.name)}
    asked = {package_of(module) for entry in catalogue().values() for module in entry.modules}
    assert asked - locked - sys.stdlib_module_names == set(NOT_ON_PYPI)
    assert set(PROJECT["tool"]["uv"]["sources"]) == set(NOT_ON_PYPI)
