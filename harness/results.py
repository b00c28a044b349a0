"""The columns of runs.csv, and reading and appending them."""

import csv
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model import LabError, Status


@dataclass(frozen=True)
class Column:
    """One column of runs.csv: its name, type as read back, unit and meaning."""

    name: str
    type: Callable[[str], Any]
    unit: str
    meaning: str


COLUMNS = (
    Column("run_id", str, "", "name of the folder of this run of a suite"),
    Column("environment", str, "", "fingerprint of the machine, versions, data and plan in environment.json"),
    Column("suite", str, "", "suite the run belongs to"),
    Column("experiment", str, "", "experiment of the suite"),
    Column("parameters", str, "", "parameters of the case: name=value; name=value"),
    Column("transport", str, "", "id of the transport: system.client.function"),
    Column("system", str, "", "database, kind of files, or protocol of the stores"),
    Column(
        "operation",
        str,
        "",
        "write: frame in memory to rows visible to another connection; read: query to frame; scan: files to the number "
        "of rows that pass a filter; create: data in memory to a store on disk; query: store to the rows that pass; "
        "transform: a tree of files to one file of another format; job: a query, write or transfer whose settings are "
        "the question",
    ),
    Column("client", str, "", "client library, engine or store"),
    Column("path", str, "", "transport path: how the client talks to the server"),
    Column("payload", str, "", "shape of what crosses the wire"),
    Column("frame", str, "", "what the data are in memory: a dataframe library, dicts or tuples; may be empty"),
    Column("style", str, "", "sync or async client"),
    Column(
        "origin",
        str,
        "",
        "published: a row of a published benchmark; beyond: not in it; limit: a bound; "
        "control: another transport under a second id",
    ),
    Column("published_row", str, "", "description of the published row, empty where there is none"),
    Column("pinned", str, "", "settings that the transport sets explicitly, or that decide what its time includes"),
    Column("dataset", str, "", "name of the dataset"),
    Column("rows", int, "rows", "rows of the data in this case"),
    Column("bytes", int, "B", "bytes of the data on disk, empty where they are not in files of the lab"),
    Column("pass", int, "", "number of the full pass over the suite, from 1"),
    Column("order", int, "", "place in the shuffled order of all runs, from 1"),
    Column(
        "status",
        Status,
        "",
        "ok, mismatch, error, timeout, killed, unavailable, unsupported or again; only ok has numbers; again, which "
        "counts nowhere, is what the machine or a person ended: resume runs it again",
    ),
    Column("error", str, "", "one line of reason where the status is not ok"),
    Column("fidelity", str, "", "how values came back: exact, or converted with the columns and the dtypes they had"),
    Column("lossy", str, "", "kinds of values the transport is declared not to bring through: kind=fate; kind=fate"),
    Column("seconds", float, "s", "wall time of the measured call"),
    Column("connect_seconds", float, "s", "wall time of connecting, not part of seconds"),
    Column("rows_per_s", float, "rows/s", "rows / seconds"),
    Column("cpu_seconds", float, "s", "CPU time of the worker process during the call, user + system"),
    Column("cpu_user_seconds", float, "s", "user part of cpu_seconds"),
    Column("cpu_system_seconds", float, "s", "system part of cpu_seconds"),
    Column(
        "steal_seconds",
        float,
        "s",
        "time during the call that the host gave to others while cores of this machine had work, over all cores, in "
        "steps of 0.01 s; Linux only",
    ),
    Column(
        "throttled_seconds",
        float,
        "s",
        "time during the call that a CPU limit kept the worker's control group from running; Linux only, empty where "
        "there is no such group",
    ),
    Column("peak_rss_bytes", int, "B", "peak resident memory of the worker above the start of the call"),
    Column("peak_anon_bytes", int, "B", "the same for anonymous and shared memory, from 50 ms samples; Linux only"),
    Column("peak_file_bytes", int, "B", "the same for file-backed memory, from 50 ms samples; Linux only"),
    Column("details", str, "", "further facts of a run of its suite: name=value; name=value, units in the names"),
    Column("lab", str, "", "embedded, compose or external servers; local: no server"),
    Column("started_at", str, "UTC", "when the run started, ISO 8601"),
)
OF_TRANSPORT = ("system", "operation", "client", "path", "payload", "frame", "style", "origin")
OF_MEASUREMENT = (
    "seconds",
    "connect_seconds",
    "cpu_user_seconds",
    "cpu_system_seconds",
    "steal_seconds",
    "throttled_seconds",
    "peak_rss_bytes",
    "peak_anon_bytes",
    "peak_file_bytes",
)
NAMES = tuple(column.name for column in COLUMNS)
_ADDED = {"details", "lossy", "steal_seconds", "throttled_seconds"}  # what older files may lack
_TYPES = {column.name: column.type for column in COLUMNS}


def append(path: Path, row: dict[str, Any]) -> None:
    """Add one row and flush it to the disk, with the header before the first. Raises KeyError for a wrong column."""
    if unknown := row.keys() - set(NAMES):
        raise KeyError(f"no such column in runs.csv: {', '.join(sorted(unknown))}")
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, NAMES, restval="", lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow({name: _as_text(value) for name, value in row.items()})
        file.flush()
        os.fsync(file.fileno())


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}"
    text = str(value).replace("\r", " ").replace("\n", " ")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # half a surrogate pair has no UTF-8


def load(path: Path) -> list[dict[str, Any]]:
    """Read runs.csv back with typed values, None where empty.

    Of a column that is younger than the file there is None. Raises LabError: missing, foreign or damaged file.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            if reader.fieldnames is None:  # killed, or the disk full, before the first row
                return []
            if tuple(reader.fieldnames) != tuple(n for n in NAMES if n in reader.fieldnames or n not in _ADDED):
                raise LabError(f"{path}: expected the columns of this version, found others; see docs/columns.md")
            return [_typed(path, line, row) for line, row in enumerate(reader, start=2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LabError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _typed(path: Path, line: int, row: dict[str, str]) -> dict[str, Any]:
    if None in row or None in row.values():
        raise LabError(
            f"{path}, line {line}: expected {len(row.keys() - {None})} columns, found another number; "
            "is the file damaged?"
        )
    try:
        typed = {name: _TYPES[name](text) if text else None for name, text in row.items()}
    except ValueError as error:
        raise LabError(f"{path}, line {line}: {error}; is the file damaged?") from None
    return dict.fromkeys(NAMES) | typed


def trace_path(folder: Path, order: int, transport: str) -> Path:
    """Return where a run's folder has the trace of one run."""
    return folder / "traces" / f"{order:04d}-{transport}.csv"


def write_trace(path: Path, trace: Iterable[tuple[float, float]]) -> None:
    """Write the cores in use over time: seconds since the start of the call, and how many."""
    path.parent.mkdir(exist_ok=True)
    lines = ["seconds,cpu_cores_used", *(f"{seconds:.3f},{cores:.3f}" for seconds, cores in trace)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def load_trace(path: Path) -> list[tuple[float, float]]:
    """Read a trace back; empty where there is none. Raises LabError for a damaged file."""
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [(float(row["seconds"]), float(row["cpu_cores_used"])) for row in csv.DictReader(file)]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise LabError(f"cannot read {path}: {error}; is the file damaged?") from None


def parameters(label: str) -> dict[str, str]:
    """Return the parameters of a label `name=value; name=value` as texts."""
    return dict(part.split("=", 1) for part in label.split("; ") if part)


def details(row: dict[str, Any]) -> dict[str, float]:
    """Return the further facts of a run as numbers, by name."""
    return {name: float(value) for name, value in parameters(row["details"] or "").items()}


def drop_torn_line(path: Path) -> None:
    """Cut off a last line that was not written to its end, as a killed run may leave it."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])


def ok_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that have numbers."""
    return [row for row in rows if row["status"] is Status.OK]
