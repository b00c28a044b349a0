"""Which variables of the environment reach workers, servers and the clients of this process."""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from harness.model import LabError

NAMESPACE = "dataframe_io_lab"  # unless LAB_NAMESPACE is set
_PLAIN = re.compile(r"[a-z][a-z0-9_]{0,47}")  # 63 bytes are the longest name of Postgres; the lab appends to this one
# What a process needs to run at all on this machine, and what settles nothing that is measured.
_KEPT = {
    *("HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_DIR", "SSL_CERT_FILE"),
    *("LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"),
    "NUMEXPR_MAX_THREADS",  # raises numexpr's own limit of 64, nothing else
    *("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"),  # what a cluster of one's own lets one in by
    *("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_CONF_DIR"),  # likewise, and where Java and the Python of its workers lie
}
_OF_ENGINES = ("AWS_", "CHDB_", "DUCKDB_", "POLARS_")  # which this process uses too
_ALWAYS = {
    "NO_PROXY": "*",
    "no_proxy": "*",
    "DO_NOT_TRACK": "1",  # Daft would tell its makers of every import
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


def namespace() -> str:
    """Return the one schema or database of a server that this lab works in. Raises LabError for no plain name."""
    name = os.environ.get("LAB_NAMESPACE") or NAMESPACE
    if not _PLAIN.fullmatch(name):
        raise LabError(
            f"LAB_NAMESPACE: {name!r} is no plain name; use at most 48 lower-case letters, digits and underscores, "
            "the first a letter"
        )
    return name


def clean_environment() -> dict[str, str]:
    """Return the variables that workers are given: those of this process that change no client, and the lab's own."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("LAB_")}
    return kept | _ALWAYS


def environment_of_a_server(home: Path) -> dict[str, str]:
    """Return the variables of an embedded server: nothing that could change Python, an engine or its time zone."""
    needed = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR") if name in os.environ}
    return {"HOME": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC", "PATH": os.defpath, **needed}


def java() -> str | None:
    """Return the Java that Spark would start: that of JAVA_HOME, else the one in PATH; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")


def forget_clients(beginnings: Iterable[str]) -> None:
    """Take from the environment of this process what only clients read, and switch proxies off.

    `beginnings` are those of the variables that clients of databases read.
    The lab talks to its databases directly: a proxy named in the environment would otherwise carry, and be measured
    with, the HTTP transports.
    """
    known = (*_OF_ENGINES, *beginnings)
    for name in [name for name in os.environ if name.startswith(known)]:
        del os.environ[name]
    os.environ.update(_ALWAYS)
