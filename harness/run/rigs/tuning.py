"""The rig of tuning suites: a table as Parquet files, as a database file and on an S3 server; disk and memory."""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.datasets import benchmark_input
from harness.datasets.benchmark_input import InputFiles
from harness.lab import s3
from harness.lab.object_stores import Objects, object_store
from harness.lab.packages import not_installed
from harness.machine import page_cache
from harness.machine.inventory import filesystem, require_disk, require_memory
from harness.model import Case, LabError, Value
from harness.run.rigs.objects import OnObjectStore
from harness.run.rigs.rig import Checked, Rig, RunRequest, working_folder, wrong_parameters, wrong_value
from harness.run.rigs.tuning_answers import CHECKS, Done, differences
from harness.worker.contracts.tuning import TuningAnswer, TuningJob
from harness.worker.messages import Numbers

REQUIRES = ("duckdb",)  # makes the database files
PARAMETERS = frozenset({"rows", "files", "source", "threads", "queries", "elements"})
SOURCES = ("table", "parquet", "s3")
_WARMUP = (2_000, 2)  # warm-up rows and files
_WARMUP_ELEMENTS = 10_000
_DATABASE_BYTES_A_ROW = 8  # upper bounds, without each file's fixed size
_PARQUET_BYTES_A_ROW = 12
_FILE_BYTES = 2_000_000
_ELEMENT_BYTES = 24  # bytes of one element in three float64 arrays


@dataclass(frozen=True)
class TuningRig(OnObjectStore):
    """Tables and database files by (rows, files), the S3 server (or the reason without one); see `rig.Rig`."""

    tables: dict[tuple[int, int], InputFiles]
    databases: dict[tuple[int, int], Path]
    objects: Objects | str
    bucket: str
    folder: Path

    @property
    def headline(self) -> str:
        sizes = ", ".join(f"{table.rows:,} rows in {table.files} files" for table in self._measured_tables())
        if isinstance(self.objects, str):
            return f"benchmark_input on {filesystem(self.folder)}: {sizes or 'none'}; no S3 server: {self.objects}"
        return f"benchmark_input on {filesystem(self.folder)}: {sizes}; S3: {self.objects.server.version}"

    def facts(self) -> dict[str, object]:
        return {
            "data": [benchmark_input.facts(table) for table in self._measured_tables()],
            "servers": self.server_of_store(),
            "server_filesystem": filesystem(self.folder),
        }

    def on_s3(self, case: Case) -> bool:
        return _on_s3(case)

    def extent(self, case: Case) -> tuple[int, int | None]:
        """Return the rows and bytes of the table; for a job on arrays their elements and bytes."""
        if (key := _key(case)) is None:
            elements = int(case.parameters["elements"])
            return elements, _ELEMENT_BYTES * elements
        return self.tables[key].rows, self.tables[key].bytes

    def unavailable(self, case: Case) -> str | None:
        if reason := not_installed(case.transport.requires):
            return reason
        return self.objects if self.on_s3(case) and isinstance(self.objects, str) else None

    def prepare(self, case: Case) -> TuningJob:
        """Bring the source into the page cache, create empty folders, and return the transport's arguments."""
        self.settle(case)
        for name in ("scratch", "warmup", "measured"):
            (self.folder / name).mkdir()
        if (key := _key(case)) and case.parameters.get("source") == "table":
            page_cache.warm([self.databases[key]])
        elif key and case.parameters.get("source") == "parquet":
            page_cache.warm(self.tables[key].paths)
        os.sync()  # flush earlier runs' writes, so that they do not count for this run
        little: dict[str, Value] = {"elements": _WARMUP_ELEMENTS} if "elements" in _names(case) else {}
        return TuningJob(
            transport=case.transport.id,
            folder=str(self.folder / "scratch"),
            s3=self.store(case),
            arguments=self._arguments(case, key, "measured"),
            warmup_arguments=self._arguments(case, _WARMUP, "warmup") | little,
        )

    def check(self, case: Case, job: TuningJob, answer: TuningAnswer) -> Checked:
        """Compare the answer and the created files with the known data, and report sizes and rates."""
        key, made, kept = _key(case), self.folder / "measured", self.folder / "kept"
        if "destination" in job.arguments:
            assert not isinstance(self.objects, str)
            shutil.rmtree(made)  # local copies from before the upload prove nothing
            made.mkdir()
            for found in self.objects.ask(s3.sizes, self.bucket, "out/measured/"):
                self.objects.ask(s3.download, self.bucket, found, made / Path(found).name)
        files = sorted(path for path in made.iterdir() if path.is_file())
        details: Numbers = {}
        if {"destination", "database"} & job.arguments.keys():
            size = sum(path.stat().st_size for path in files)
            rate = size / answer.measured.report.seconds
            details = {"output_bytes": size, "output_files": len(files), "output_bytes_per_s": rate}
        kept.mkdir(exist_ok=True)
        table = self.tables[key] if key else None
        done = Done(case, table, answer.returned, job.arguments, files, kept)
        return Checked(differences(done), details=details)

    def settle(self, case: Case) -> None:
        """Remove the files that a run left."""
        self._greet(case)
        for name in ("scratch", "warmup", "measured", "kept"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        if not isinstance(self.objects, str) and "destination" in _names(case):
            self.objects.ask(s3.remove_all, self.bucket, "out/")

    def _measured_tables(self) -> list[InputFiles]:
        return [table for key, table in sorted(self.tables.items()) if key != _WARMUP]

    def _arguments(self, case: Case, key: tuple[int, int] | None, name: str) -> dict[str, Value]:
        """Return the arguments that a transport requests by name."""
        made = self.folder / name
        known: dict[str, Value] = {
            **{name: case.parameters[name] for name in ("threads", "queries", "elements") if name in case.parameters},
            "folder": str(made),
            "database": str(made / "made.duckdb"),
            "path": str(made / "written"),
            "destination": f"s3://{self.bucket}/out/{name}",
        }
        if key and (source := case.parameters.get("source")):
            places = {"parquet": self.tables[key].pattern, "s3": f"s3://{self.bucket}/{_prefix(key)}/*.parquet"}
            known["source"] = str(self.databases[key]) if source == "table" else places[str(source)]
        if key in self.databases:
            known["size"] = self.databases[key].stat().st_size
        return {name: known[name] for name in _names(case)}


def _names(case: Case) -> list[str]:
    """Return a transport's argument names, after the connection."""
    return list(inspect.signature(case.transport.function).parameters)[1:]


def _key(case: Case) -> tuple[int, int] | None:
    """Return the rows and files of a case's table; None without a table."""
    return (int(case.parameters["rows"]), int(case.parameters["files"])) if "rows" in case.parameters else None


def _prefix(key: tuple[int, int]) -> str:
    return f"in/{key[0]}-{key[1]}"


def _from_s3(case: Case) -> bool:
    return case.parameters.get("source") == "s3"


def _on_s3(case: Case) -> bool:
    return _from_s3(case) or "destination" in _names(case)


def _can_run_on_s3(request: RunRequest) -> list[Case]:
    """Return the cases that need the S3 server, if there is one."""
    return [case for case in request.cases if _on_s3(case) and not not_installed(case.transport.requires)]


def _in_database(case: Case) -> bool:
    return case.parameters.get("source") == "table" or "size" in _names(case)


def _check(request: RunRequest) -> None:
    """Raise LabError if a case lacks a parameter, has one that changes nothing, or an unknown value."""
    for case in request.cases:
        names, found = set(_names(case)), case.parameters.keys()
        needed = (names & PARAMETERS) | ({"rows", "files"} if names & {"source", "size"} else set())
        if not needed <= found or not found - needed <= {"source"}:
            raise wrong_parameters(case, needed)
        if case.parameters.get("source", SOURCES[0]) not in SOURCES:
            raise wrong_value(case, "source", " or ".join(SOURCES))
        if case.transport.function.__name__ not in CHECKS:
            place = "harness/run/rigs/tuning_answers.py"
            raise LabError(f"{case.transport.id} has no known answer; give it a check in {place}")


def _keys(cases: Iterable[Case]) -> set[tuple[int, int]]:
    return {key for case in cases if (key := _key(case))}


def _require_room(request: RunRequest, keys: Iterable[tuple[int, int]]) -> None:
    """Report the maximum disk space of a run. Raises LabError if that, or memory for the arrays, is missing."""
    folder, seed = request.settings.datasets_dir, request.plan.seed
    user_store = bool(_can_run_on_s3(request)) and request.settings.s3_endpoint is None
    building = sum(benchmark_input.needed_bytes(folder, *key, seed) for key in keys)
    databases, copied = _keys(filter(_in_database, request.cases)), _keys(filter(_from_s3, request.cases))
    running = sum(rows * _DATABASE_BYTES_A_ROW + _FILE_BYTES for rows, _ in databases)
    running += sum(benchmark_input.most_bytes(*key) for key in copied) * user_store
    running += max((_made_bytes(case, user_store) for case in request.cases), default=0)
    require_disk(folder, building + running, "or choose a smaller SIZE")
    elements = max((int(case.parameters.get("elements", 0)) for case in request.cases), default=0)
    require_memory(elements * _ELEMENT_BYTES, "arrays of the triad", "choose a smaller SIZE")
    request.say(
        f"tuning: up to {(building + running) / 1e9:.1f} GB of disk, {running / 1e9:.1f} GB of it removed at the end"
    )


def _made_bytes(case: Case, user_store: bool) -> int:
    """Return an upper bound of one run's disk space, including its verification."""
    names, (rows, _) = set(_names(case)), _key(case) or (0, 0)
    made = 0
    if names & {"database", "size"}:
        made = rows * (_DATABASE_BYTES_A_ROW + _PARQUET_BYTES_A_ROW)
    elif "destination" in names:
        made = rows * _PARQUET_BYTES_A_ROW * (1 + user_store)
    elif "folder" in names:
        made = rows * _PARQUET_BYTES_A_ROW
    return made + _FILE_BYTES


@contextmanager
def opened(request: RunRequest) -> Iterator[Rig[TuningJob, TuningAnswer]]:
    """Build the tables, load those that are read from a database file, and start or find the S3 server.

    Everything is removed at the end except the Parquet files in the datasets folder. Raises LabError: too little disk
    space or memory, a wrong parameter, an S3 server in the environment that does not answer.
    """
    _check(request)
    settings = request.settings
    with ExitStack() as stack:
        folder = stack.enter_context(working_folder(settings, "tuning"))
        keys = sorted({_WARMUP} | _keys(request.cases))
        _require_room(request, keys)
        tables = {
            key: benchmark_input.ensure(settings.datasets_dir, *key, request.plan.seed, request.say) for key in keys
        }
        folder.mkdir(parents=True)
        loaded = sorted({_WARMUP} | _keys(filter(_in_database, request.cases)))
        databases = {key: _load(folder / f"{key[0]}-{key[1]}.duckdb", tables[key]) for key in loaded}
        on_s3 = _can_run_on_s3(request)
        users = sorted({case.transport.id for case in on_s3})
        objects, bucket = stack.enter_context(object_store(settings, users, request.run_id, request.say))
        if not isinstance(objects, str):
            requests = s3.client(objects.store, read_seconds=60.0)
            for key in sorted({_WARMUP} | _keys(filter(_from_s3, on_s3))):
                for path in tables[key].paths:
                    requests.upload_file(str(path), bucket, f"{_prefix(key)}/{path.name}")
        yield TuningRig(tables, databases, objects, bucket, folder)


def _load(path: Path, table: InputFiles) -> Path:
    """Create a database file with the table. The queries' answers show whether its rows are right."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE benchmark_input AS SELECT * FROM read_parquet($files)", {"files": table.pattern}
        )
    return path
