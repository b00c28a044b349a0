"""The facts that environment.json must have for a run to be readable, and the shape of its other facts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from harness.model import Facts, LabError

_Text = Annotated[str, Field(min_length=1)]


class _PartFacts(BaseModel):
    name: str


class _PlanFacts(BaseModel):
    suite: _Text
    passes: int
    experiments: list[_PartFacts] = []
    time_limit: float = 0.0


class _MachineFacts(BaseModel):
    cores: int
    cpu: str
    architecture: str
    memory_bytes: int
    system: str
    kernel: str


class _ServerFacts(BaseModel):
    version: str
    program: str = ""
    settings: dict[str, object] = {}


class _CodeFacts(BaseModel):
    commit: str | None = None
    version: str | None = None


class _MemberFacts(BaseModel):
    run_id: _Text
    fingerprint: _Text


class _AllFacts(BaseModel):
    """The facts that reports and comparisons use; those with a default may be missing in an old run."""

    run_id: _Text
    fingerprint: _Text
    lab: str
    python: str
    plan: _PlanFacts
    runs: int | None = None
    machine: _MachineFacts
    data: list[dict[str, object]] = []
    servers: dict[str, _ServerFacts] = {}
    packages: dict[str, str] = {}
    uses: dict[str, list[str]] = {}
    code: _CodeFacts = _CodeFacts()
    sources: dict[str, str] = {}
    together: list[_MemberFacts] = []
    measurement: dict[str, object] = {}
    load_average_at_start: list[float] = []


def require(path: Path, facts: Facts) -> None:
    """Raise LabError for the first entry of an environment that is missing or has another shape."""
    try:
        _AllFacts.model_validate(facts)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        wanted = first["msg"].removeprefix("Input should be ")
        wrong = "is missing" if first["type"] == "missing" else f"is {first['input']!r:.60} instead of {wanted}"
        raise LabError(f"{path}: the entry '{place}' {wrong}; was it made by another version?") from None
