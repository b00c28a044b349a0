"""The rig of ELT suites: trees of CSV files on local disk and on an S3 server, over several links."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from harness.check import row_sums
from harness.datasets import raw_csv
from harness.datasets.raw_csv import Tree
from harness.lab import s3
from harness.lab.object_stores import Objects, object_store
from harness.lab.packages import not_installed
from harness.machine import page_cache
from harness.machine.inventory import filesystem, require_disk
from harness.model import Case, LabError, ObjectStore
from harness.run.rigs.objects import OnObjectStore
from harness.run.rigs.rig import Checked, Rig, RunRequest, only_parameters, working_folder
from harness.worker.contracts.elt import EltJob
from harness.worker.messages import Answer, Numbers

REQUIRES = ("duckdb",)  # the witness for all other clients
PARAMETERS = frozenset({"rows", "storage", "network"})
STORAGE = ("local to local", "local to s3", "s3 to local", "s3 to s3")
_NETWORK = re.compile(r"direct|link(?: (?P<latency>\d+) ms)?(?: (?P<rate>\d+) MB/s per connection)?")
_WARMUP_ROWS = 2_000
_OUTPUT_BYTES_A_ROW = 120  # upper bound of a row in the resulting Parquet file
_SQL = {"int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "timestamp[us]": "TIMESTAMP"}
_SQL_TYPES = {name: _SQL[str(dtype)] for name, dtype in raw_csv.TYPES.items()}
_READERS: dict[str, row_sums.Reader] = {"duckdb": row_sums.by_polars}  # by client under test; DuckDB by default


@dataclass(frozen=True)
class EltRig(OnObjectStore):
    """Trees by number of rows, the S3 server (or the reason without one), and folders; see `rig.Rig`."""

    trees: dict[int, Tree]
    objects: Objects | str
    bucket: str
    folder: Path
    expected: dict[tuple[int, str], row_sums.RowSums] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        sizes = ", ".join(f"{tree.bytes / 1e9:.2f} GB in {tree.files} files" for tree in self._measured_trees())
        server = (
            f"no S3 server: {self.objects}" if isinstance(self.objects, str) else f"S3: {self.objects.server.version}"
        )
        return f"CSV on {filesystem(self.folder)}: {sizes}; {server}"

    def facts(self) -> dict[str, object]:
        return {
            "data": [raw_csv.facts(tree) for tree in self._measured_trees()],
            "servers": self.server_of_store(),
            "server_filesystem": filesystem(self.folder),
        }

    def on_s3(self, case: Case) -> bool:
        return "s3" in _places(case)

    def store(self, case: Case) -> ObjectStore | None:
        network, direct = str(case.parameters["network"]), super().store(case)
        if direct is None or isinstance(self.objects, str) or network == "direct":
            return direct
        return self.objects.over(*_limits(network))

    def extent(self, case: Case) -> tuple[int, int | None]:
        tree = self.trees[int(case.parameters["rows"])]
        return tree.rows, tree.bytes

    def unavailable(self, case: Case) -> str | None:
        if reason := not_installed(case.transport.requires):
            return reason
        if not self.on_s3(case):
            return None
        if isinstance(self.objects, str):
            return self.objects
        if case.parameters["network"] != "direct" and self.objects.links is None:
            return self.objects.no_links
        return None

    def prepare(self, case: Case) -> EltJob:
        """Bring the source into the page cache, make space for the result, and return both paths."""
        tree, warmup = self.trees[int(case.parameters["rows"])], self.trees[_WARMUP_ROWS]
        if _places(case)[0] == "local":
            page_cache.warm([path for path in tree.raw.rglob("*") if path.is_file()])
        self.settle(case)
        for name in ("out", "scratch"):
            (self.folder / name).mkdir()
        return EltJob(
            transport=case.transport.id,
            folder=str(self.folder / "scratch"),
            s3=self.store(case),
            source=self._source(case, tree),
            destination=self._destination(case, "result"),
            warmup_source=self._source(case, warmup),
            warmup_destination=self._destination(case, "warmup"),
        )

    def check(self, case: Case, job: EltJob, answer: Answer) -> Checked:
        """Compare every row of the file with the tree's meaning, and report its types and size."""
        path = self.folder / "out" / "result.parquet"
        if _places(case)[1] == "s3":
            assert not isinstance(self.objects, str)
            self.objects.ask(s3.download, self.bucket, "out/result.parquet", path)
        details: Numbers = {"output_bytes": path.stat().st_size}
        types = self._types(case)
        missing = types.keys() - set(pq.read_schema(path).names)
        if missing:
            return Checked([f"no column {', '.join(sorted(missing))}; the file needs {', '.join(types)}"])
        found = self._read(case)([str(path)], types, "/raw/")
        return Checked(row_sums.differences(self._expected(case), found), _converted(path), details)

    def settle(self, case: Case) -> None:
        """Remove the result and engines' spilled files."""
        self._greet(case)
        for name in ("out", "scratch"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        if not isinstance(self.objects, str) and _places(case)[1] == "s3":
            self.objects.ask(s3.remove_all, self.bucket, "out/")

    def _measured_trees(self) -> list[Tree]:
        return [tree for rows, tree in sorted(self.trees.items()) if rows != _WARMUP_ROWS]

    def _source(self, case: Case, tree: Tree) -> str:
        return str(tree.raw) if _places(case)[0] == "local" else f"s3://{self.bucket}/{tree.rows}/raw"

    def _destination(self, case: Case, name: str) -> str:
        place = f"s3://{self.bucket}" if _places(case)[1] == "s3" else str(self.folder)
        return f"{place}/out/{name}.parquet"

    def _read(self, case: Case) -> row_sums.Reader:
        return _READERS.get(case.transport.client, row_sums.by_duckdb)

    def _types(self, case: Case) -> dict[str, str]:
        return {name: _SQL_TYPES[name] for name in self.trees[int(case.parameters["rows"])].columns}

    def _expected(self, case: Case) -> row_sums.RowSums:
        rows, read = int(case.parameters["rows"]), self._read(case)
        key = (rows, read.__name__)
        if key not in self.expected:
            files = sorted(str(path) for path in self.trees[rows].meant.iterdir())
            self.expected[key] = read(files, self._types(case), "/raw/")
        return self.expected[key]


def _places(case: Case) -> list[str]:
    """Return where a case reads from and writes to."""
    return str(case.parameters["storage"]).split(" to ")


def _converted(path: Path) -> dict[str, str]:
    """Return the file's columns with other types than canonical, and these."""
    found = {field.name: str(field.type).removeprefix("large_") for field in pq.read_schema(path)}
    wanted = {name: str(dtype) for name, dtype in raw_csv.TYPES.items()}
    return {name: dtype for name, dtype in found.items() if dtype not in (wanted.get(name, dtype), "string_view")}


def _limits(network: str) -> tuple[int, int]:
    """Return the added latency in ms and a connection's bytes/s for a value of `network`; 0 for none."""
    found = _NETWORK.fullmatch(network)
    assert found is not None
    return int(found["latency"] or 0), int(found["rate"] or 0) * 1_000_000


def _check(request: RunRequest) -> None:
    only_parameters(request.cases, PARAMETERS)
    for case in request.cases:
        values = case.parameters
        if (
            case.dataset != "raw_csv"
            or values["storage"] not in STORAGE
            or not _NETWORK.fullmatch(str(values["network"]))
        ):
            raise LabError(
                f"experiment {case.experiment}: {case.dataset}: {case.label}: choose raw_csv, a storage of "
                f'{", ".join(STORAGE)}, and a network like direct, link, "link 10 ms" or "link 90 MB/s per connection"'
            )


@contextmanager
def opened(request: RunRequest) -> Iterator[Rig[EltJob, Answer]]:
    """Build the trees, start or find the S3 server, and upload the trees that are read from it.

    Everything is removed at the end except the trees in the datasets folder. Raises LabError: too little disk space, an
    unknown parameter, an S3 server in the environment that does not answer.
    """
    _check(request)
    settings = request.settings
    with ExitStack() as stack:
        folder = stack.enter_context(working_folder(settings, "elt"))
        sizes = sorted({int(case.parameters["rows"]) for case in request.cases} | {_WARMUP_ROWS})
        building = sum(raw_csv.needed_bytes(settings.datasets_dir, rows, request.plan.seed) for rows in sizes)
        on_s3 = [case for case in request.cases if "s3" in _places(case) and not not_installed(case.transport.requires)]
        users = sorted({case.transport.id for case in on_s3})
        user_store = bool(on_s3) and settings.s3_endpoint is None
        running = (2 if user_store else 1) * _OUTPUT_BYTES_A_ROW * sizes[-1]
        running += sum(raw_csv.most_bytes(rows) for rows in sizes) * user_store
        require_disk(settings.datasets_dir, building + running, "or choose a smaller SIZE")
        request.say(
            f"elt: up to {(building + running) / 1e9:.1f} GB of disk, {running / 1e9:.1f} GB of it removed at the end"
        )
        trees = {rows: raw_csv.ensure(settings.datasets_dir, rows, request.plan.seed, request.say) for rows in sizes}
        folder.mkdir(parents=True)
        with_links = any(case.parameters["network"] != "direct" for case in on_s3)
        objects, bucket = stack.enter_context(object_store(settings, users, request.run_id, request.say, with_links))
        if not isinstance(objects, str):
            read = {int(c.parameters["rows"]) for c in on_s3 if _places(c)[0] == "s3"} | {_WARMUP_ROWS}
            for rows in sorted(read):
                s3.upload(objects.store, bucket, trees[rows].raw, f"{rows}/raw")
        yield EltRig(trees, objects, bucket, folder)
