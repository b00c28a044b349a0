"""A user's settings of pip hold for the uv that installs the lab's environments, and a failure has its reason."""

import hashlib
import os
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.settings import ROOT
from tests.commands import succeeded
from tests.serving import served

pytestmark = [pytest.mark.process, pytest.mark.long]

SCRIPT = ROOT / "environments/uv.py"
NOBODY = "http://127.0.0.1:9/simple"  # the port of discard


UV = SimpleNamespace(**runpy.run_path(str(SCRIPT)))


def of_pip(tmp_path: Path, text: str = "", **variables: str) -> dict[str, str]:
    """The settings for uv if this is pip's configuration (empty: no file at all); pip itself lists its settings."""
    file = tmp_path / "pip.conf" if text else Path(os.devnull)
    file.write_text(text, encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": str(file)} | variables
    command = (sys.executable, "-m", "pip", "config", "list")
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    told = UV.for_uv(UV.listed_by_pip(listed), environment)
    return {name: value for name, value in told.items() if name not in UV.ALWAYS}


FILE = """
[global]
index-url = https://a.invalid/simple
extra-index-url =
    https://b.invalid/simple
    https://c.invalid/simple
cert = /etc/their's.pem
timeout = 7
[install]
trusted-host = b.invalid c.invalid
"""


@pytest.mark.parametrize(
    ("text", "variables", "told"),
    [
        (
            FILE,
            {},
            {
                "UV_DEFAULT_INDEX": "https://a.invalid/simple",
                "UV_INDEX": "https://b.invalid/simple https://c.invalid/simple",
                "UV_INSECURE_HOST": "b.invalid c.invalid",
                "UV_HTTP_TIMEOUT": "7",
                "SSL_CERT_FILE": "/etc/their's.pem",
            },
        ),
        (  # the environment wins over files, and settings of uv over both
            "[global]\nindex-url = https://a.invalid\ncert = /b.pem",
            {"PIP_INDEX_URL": NOBODY, "PIP_CERT": "/c.pem", "SSL_CERT_FILE": "/d.pem"},
            {"UV_DEFAULT_INDEX": NOBODY, "SSL_CERT_FILE": None},
        ),
        (  # a setting of one command of pip wins over one for all
            "[install]\nindex-url = https://a.invalid\n[global]\nindex-url = https://b.invalid\n",
            {},
            {"UV_DEFAULT_INDEX": "https://a.invalid"},
        ),
        (  # a folder of packages that is not there is left out
            "",
            {"PIP_FIND_LINKS": "/usr /none/here https://a.invalid/links"},
            {"UV_FIND_LINKS": "/usr,https://a.invalid/links"},
        ),
        ("", {"REQUESTS_CA_BUNDLE": "/a.pem"}, {"SSL_CERT_FILE": "/a.pem"}),
    ],
)
def test_each_setting_of_pip_has_one_of_uv(
    tmp_path: Path, text: str, variables: dict[str, str], told: dict[str, str | None]
) -> None:
    found = of_pip(tmp_path, text, **variables)  # also with the settings of the machine's own file of pip
    assert {name: found.get(name) for name in told} == told


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """An index of packages on this machine with one package, `made-up-package`."""
    folder = tmp_path / "served" / "simple" / "made-up-package"
    folder.mkdir(parents=True)
    wheel = folder / "made_up_package-1.0-py3-none-any.whl"
    about = "made_up_package-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("made_up_package.py", "")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: made-up-package\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(
            f"{about}/RECORD", f"made_up_package.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n"
        )
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>')
    with served(tmp_path / "served") as address:
        yield f"{address}/simple"


def run(tmp_path: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the script with an empty cache and no configuration but these variables."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    environment |= {"PIP_CONFIG_FILE": os.devnull, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_HTTP_RETRIES": "0"}
    command = (sys.executable, str(SCRIPT), *words)
    return subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=False)


def test_a_package_comes_from_the_index_that_is_set_for_pip(tmp_path: Path, index: str) -> None:
    target = tmp_path / "target"
    words = (sys.prefix, "pip", "install", "--quiet", "--target", str(target), "made-up-package")
    succeeded(run(tmp_path, *words, PIP_INDEX_URL=index))
    assert (target / "made_up_package.py").is_file()


def test_where_pip_may_ask_no_index_uv_asks_none(tmp_path: Path, index: str) -> None:
    words = (sys.prefix, "pip", "install", "--quiet", "--target", str(tmp_path / "target"), "made-up-package")
    assert "not found" in run(tmp_path, *words, PIP_INDEX_URL=index, PIP_NO_INDEX="1").stderr
    folder = str(tmp_path / "served" / "simple" / "made-up-package")
    assert run(tmp_path, *words, PIP_NO_INDEX="1", PIP_FIND_LINKS=folder).returncode == 0


def test_an_index_out_of_reach_is_named_with_what_to_look_at(tmp_path: Path) -> None:
    words = (sys.prefix, "pip", "install", "--quiet", "--target", str(tmp_path / "target"), "made-up-package")
    done = run(tmp_path, *words, PIP_INDEX_URL=NOBODY)
    assert done.returncode != 0
    assert "http://127.0.0.1:9/simple/made-up-package/" in done.stderr
    assert done.stderr.endswith(f"{UV.ADVICE}\n")


def test_without_an_index_an_environment_is_refused_in_two_lines(tmp_path: Path) -> None:
    done = run(tmp_path, "create", str(tmp_path / "fresh"), PIP_INDEX_URL=NOBODY)
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.startswith("uv, which installs the packages, could not be fetched: ")
    assert "Connection refused" in first
    assert second == UV.ADVICE


# A python with a made-up version and platform, which does all else as the real one.
PRETENDING = """#!/usr/bin/env bash
if [ "$1" = --version ]; then echo "Python {version}.0"; exit; fi
exec {python} -c 'import platform, sys
sys.version_info, sys.platform = ({major}, {minor}, 0, "final", 0), "{system}"
platform.machine = lambda: "{machine}"
exec(sys.argv[-1])' "$2"
"""


def installed_with(tmp_path: Path, version: str, system: str, machine: str) -> subprocess.CompletedProcess[str]:
    python = tmp_path / "python"
    major, minor = version.split(".")
    told = {"version": version, "major": major, "minor": minor, "system": system, "machine": machine}
    python.write_text(PRETENDING.format(python=sys.executable, **told))
    python.chmod(0o755)
    command = (ROOT / "environments/install", python, tmp_path / "environment")
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("version", "system", "said", "fix"),
    [
        *(
            (
                version,
                "linux",
                f"expected Python >= 3.11 and < 3.15, found Python {version}.0",
                "run: make install PYTHON=python3.13\n",
            )
            for version in ("3.10", "3.15")
        ),
        ("3.13", "darwin", "expected macOS on Apple silicon, and a Python for it, found x86_64: numba", "make up\n"),
    ],
)
def test_an_installation_refuses_a_python_or_machine_that_clients_have_no_wheels_for(
    tmp_path: Path, version: str, system: str, said: str, fix: str
) -> None:
    done = installed_with(tmp_path, version, system, "x86_64")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.endswith(fix)
    assert not (tmp_path / "environment").exists()


@pytest.mark.parametrize("version", ["3.11", "3.14"])
def test_pythons_between_both_ends_are_taken(tmp_path: Path, version: str) -> None:
    """Every later command fails, with a python that only fails."""
    done = installed_with(tmp_path, version, "darwin", "arm64")
    assert "lab: installing into" in done.stdout
    assert "expected" not in done.stderr
