"""Loads and unloads by Daft, in workers of its separate environment and on real servers: all are long.

They need `make engine ENGINE=daft`. Those on Ray start their own cluster, two nodes of one core each.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.check import sums, unloaded
from harness.lab import interpreters
from harness.lab.embedded import EmbeddedLab
from harness.lab.packages import not_installed
from harness.machine import marked
from harness.model import Operation, Transport, Workers
from harness.run.execution import Worker
from harness.worker.contracts.databases import Addresses, DatabaseAnswer, DatabaseJob
from tests.streams import SPEC, Table

OF_DAFT = registry.select("*.daft.*")
MISSING = not_installed([module for entry in OF_DAFT for module in entry.requires])
pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200), pytest.mark.skipif(bool(MISSING), reason=str(MISSING))]

ROWS, PARTS = 20_000, 4
ENDPOINTS = {"postgres": "postgres", "clickhouse": "clickhouse_http"}
STAGED = ("postgres.daft.load_copy_staged_ray", "clickhouse.daft.load_insert_staged_ray")


@pytest.fixture
def tables(embedded_lab: EmbeddedLab) -> Iterator[dict[str, Table]]:
    """A table on each server."""
    made = {system: Table(system, ENDPOINTS[system], embedded_lab) for system in ENDPOINTS}
    yield made
    for one in made.values():
        one.discard()


def answered(entry: Transport, made: Table, source: str, folder: Path) -> Any:
    """Run a transport in a worker, as a run does, and return the answer; nothing of it is left."""
    workers = Workers(2, made.uri, folder=str(folder)) if entry.engine else None
    for name in ("measured", "warmup"):
        (folder / name).mkdir()
    job = DatabaseJob(
        transport=entry.id,
        module=entry.function.__module__,
        dataset=source,
        logical_types=SPEC.logical_types,
        addresses=Addresses(made.uri, workers=workers),
        table=made.name,
        destination=str(folder / "measured"),
        mark=folder.name + str(id(folder)),
    )
    if entry.operation is Operation.UNLOAD:
        made.fill(source)
        job = replace(job, warmup_table=made.name, warmup_destination=str(folder / "warmup"))
    answer = Worker(folder / "log", interpreters.command_of(entry)).ask(job, 300).answer
    assert marked.processes(job.mark) == []
    return answer


@pytest.mark.parametrize("entry", OF_DAFT, ids=lambda entry: entry.id)
def test_what_daft_moves_arrives_exact(entry: Transport, tables: dict[str, Table], source: str, tmp_path: Path) -> None:
    answer = answered(entry, tables[entry.system], source, tmp_path)
    assert isinstance(answer, DatabaseAnswer), f"{answer}\n{(tmp_path / 'log').read_text()}"
    if entry.operation is Operation.LOAD:
        found = tables[entry.system].sums()
    else:
        found, _ = unloaded.summed(tmp_path / "measured", SPEC.logical_types)
    assert sums.differences(sums.of_parquet(source, SPEC.logical_types), found) == []


@pytest.mark.parametrize("name", STAGED)
def test_a_part_that_fails_leaves_nothing_of_a_staged_load(
    name: str, tables: dict[str, Table], spoilt: str, tmp_path: Path
) -> None:
    entry = registry.one(name)
    answer = answered(entry, tables[entry.system], spoilt, tmp_path)
    assert "uuid" in answer.error.lower()
    assert tables[entry.system].sums().rows == 0


# Each part goes into the table once plainly and once with a ledger; the process that writes the second one then
# dies.
_KILLED = """
import os, signal, sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from harness.transports import daft
from harness.transports.postgres.partitions import copy_part, copy_part_once, ledger_of

uri, table, source, folder = sys.argv[1:]

def dying(call, flag, group):
    rows = call(group)
    if group == 1 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return rows

with daft.daft_on_ray(SimpleNamespace(number=2, uri=uri, address="", folder=""), []):
    print(daft.done_by_parts(partial(dying, partial(copy_part, uri, table, source), Path(folder, "plain")), range(4)))
    with ledger_of(uri, table) as ledger:
        once = partial(copy_part_once, uri, table, ledger, source)
        print(daft.done_by_parts(partial(dying, once, Path(folder, "once")), range(4)))
"""


def test_a_part_whose_worker_is_killed_after_it_is_there_twice_but_not_with_a_ledger(
    tables: dict[str, Table], source: str, tmp_path: Path
) -> None:
    made = tables["postgres"]
    here, killed = tmp_path / "here", tmp_path / "killed"
    here.mkdir()
    killed.mkdir()
    interpreters.lend(here)
    python = interpreters.command_of(registry.one("postgres.daft.load_copy_once_ray"))[0]
    command = (python, "-c", _KILLED, made.uri, made.name, source, str(killed))
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in killed.iterdir()} == {"plain", "once"}
    part = ROWS // PARTS
    answers = [line for line in done.stdout.splitlines() if line.startswith("[")]  # next to Ray's messages
    assert answers == [str([part] * 4), str([part, 0, part, part])]
    assert made.sums().rows == 2 * ROWS + part
