"""The lock files: what they hold, and that images can be built from them on both processors without Rust."""

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from harness.lab.packages import left_out

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ARM = {"sys_platform": "linux", "platform_machine": "aarch64"}
INTEL = {"sys_platform": "linux", "platform_machine": "x86_64"}
# Packages without a wheel for the images' Python: one is C, the others Python alone; the build stage has a compiler.
_PYTHON = {"clickhouse-sqlalchemy", "pyspark"}
SOURCES = {"x86_64": _PYTHON, "aarch64": _PYTHON | {"zstd"}}
ENGINES = ("requirements-ray.lock", "requirements-spark.lock")
# All that share an environment: the site of the docs has its own.
LOCKS = ("requirements.lock", "requirements-dev.lock", *ENGINES)


def entries(name):
    """The text of each package of a lock file, its hashes included, by the package's name."""
    blocks = re.split(r"^(?=[a-z0-9])", (ROOT / name).read_text(), flags=re.MULTILINE)[1:]
    return {re.split(r"[=\[; ]", block, maxsplit=1)[0]: block for block in blocks}


def names(requirements):
    return {Requirement(text).name for text in requirements}


def test_what_only_checks_the_lab_is_in_no_image():
    of_images, groups = entries("requirements.lock"), PROJECT["dependency-groups"]
    assert names(groups["build"]) <= of_images.keys()
    assert names(groups["dev"]) <= entries("requirements-dev.lock").keys()
    assert not names(groups["dev"]) & of_images.keys()
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
    assert "aarch64" in left_out("pgpq", PROJECT["project"]["dependencies"], ARM)
    assert left_out("pgpq", PROJECT["project"]["dependencies"], INTEL) is None
    mac = {"sys_platform": "darwin", "platform_machine": "arm64"}
    assert left_out("pgpq", PROJECT["project"]["dependencies"], mac) is None
    assert re.search(r"^pgpq==\S+ ; .*aarch64", entries("requirements.lock")["pgpq"])


def test_what_builds_the_site_has_a_lock_of_its_own_and_is_nowhere_else():
    of_site, groups = entries("requirements-docs.lock"), PROJECT["dependency-groups"]
    assert names(groups["docs"]) <= of_site.keys()
    for other in ("requirements.lock", "requirements-dev.lock"):
        assert not names(groups["docs"]) & entries(other).keys()


def test_what_compiles_the_library_has_a_lock_of_its_own_and_stays_nowhere():
    of_native = entries("requirements-native.lock")
    asked = tomllib.loads((ROOT / "native/pyproject.toml").read_text())
    assert sorted(asked["build-system"]["requires"]) == sorted(PROJECT["dependency-groups"]["native"])
    assert names(asked["build-system"]["requires"]) <= of_native.keys()
    assert f"arrow-wire=={asked['project']['version']}" in PROJECT["project"]["optional-dependencies"]["tuned"]
    for other in LOCKS:
        assert not {"ziglang", "arrow-wire"} & entries(other).keys()
    assert (
        "/lab/native/install /opt/lab/bin/python /lab/requirements-native.lock"
        in (ROOT / "images/harness/Dockerfile").read_text()
    )


@pytest.mark.long
@pytest.mark.parametrize("processor", SOURCES)
def test_every_locked_package_has_a_wheel_for_the_images_python_or_is_a_known_source(processor):
    """Asks the package index, as a build of the image would. glibc 2.41 is Debian 13's."""
    python = re.search(r"python:(\d+\.\d+)-slim-trixie", (ROOT / "images/harness/Dockerfile").read_text())[1]
    locked = {name: text for lock in ("requirements.lock", *ENGINES) for name, text in entries(lock).items()}
    wheels = [text for name, text in locked.items() if name not in SOURCES[processor]]
    command = [Path(sys.executable).with_name("uv"), "pip", "compile", "--quiet", "--no-deps", "--generate-hashes"]
    command += ["--python-version", python, "--python-platform", f"{processor}-manylinux_2_40"]
    asked = subprocess.run(
        [*command, "--only-binary", ":all:", "-"], input="".join(wheels), capture_output=True, text=True
    )
    assert asked.returncode == 0, asked.stderr
