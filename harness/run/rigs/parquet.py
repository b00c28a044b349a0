"""The rig of scan suites: lineitem in Parquet files of many layouts, read through the page cache."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.datasets import lineitem
from harness.datasets.lineitem import Layout, LineitemFile
from harness.lab.packages import not_installed
from harness.machine import page_cache
from harness.machine.inventory import available_memory, filesystem
from harness.model import Case, LabError
from harness.run.rigs.rig import Checked, Rig, RunRequest, Unavailable, only_parameters, working_folder
from harness.worker.contracts.parquet import ParquetAnswer, ParquetJob

REQUIRES = ("duckdb", "duckdb_extensions", "duckdb_extension_tpch")  # makes the files
PARAMETERS = frozenset({"scale_factor", "parts", "files", "parts_per_file", "row_group_rows", "page_cache"})
PAGE_CACHE = ("warm", "dropped", "as found")
_WARMUP = Layout(scale_factor=0.001, parts=1, first_part=0, part_count=1, row_group_rows=300_000)
_LARGEST_WARM_SHARE = 0.8  # share of available memory: more would evict itself from the page cache
_RESIDENT_AFTER_DROP = 0.05  # share of pages that may remain in a dropped cache


@dataclass(frozen=True)
class ParquetRig(Rig[ParquetJob, ParquetAnswer]):
    """The files of every layout that the cases use; see `harness.run.rigs.rig.Rig`."""

    files: dict[Layout, LineitemFile]
    datasets_folder: Path
    scratch: Path

    @property
    def headline(self) -> str:
        total = sum(file.bytes for file in self.files.values())
        return (
            f"Parquet files: {len(self.files) - 1} of lineitem, {total / 1e9:.2f} GB "
            f"on {filesystem(self.datasets_folder)}; no server"
        )

    def facts(self) -> dict[str, object]:
        return {
            "data": [lineitem.facts(file) for file in self.files.values()],
            "servers": {},
            "server_filesystem": filesystem(self.datasets_folder),
        }

    def extent(self, case: Case) -> tuple[int, int | None]:
        files = self._files(case)
        return sum(file.rows for file in files), sum(file.bytes for file in files)

    def unavailable(self, case: Case) -> str | None:
        if case.parameters["page_cache"] == "dropped" and sys.platform != "linux":
            return f"files cannot be dropped from the page cache on {sys.platform}"
        return not_installed(case.transport.requires)

    def prepare(self, case: Case) -> ParquetJob:
        """Bring the page cache into the state that the case requires, and return the files."""
        files = self._files(case)
        paths = [Path(file.path) for file in files]
        _set_page_cache(str(case.parameters["page_cache"]), paths, sum(file.bytes for file in files))
        self.settle(case)
        self.scratch.mkdir(parents=True)
        return ParquetJob(
            transport=case.transport.id,
            folder=str(self.scratch),
            files=[str(path) for path in paths],
            warmup_files=[self.files[_WARMUP].path],
        )

    def check(self, case: Case, job: ParquetJob, answer: ParquetAnswer) -> Checked:
        """Compare the number with the generator's, known before the rows became Parquet."""
        known = sum(file.matches for file in self._files(case))
        return Checked([] if answer.count == known else [f"expected {known} rows to pass, found {answer.count}"])

    def settle(self, case: Case) -> None:
        """Remove engines' spilled files."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _files(self, case: Case) -> list[LineitemFile]:
        return [self.files[layout] for layout in layouts_of(case)]


def layouts_of(case: Case) -> list[Layout]:
    """Return the files of a case: `files` of them, each with the next `parts_per_file` parts of the whole."""
    values = case.parameters
    parts, each = int(values["parts"]), int(values["parts_per_file"])
    if int(values["files"]) * each > parts:
        raise LabError(f"experiment {case.experiment}: {case.label}: choose at most {parts} parts in all files")
    return [
        Layout(
            scale_factor=float(values["scale_factor"]),
            parts=parts,
            first_part=number * each,
            part_count=each,
            row_group_rows=int(values["row_group_rows"]),
        )
        for number in range(int(values["files"]))
    ]


def _set_page_cache(state: str, paths: list[Path], total: int) -> None:
    if state == "warm":
        available = available_memory()
        if total > available * _LARGEST_WARM_SHARE:
            raise Unavailable(
                f"{total / 1e9:.1f} GB of files cannot stay in the page cache of {available / 1e9:.1f} GB of memory"
            )
        page_cache.warm(paths)
    elif state == "dropped":
        page_cache.drop(paths)
        left = max(page_cache.resident_share(path) for path in paths)
        if left > _RESIDENT_AFTER_DROP:
            raise Unavailable(f"{left:.0%} of a file stayed in the page cache after it was dropped")


@contextmanager
def opened(request: RunRequest) -> Iterator[Rig[ParquetJob, ParquetAnswer]]:
    """Build the files of all cases. Raises LabError: too little disk space or memory, an unknown parameter or value."""
    only_parameters(request.cases, PARAMETERS)
    for case in request.cases:
        if case.dataset != "lineitem" or case.parameters["page_cache"] not in PAGE_CACHE:
            raise LabError(
                f"experiment {case.experiment}: {case.dataset} and page_cache {case.parameters['page_cache']}: "
                f"choose lineitem and a page_cache of {', '.join(PAGE_CACHE)}"
            )
    wanted = [_WARMUP, *dict.fromkeys(layout for case in request.cases for layout in layouts_of(case))]
    folder = request.settings.datasets_dir / "lineitem"
    lineitem.require_disk(folder, wanted)
    lineitem.require_memory(folder, wanted)
    files = lineitem.ensure_all(folder, wanted, request.say)
    with working_folder(request.settings, "scan") as working:
        yield ParquetRig(files, folder, working)
