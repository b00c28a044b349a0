"""Images can be built from the lock files on both processors without Rust."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.settings import ROOT
from tests.commands import succeeded
from tests.repository.locks import ENGINES, entries

# Packages without a wheel for the images' Python: one is C, the rest are pure Python; the build stage has a compiler.
_PYTHON = {"clickhouse-sqlalchemy", "pyspark"}
SOURCES = {"x86_64": _PYTHON, "aarch64": _PYTHON | {"zstd"}}


@pytest.mark.long
@pytest.mark.parametrize("processor", SOURCES)
def test_every_locked_package_has_a_wheel_for_the_images_python_or_is_a_known_source(processor):
    """The test asks the package index, as a build of the image does. glibc 2.41 is Debian 13's."""
    python = re.search(r"python:(\d+\.\d+)-slim-trixie", (ROOT / "images/harness/Dockerfile").read_text())[1]
    locked = {name: text for lock in ("requirements.lock", *ENGINES) for name, text in entries(lock).items()}
    wheels = [text for name, text in locked.items() if name not in SOURCES[processor]]
    command = [Path(sys.executable).with_name("uv"), "pip", "compile", "--quiet", "--no-deps", "--generate-hashes"]
    command += ["--python-version", python, "--python-platform", f"{processor}-manylinux_2_40"]
    succeeded(
        subprocess.run([*command, "--only-binary", ":all:", "-"], input="".join(wheels), capture_output=True, text=True)
    )
