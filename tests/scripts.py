"""Runs scripts as for a user without this project, but starts Python and the frame libraries only once for all."""

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from typing import Any

LONGEST_SECONDS = 300  # of a busy machine
# These start threads when they are imported, and a fork would lack these threads.
WITH_THREADS = {"chdb", "dask", "deltalake", "duckdb", "duckdb_extensions"}
# pyarrow 26 ends about one process in 200 so on a busy machine, in a thread of its pool while the interpreter ends. The
# script has printed its last line by then, and the tests require that line.
AT_EXIT_OF_PYARROW = (-signal.SIGABRT, "terminate called without an active exception\n")
# A process that has nothing of this project in its path. Each script is the main program of a fork of it, with its own
# folder, arguments and variables. Its imports are fast, because the parent process has already imported the modules.
_PARENT = """
import gc, importlib, json, os, pickle, runpy, signal, sys
from contextlib import suppress
import pandas, polars, pyarrow

def keep(*what, **how):
    if not how:
        with open(job["kept"], "wb") as file:
            pickle.dump(what[-1], file)

answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # ParquetDB says something where it is imported

for line in sys.stdin:
    job = json.loads(line)
    for name in job["modules"]:
        with suppress(ImportError):  # which the script meets, too
            importlib.import_module(name)
    gc.freeze()  # or each script would collect what it never made where it ends, which takes most of its time
    if (child := os.fork()) == 0:
        signal.alarm(job["seconds"])
        os.chdir(job["folder"])
        os.environ.update(job["variables"])
        for number, name in enumerate((os.devnull, job["out"], job["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        sys.stdout.reconfigure(line_buffering=True)
        sys.argv = [job["script"], *job["arguments"]]
        runpy.run_path(job["script"], {"print": keep} if job["kept"] else {}, "__main__")
        break
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), file=answers, flush=True)
"""


@dataclass(frozen=True)
class Ended:
    """How a script ended, and its output."""

    status: int
    out: str
    err: str


class Scripts:
    """The process whose forks run scripts."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(
        self,
        script: Path,
        *arguments: object,
        variables: Mapping[str, str] | None = None,
        modules: Sequence[str] = (),
    ) -> Ended:
        """Run a script, which needs these modules, in its own folder, for LONGEST_SECONDS at most."""
        return self._ended(script, arguments, variables or {}, modules, "")

    def printed(self, script: Path, variables: Mapping[str, str], modules: Sequence[str]) -> tuple[Ended, Any]:
        """Run a script; return also the last object that it gave to print, or None."""
        kept = script.with_suffix(".pickle")
        ended = self._ended(script, (), variables, modules, str(kept))
        return ended, pickle.loads(kept.read_bytes()) if kept.exists() else None

    def _ended(
        self,
        script: Path,
        arguments: tuple[object, ...],
        variables: Mapping[str, str],
        modules: Sequence[str],
        kept: str,
    ) -> Ended:
        out, err = (script.with_suffix(suffix) for suffix in (".out", ".err"))
        job = {
            "folder": str(script.parent),
            "script": str(script),
            "arguments": [*map(str, arguments)],
            "variables": dict(variables),
            "modules": [name for name in modules if name.partition(".")[0] not in WITH_THREADS],
            "seconds": LONGEST_SECONDS,
            "kept": kept,
            "out": str(out),
            "err": str(err),
        }
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        said = err.read_text()
        if (status, said) == AT_EXIT_OF_PYARROW:
            return Ended(0, out.read_text(), "")
        told = f"ended by {signal.Signals(-status).name}" if status < 0 else ""
        return Ended(status, out.read_text(), said + told)


@contextmanager
def opened() -> Iterator[Scripts]:
    """Yield the runner of scripts."""
    command = (sys.executable, "-I", "-c", _PARENT)
    with TemporaryDirectory() as folder:
        # ParquetDB makes files in the working folder at its import, and in the folder of configurations.
        own = os.environ | {"XDG_CONFIG_HOME": folder, "PYTHON_DOTENV_DISABLED": "1"}
        with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=folder, env=own) as process:
            yield Scripts(process)
