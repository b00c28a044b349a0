"""The rig of store suites: one dataset at several sizes, and stores on disk made from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from harness import registry
from harness.check.canonical import canonicalise, load_frame
from harness.check.equality import differences
from harness.datasets import store
from harness.datasets.ordered import OrderedColumns
from harness.datasets.specification import Specification
from harness.lab import interpreters
from harness.lab.packages import not_installed
from harness.machine import page_cache
from harness.machine.inventory import filesystem, require_disk, require_memory
from harness.model import Case, Dataset, LabError, Operation, Transport
from harness.run.execution import Worker
from harness.run.rigs.rig import Checked, Rig, RunRequest, dataset_facts, only_parameters, working_folder
from harness.worker.contracts.stores import StoreAnswer, StoreJob
from harness.worker.messages import Failed

if TYPE_CHECKING:
    import pyarrow as pa


# Stores on disk, read for verification by a library other than the writer's if one exists.


def fetch(client: str, folder: Path, columns: list[str]) -> pa.Table:
    """Return these columns of the store that `client` made in a folder. Raises KeyError for other clients.

    DuckDB reads stores of Parquet files, and ADBC reads SQLite. Only DuckDB and Lance themselves can read a DuckDB file
    and a Lance dataset.
    """
    return _READERS[client](folder, columns)


def _parquet_files(folder: Path, columns: list[str]) -> pa.Table:
    import duckdb

    files = sorted(str(path) for path in folder.rglob("*.parquet"))
    with duckdb.connect() as connection:
        relation = connection.read_parquet(files)
        return relation.select(*map(duckdb.ColumnExpression, columns)).to_arrow_table()


def _sqlite(folder: Path, columns: list[str]) -> pa.Table:
    import adbc_driver_sqlite.dbapi

    with (
        adbc_driver_sqlite.dbapi.connect(str(_only(folder, "*.sqlite"))) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"SELECT {', '.join(columns)} FROM {_TABLE}")
        return cursor.fetch_arrow_table()


def _duckdb(folder: Path, columns: list[str]) -> pa.Table:
    import duckdb

    with duckdb.connect(str(_only(folder, "*.duckdb")), read_only=True) as connection:
        return connection.table(_TABLE).select(*map(duckdb.ColumnExpression, columns)).to_arrow_table()


def _lance(folder: Path, columns: list[str]) -> pa.Table:
    import lance

    return lance.dataset(str(_only(folder, "*.lance"))).to_table(columns=columns)


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise FileNotFoundError(f"{len(found)} files in {folder.name} match {pattern}; a store has one")
    return found[0]


_TABLE = "benchmark"  # the published benchmark's table name
_READERS: dict[str, Callable[[Path, list[str]], pa.Table]] = {
    **dict.fromkeys(("parquetdb", "pyarrow", "polars", "delta"), _parquet_files),
    "sqlite": _sqlite,
    "duckdb": _duckdb,
    "lance": _lance,
}


REQUIRES = ("duckdb", "adbc_driver_sqlite")  # the witnesses
PARAMETERS = frozenset({"rows"})
_QUERY = (pl.col("col1") > 100, pl.col("col97") < 1000)  # the published benchmark's filter
WARMUP_ROWS = 1_000
_BYTES_A_ROW = 900  # upper bound of a row in a store or an Arrow file: 100 columns of 8 bytes, with overhead
# Upper bounds of a worker's peak memory in bytes per row, measured at 100,000 rows, by the data's form in memory.
_MEMORY_A_ROW = {"dicts": 10_000, "tuples": 6_500, "pyarrow": 6_500}


@dataclass(frozen=True)
class StoreRig(Rig[StoreJob, StoreAnswer]):
    """Datasets by number of rows, and a folder for the stores; see `harness.run.rigs.rig.Rig`."""

    spec: Specification
    datasets: dict[int, Dataset]
    folder: Path
    time_limit: float
    expected: dict[tuple[int, bool], pl.DataFrame | OrderedColumns] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        sizes = ", ".join(f"{rows:,}" for rows in sorted(self.datasets))
        return f"stores of {self.spec.name} on {filesystem(self.folder)}: {sizes} rows; no server"

    def facts(self) -> dict[str, object]:
        return {
            "data": [dataset_facts(dataset) for _, dataset in sorted(self.datasets.items())],
            "servers": {},
            "server_filesystem": filesystem(self.folder),
        }

    def extent(self, case: Case) -> tuple[int, int | None]:
        return int(case.parameters["rows"]), None

    def room(self, case: Case) -> int:
        return int(case.parameters["rows"]) * _BYTES_A_ROW

    def unavailable(self, case: Case) -> str | None:
        return not_installed(case.transport.requires)

    def prepare(self, case: Case) -> StoreJob:
        """Create an empty folder for a new store, or make sure that the verified store exists, read from memory."""
        entry, rows = case.transport, int(case.parameters["rows"])
        warmup = self._fresh("warmup") if entry.operation is Operation.CREATE else self._made(entry, WARMUP_ROWS)
        folder = self._fresh("created") if entry.operation is Operation.CREATE else self._made(entry, rows)
        page_cache.warm([path for path in folder.rglob("*") if path.is_file()])
        return self._job(entry, rows, folder, warmup)

    def check(self, case: Case, job: StoreJob, answer: StoreAnswer) -> Checked:
        """Compare every row of a created store, or of a read's or query's result."""
        entry, rows = case.transport, int(case.parameters["rows"])
        if entry.operation is Operation.CREATE:
            wrong = self._differences_in_store(entry, rows, Path(job.folder))
            if not wrong and not self._place(entry, rows).exists():
                Path(job.folder).rename(self._place(entry, rows))  # verified, so reads and queries may use it
            return Checked(wrong)
        expected = self._expected(rows, filtered=entry.operation is Operation.QUERY)
        return Checked(differences(expected, pl.read_ipc(job.result), self.spec.row_key), answer.converted)

    def settle(self, case: Case) -> None:
        """Remove the store of a create."""
        for name in ("created", "warmup"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _job(self, entry: Transport, rows: int, folder: Path, warmup: Path) -> StoreJob:
        return StoreJob(
            transport=entry.id,
            folder=str(folder),
            warmup_folder=str(warmup),
            dataset=self.datasets[rows].path,
            warmup_dataset=self.datasets[WARMUP_ROWS].path,
            rows=rows,
            logical_types=self.spec.logical_types,
        )

    def _fresh(self, name: str) -> Path:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def _place(self, entry: Transport, rows: int) -> Path:
        return self.folder / f"{entry.system}.{entry.client}-{rows}"

    def _made(self, entry: Transport, rows: int) -> Path:
        """Return the folder of the store for reads and queries; it is created and verified on first use."""
        folder = self._place(entry, rows)
        if folder.exists():
            return folder
        making = self._fresh("made")
        create = registry.one(f"{entry.system}.{entry.client}.create")
        job = self._job(create, rows, making, self._fresh("warmup"))
        answer = Worker(self.folder / "log", interpreters.command_of(create)).ask(job, self.time_limit).answer
        if isinstance(answer, Failed):
            raise LabError(f"the store could not be made by {create.id}: {answer.error}")
        if wrong := self._differences_in_store(create, rows, making):
            raise LabError(f"{create.id} made a store with wrong values: {wrong[0]}")
        return making.rename(folder)

    def _differences_in_store(self, entry: Transport, rows: int, folder: Path) -> list[str]:
        table = fetch(entry.client, folder, list(self.spec.logical_types))
        frame, _ = canonicalise(table, self.spec.logical_types)
        return differences(self._expected(rows, filtered=False), frame, self.spec.row_key)

    def _expected(self, rows: int, filtered: bool) -> pl.DataFrame | OrderedColumns:
        if (rows, filtered) not in self.expected:
            if filtered:
                frame = load_frame(self.datasets[rows].path, "polars", self.spec.logical_types).filter(*_QUERY)
                self.expected[rows, True] = frame.sort(self.spec.row_key)
            else:
                self.expected[rows, False] = OrderedColumns(self.datasets[rows], self.spec)
        return self.expected[rows, filtered]


@contextmanager
def opened(request: RunRequest) -> Iterator[Rig[StoreJob, StoreAnswer]]:
    """Build the datasets and a folder for stores, which is removed at the end with its content.

    Raises LabError: more than one dataset, too little disk space or memory for the largest size.
    """
    only_parameters(request.cases, PARAMETERS)
    names = {case.dataset for case in request.cases}
    if len(names) > 1:
        raise LabError(f"a run on stores has one dataset; choose one of {', '.join(sorted(names))}")
    with working_folder(request.settings, "stores") as folder:
        needed = _disk_bytes(request.cases)
        require_disk(folder, needed, "or choose a smaller SIZE")
        for name, bytes_a_row in _MEMORY_A_ROW.items():
            rows = max((int(c.parameters["rows"]) for c in request.cases if c.transport.frame == name), default=0)
            require_memory(rows * bytes_a_row, f"{rows:,} rows as {name}", "choose a smaller SIZE or fewer ROWS")
        request.say(f"stores: up to {needed / 1e9:.1f} GB of disk in {folder.name}/ while it runs, removed at the end")
        spec = store.specification(names.pop())
        sizes = {int(case.parameters["rows"]) for case in request.cases} | {WARMUP_ROWS}
        datasets = {
            rows: store.ensure(request.settings.datasets_dir, spec.name, rows, request.plan.seed) for rows in sizes
        }
        folder.mkdir(parents=True)
        yield StoreRig(spec, datasets, folder, request.plan.time_limit)


def _disk_bytes(cases: Sequence[Case]) -> int:
    """Return the size of all stores for reads and queries together, and of the largest that is being created."""
    kept = {(c.transport.system, c.transport.client, int(c.parameters["rows"])) for c in cases}
    largest = max(rows for *_, rows in kept)
    return _BYTES_A_ROW * (sum(rows for *_, rows in kept) + largest)
