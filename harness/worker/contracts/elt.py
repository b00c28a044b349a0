"""Transports of many files into one: a folder or prefix of CSV files becomes one Parquet file, here or on S3."""

from typing import Any

from harness.model import Transport
from harness.worker.contracts.calls import Calls


def calls(entry: Transport, job: dict[str, Any]) -> Calls:
    """Return the calls on a small tree and on the tree; `connect` is given a scratch folder and the S3 server."""
    return Calls((job["folder"], job["s3"]), tuple(job["warmup"]), tuple(job["measured"]))


def hand_over(entry: Transport, returned: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Add nothing: the parent finds the file where it was to be."""
    return {}
