"""Transports of jobs: each is called with the arguments it names, and returns an answer that the parent knows."""

from typing import Any

from harness.model import Status, Transport
from harness.worker.contracts.calls import Calls


def calls(entry: Transport, job: dict[str, Any]) -> Calls:
    """Return the calls on little data and on the data; `connect` is given a scratch folder and the S3 server."""
    return Calls(
        (job["folder"], job["s3"]), (), (), warmup_named=job["warmup_arguments"], measured_named=job["arguments"]
    )


def hand_over(entry: Transport, returned: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Put the answer itself and the details of the call into the worker's answer.

    A transport returns the answer, or a dict of `answer` and `details` (names with their units, and numbers).
    """
    if not isinstance(returned, dict):
        return {"answer": returned}
    details = returned.get("details", {})
    numbers = all(type(value) in (int, float) for value in details.values())
    if returned.keys() - {"answer", "details"} or "answer" not in returned or not numbers:
        return {"status": Status.ERROR, "error": f"expected an answer and details in numbers, found {returned!r:.200}"}
    return {"answer": returned["answer"], "details": details}
