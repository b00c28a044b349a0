"""Compile `zig/` into `src/arrow_wire/`: by hatchling for a wheel, or by hand: python arrow-wire/compile.py [ROOT FILE]

Zig compiles the library. PyPI has Zig as a wheel, so a machine needs nothing but Python. Its mode ReleaseSafe checks
each index, cast and sum while the library runs. It also compiles for other systems: ARROW_WIRE_TARGET is the platform
tag of one (`make wheels` compiles for each).
"""

import hashlib
import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
LIBRARY = "src/arrow_wire/libarrow_wire.so"  # on every system: Python loads it by its path
# What the library was compiled from, the digest of zig/: the lab measures no other arrow-wire than its checkout has.
COMPILED_FROM = "src/arrow_wire/compiled_from.txt"
# x86-64 processors of 2009 and later, as Python's own wheels require. Others: the compiler's baseline.
PROCESSOR = {"x86_64": "x86_64_v2", "AMD64": "x86_64_v2"}
# The compiler's name of each system, by the platform tag of a wheel.
TARGETS = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_1_x86_64": "x86_64-linux-musl",
    "musllinux_1_1_aarch64": "aarch64-linux-musl",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}


def compile_library(target: str = "", root: str = "library", made: str = LIBRARY) -> None:
    """Compile the library, for this machine if no platform tag is given. Raises CalledProcessError."""
    command = [sys.executable, "-m", "ziglang", "build-lib", "-dynamic", "-O", "ReleaseSafe", "-fstrip"]
    architecture = TARGETS[target].partition("-")[0] if target else platform.machine()
    command += [f"-mcpu={PROCESSOR.get(architecture, 'baseline')}", f"-femit-bin={HERE / made}"]
    command += ["-target", TARGETS[target]] if target else []
    command += ["-fno-emit-implib"] if target.startswith("win") else []
    command += ["-install_name", "@rpath/libarrow_wire.so"] if target.startswith("mac") else []  # else the path of here
    subprocess.run([*command, f"zig/{root}.zig"], cwd=HERE, check=True)


class CompileHook(BuildHookInterface[Any]):
    """Gives hatchling the compiled library and the wheel's platform tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before hatchling builds the wheel, also an editable one."""
        target = os.environ.get("ARROW_WIRE_TARGET", "")
        compile_library(target)
        sources = b"".join(path.read_bytes() for path in sorted((HERE / "zig").glob("*.zig")))
        (HERE / COMPILED_FROM).write_text(hashlib.blake2b(sources, digest_size=8).hexdigest())
        build_data["artifacts"] += [LIBRARY, COMPILED_FROM]
        system = target or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"], build_data["tag"] = False, f"py3-none-{system}"


if __name__ == "__main__":
    compile_library("", *sys.argv[1:])
