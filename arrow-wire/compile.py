"""Compile `zig/` into `src/arrow_wire/`: by hatchling for a wheel, or by hand: python arrow-wire/compile.py

Zig is the compiler because PyPI has it as a wheel, so that a machine needs nothing but Python; and because its mode
ReleaseSafe checks each index, cast and sum while the library runs.
"""

import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
# Of 2009 on: Python's own wheels ask for no more. Others: what the compiler takes for the least of an architecture.
PROCESSOR = {"x86_64": "x86_64_v2", "AMD64": "x86_64_v2"}


def compile_library() -> Path:
    """Compile the library for this machine's system and return its path. Raises CalledProcessError where it fails."""
    target = HERE / "src" / "arrow_wire" / "libarrow_wire.so"
    command = [sys.executable, "-m", "ziglang", "build-lib", "-dynamic", "-O", "ReleaseSafe", "-fstrip"]
    command += [f"-mcpu={PROCESSOR.get(platform.machine(), 'baseline')}", f"-femit-bin={target}"]
    subprocess.run([*command, "zig/library.zig"], cwd=HERE, check=True)
    return target


class CompileHook(BuildHookInterface[Any]):
    """Tells hatchling of the compiled library, and that the wheel is for this system."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together, be it an editable one."""
        compile_library()
        build_data["artifacts"].append("src/arrow_wire/libarrow_wire.so")
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"], build_data["tag"] = False, f"py3-none-{system}"


if __name__ == "__main__":
    compile_library()
