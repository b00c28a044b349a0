"""Transports of Parquet files: a list of files into the number of their rows that pass a filter."""

from typing import Any

from harness.model import Status, Transport
from harness.worker.contracts.calls import Calls


def calls(entry: Transport, job: dict[str, Any]) -> Calls:
    """Return the calls on the warm-up files and on the files; `connect` is given a scratch folder."""
    return Calls((job["folder"],), (job["warmup_files"],), (job["files"],))


def hand_over(entry: Transport, returned: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Put the number itself into the answer."""
    if type(returned) is not int:
        return {"status": Status.ERROR, "error": f"expected a number of rows, found {returned!r:.80}"}
    return {"count": returned}
