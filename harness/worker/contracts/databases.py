"""Transports of databases: a frame into a table, or a table into a frame."""

import io
from types import SimpleNamespace
from typing import Any

from harness.check.canonical import NotConvertible, canonicalise, library_of, load_frame
from harness.model import Operation, SharedFolder, Status, Transport
from harness.worker.contracts.calls import Calls

WARMUP_ROWS = 1_000
SOURCES = {"table": False, "sorted table": True}  # frame of a write from a table: whether that is in key order


def calls(entry: Transport, job: dict[str, Any]) -> Calls:
    """Return the calls: a write's on the frame loaded here and on its first 1,000 rows, a read's on two tables.

    Where the job has no table for it there is no warm-up. Bounds differ: a write from table to table is given the names
    of both, a copy bytes, a call nothing.
    """
    if entry.operation is Operation.COPY:
        frame = load_frame(job["dataset"], "polars", job["kinds"])
        return Calls((), (_as_bytes(frame.head(WARMUP_ROWS)),), (_as_bytes(frame),))
    connect: tuple[Any, ...] = (job["uri"],)
    if "shared_io" in entry.needs:
        connect += (SharedFolder(**job["io"]),)
    if "s3" in entry.needs:
        connect += (SimpleNamespace(**job["s3"]),)
    if entry.operation is Operation.CALL:
        return Calls(connect, (), ())
    if entry.operation is Operation.READ:
        return Calls(connect, (job["warmup_table"],) if job["warmup_table"] else None, (job["table"],))
    if entry.frame in SOURCES:
        warmup, source = job["sources"]
        return Calls(connect, (warmup, job["warmup_table"]), (source, job["table"]))
    frame = load_frame(job["dataset"], entry.frame, job["kinds"])
    warmup = (frame.head(WARMUP_ROWS), job["warmup_table"]) if job["warmup_table"] else None
    return Calls(connect, warmup, (frame, job["table"]))


def _as_bytes(frame: Any) -> bytes:
    """Return a polars frame as an uncompressed Arrow file."""
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="uncompressed")
    return buffer.getvalue()


def hand_over(entry: Transport, returned: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Leave the canonical frame of a read at `job["result"]`; nothing for a write.

    Of a bound that throws away what it reads the number of rows is handed over, of a copy whether it is the same.
    """
    if entry.operation is Operation.WRITE:
        return {}
    if entry.operation is Operation.CALL or not entry.frame:
        return {"answer": returned, "converted": None}
    if entry.operation is Operation.COPY:
        copied, data = returned, _as_bytes(load_frame(job["dataset"], "polars", job["kinds"]))
        return {"answer": bytes(copied) == data, "converted": None, "details": {"copied_bytes": len(data)}}
    try:
        if (found := library_of(returned)) != entry.frame:  # the way to the library it names was not timed
            return {"status": Status.ERROR, "error": f"expected a {entry.frame} DataFrame, found one of {found}"}
        frame, converted = canonicalise(returned, job["kinds"])
    except NotConvertible as error:
        return {"status": Status.MISMATCH, "error": str(error)}
    frame.write_ipc(job["result"])
    return {"converted": converted}
