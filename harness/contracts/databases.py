"""Transports of databases: a frame into a table, or a table into a frame."""

from typing import Any

from harness.canonical import NotConvertible, canonicalise, library_of, load_frame
from harness.contracts.calls import Calls
from harness.model import Operation, SharedFolder, Status, Transport

WARMUP_ROWS = 1_000


def calls(entry: Transport, job: dict[str, Any]) -> Calls:
    """Return the calls: a write's on the frame loaded here and on its first 1,000 rows, a read's on two tables."""
    io = (SharedFolder(**job["io"]),) if "shared_io" in entry.needs else ()
    connect = (job["uri"], *io)
    if entry.operation is Operation.READ:
        return Calls(connect, (job["warmup_table"],), (job["table"],))
    frame = load_frame(job["dataset"], entry.frame, job["kinds"])
    return Calls(connect, (frame.head(WARMUP_ROWS), job["warmup_table"]), (frame, job["table"]))


def hand_over(entry: Transport, returned: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Leave the canonical frame of a read at `job["result"]`; nothing for a write."""
    if entry.operation is Operation.WRITE:
        return {}
    try:
        if (found := library_of(returned)) != entry.frame:  # the way to the library it names was not timed
            return {"status": Status.ERROR, "error": f"expected a {entry.frame} DataFrame, found one of {found}"}
        frame, converted = canonicalise(returned, job["kinds"])
    except NotConvertible as error:
        return {"status": Status.MISMATCH, "error": str(error)}
    frame.write_ipc(job["result"])
    return {"converted": converted}
