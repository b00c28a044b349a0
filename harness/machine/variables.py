"""Which environment variables reach workers, servers and the clients of this process."""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from harness.model import LabError

NAMESPACE = "dataframe_io_lab"  # unless LAB_NAMESPACE is set
_PLAIN = re.compile(r"[a-z][a-z0-9_]{0,47}")  # Postgres names have at most 63 bytes, and the lab appends to this one
# Variables that a process needs to run on this machine, and that affect no measurement.
_KEPT = {
    *("HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_DIR", "SSL_CERT_FILE"),
    *("LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"),
    "NUMEXPR_MAX_THREADS",  # only raises numexpr's own limit of 64
    *("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"),  # credentials for the user's own cluster
    *("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_CONF_DIR"),  # likewise, and the paths of Java and the workers' Python
}
_OF_ENGINES = ("AWS_", "CHDB_", "DUCKDB_", "POLARS_")  # this process uses these too
_ALWAYS = {
    "NO_PROXY": "*",
    "no_proxy": "*",
    "DO_NOT_TRACK": "1",  # otherwise Daft reports every import to its makers
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


def namespace() -> str:
    """Return the one schema or database that this lab uses on a server. Raises LabError for an invalid name."""
    name = os.environ.get("LAB_NAMESPACE") or NAMESPACE
    if not _PLAIN.fullmatch(name):
        raise LabError(
            f"LAB_NAMESPACE: {name!r} is not a plain name; use at most 48 lower-case letters, digits and underscores, "
            "the first a letter"
        )
    return name


def clean_environment() -> dict[str, str]:
    """Return the environment variables of workers: this process's that change no client, and the lab's own."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("LAB_")}
    return kept | _ALWAYS


def environment_of_a_server(home: Path) -> dict[str, str]:
    """Return an embedded server's variables: none that could change Python, an engine or its time zone."""
    needed = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR") if name in os.environ}
    return {"HOME": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC", "PATH": os.defpath, **needed}


def java() -> str | None:
    """Return the Java that Spark would start: JAVA_HOME's, otherwise the one in PATH; None without one."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")


def forget_clients(beginnings: Iterable[str]) -> None:
    """Remove from this process's environment the variables that only clients read, and switch proxies off.

    `beginnings` are prefixes of variables that clients of databases read. The lab connects to its databases directly. A
    proxy named in the environment would otherwise carry the HTTP transports, and be measured with them.
    """
    known = (*_OF_ENGINES, *beginnings)
    for name in [name for name in os.environ if name.startswith(known)]:
        del os.environ[name]
    os.environ.update(_ALWAYS)
