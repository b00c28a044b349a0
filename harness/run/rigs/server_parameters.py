"""How the parameters of the suite crossings change a run on databases: calls, clients, server settings.

`call`: the number of the measured call in the worker's process. 1 is its first, without any warm-up. 10 follows nine
equal calls; each write has an empty table. `warmup` is the call after the default warm-up, as in every other run.
`clients`: the number of workers that write or read at once, each a separate process. Each writer has a slice of the
rows, and all write into one table; each reader reads the whole table. All other parameters are server settings, whose
names depend on the database (`harness.systems.system`). Some apply to the whole server, and are set only on
the lab's own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from harness.lab.labs import Lab
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.model import Case, LabError, Operation, Value
from harness.run.rigs.rig import wrong_value
from harness.systems import SYSTEMS
from harness.systems.system import FilledTables
from harness.worker.contracts.databases import DatabaseJob
from harness.worker.messages import Numbers

AFTER_WARMUP = "warmup"
_OF_WORKERS = frozenset({"call", "clients"})
_NUMBERS = {
    "call": 1,
    "clients": 1,
    "indexes": 0,
    "insert_block_rows": 1,
    "max_wal_mb": 32,
    "max_prepared_transactions": 0,
    "rows_before": 1,
}  # and their minimum
SETTINGS = {name: one.settings.NAMES for name, one in SYSTEMS.items() if not one.lacks("settings")}
OF_WHOLE_SERVER = {name: SYSTEMS[name].settings.OF_WHOLE_SERVER for name in SETTINGS}
PARAMETERS = _OF_WORKERS.union(*SETTINGS.values())


def require_values(case: Case) -> None:
    """Raise LabError for an invalid value of these parameters, or a setting that the case's database lacks."""
    of_server = SETTINGS.get(case.transport.system, frozenset())
    for name in sorted(PARAMETERS & case.parameters.keys()):
        value = case.parameters[name]
        if name not in _OF_WORKERS and name not in of_server:
            raise LabError(f"experiment {case.experiment}: {case.transport.system} has no setting {name}; leave it out")
        least = _NUMBERS.get(name)
        if least is None or (value == AFTER_WARMUP and name == "call"):
            continue
        if not isinstance(value, int) or value < least:
            raise wrong_value(case, name, f"a number of at least {least}")


def clients(case: Case) -> int:
    """Return the number of simultaneous clients; 1 by default."""
    return int(case.parameters.get("clients", 1))


def readers(case: Case) -> int:
    """Return how often the rows of a case's table are read at once."""
    return clients(case) if case.transport.operation is Operation.READ else 1


def unavailable(case: Case, lab: Lab) -> str | None:
    """Return why this lab cannot set a case's settings of the whole server, or None."""
    asked = sorted(_of_whole_server(case))
    if not asked or lab.restart:
        return None
    return f"{asked[0]} is of the whole server: only the embedded lab sets it, on servers that no other program uses"


def configure(case: Case, lab: Lab, references: References, configured: dict[str, dict[str, Value]]) -> None:
    """Set the whole server as a case requires, if it differs; `configured` has each server's non-default settings.

    Raises LabError if the server does not accept it.
    """
    system, asked = case.transport.system, _of_whole_server(case)
    if asked == configured.get(system, {}):
        return
    settings = SYSTEMS[system].settings
    if references.ask(system, settings.configure, asked):
        assert lab.restart
        lab.restart(system)
        if references.ask(system, settings.configure, asked):
            raise LabError(f"{system} does not have {asked or 'its default settings'} after its restart")
    configured[system] = asked


def _of_whole_server(case: Case) -> dict[str, Value]:
    names = OF_WHOLE_SERVER.get(case.transport.system, frozenset())
    return {name: value for name, value in case.parameters.items() if name in names}


def with_parameters(case: Case, job: DatabaseJob, tables: Tables, folder: Path) -> DatabaseJob:
    """Return a job changed by these parameters; slices of the rows are stored in a folder of the run."""
    job = _with_settings(case, job, tables)
    call = case.parameters.get("call", AFTER_WARMUP)
    if call != AFTER_WARMUP:
        job = replace(job, call=int(call), warmup_table="")
    if "clients" not in case.parameters:
        return job
    of_each = slices(tables.dataset.path, clients(case), folder) if case.transport.operation is Operation.WRITE else []
    return replace(job, clients=clients(case), slices=of_each)


def _with_settings(case: Case, job: DatabaseJob, tables: Tables) -> DatabaseJob:
    system = case.transport.system
    if job.addresses is None or not SETTINGS.get(system, frozenset()) & case.parameters.keys():
        return job
    settings = SYSTEMS[system].settings
    if case.transport.operation is Operation.WRITE:
        for statement in [*_filling(case, job, tables), *settings.statements(tables.spec, job.table, case.parameters)]:
            tables.say(system, statement)
    return replace(job, addresses=replace(job.addresses, uri=settings.address(job.addresses.uri, case.parameters)))


def _filling(case: Case, job: DatabaseJob, tables: Tables) -> list[str]:
    """Return the statements that give a table the rows that it has before a write. Raises LabError."""
    rows = int(case.parameters.get("rows_before", 0))
    if not rows:
        return []
    if rows > tables.dataset.rows:
        raise wrong_value(case, "rows_before", f"at most {tables.dataset.rows:,}")
    source, _ = tables.for_copying(case.transport.system, in_key_order=False)
    return _filled_tables(case).filled(tables.spec, job.table, source, rows)


def _filled_tables(case: Case) -> FilledTables:
    settings = SYSTEMS[case.transport.system].settings
    if not isinstance(settings, FilledTables):
        raise LabError(f"experiment {case.experiment}: rows_before is not for {case.transport.system}; leave it out")
    return settings


def lost_before(case: Case, job: DatabaseJob, tables: Tables) -> list[str]:
    """Remove the rows that a table had before a write, so that the written ones remain; report those that are gone."""
    rows = int(case.parameters.get("rows_before", 0))
    if not rows or case.transport.operation is not Operation.WRITE:
        return []
    system = case.transport.system
    found = tables.references.ask(system, _filled_tables(case).remove_rows_before, job.table, once=True)
    return [] if found == rows else [f"{found:,} of the {rows:,} rows from before are there"]


def details(case: Case, job: DatabaseJob, tables: Tables) -> Numbers:
    """Return the bytes of a described frame, and the facts after a write with these parameters."""
    found: Numbers = {}
    if tables.spec.columns and not tables.spec.private:
        found["frame_bytes"] = tables.frame_bytes
    if case.transport.operation is Operation.WRITE and (PARAMETERS | {"profile"}) & case.parameters.keys():
        found |= tables.left(case.transport.system, job.table, case.parameters)
    return found


def slices(path: str, number: int, folder: Path) -> list[str]:
    """Write a dataset's rows, in order, into this many files of nearly equal size; return their paths."""
    made = [folder / f"{Path(path).stem}-{place}-of-{number}.parquet" for place in range(1, number + 1)]
    if not all(file.exists() for file in made):
        table = pq.read_table(path)
        ends = [table.num_rows * place // number for place in range(number + 1)]
        for file, start, end in zip(made, ends, ends[1:], strict=False):
            pq.write_table(table.slice(start, end - start), file, compression="lz4", row_group_size=100_000)
    return [str(file) for file in made]


def found_in_files(tables: Tables, job: DatabaseJob, frame: str) -> list[str]:
    """Compare every client's rows with the dataset; report the client of the first difference."""
    for place, one in enumerate(job.shared(), start=1):
        if wrong := tables.differences_in_file(one.result, frame):
            return [f"client {place} of {job.clients}: {wrong[0]}", *wrong[1:]]
    return []
