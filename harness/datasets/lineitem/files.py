"""Files of lineitem on disk, built or reused, each part once; the required space and memory are known before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.datasets import manifest
from harness.datasets.lineitem.layout import Action, Layout, Step, most_bytes, plan
from harness.machine import inventory
from harness.model import Facts, LabError

GENERATOR = 1  # increase it when the rows, the known answers or their encoding change, to rebuild older files
_PARTS = "parts"  # folder of intermediate parts: the next build reuses those of an interrupted one
_BUILDER = (sys.executable, "-m", "harness.datasets.lineitem.builder")

# Well above the builder's measured use: 1.8 GB for a part of scale factor 1, 0.4 GB at 0.1; 0.3 GB for concatenating
# parts, 0.8 GB with the largest row groups.
_MEMORY = 1_000_000_000
_MEMORY_PER_SCALE_FACTOR = 3_000_000_000


@dataclass(frozen=True)
class LineitemFile:
    """A file on disk. Rows, matches and content come from the generator's table, before the rows became Parquet.

    `matches` is the number of rows that the scan suite's query counts. `content_id` is a hexadecimal sum modulo 2^64,
    over all rows, of the first 8 bytes of the MD5 of the row as text. Files with the same rows have the same sum,
    whatever their layout. Several files together have the sums of their rows, matches and content_id.
    """

    layout: Layout
    path: str
    rows: int
    bytes: int
    matches: int
    content_id: str
    row_groups: int
    smallest_row_group: int
    largest_row_group: int
    duckdb_version: str  # the version that wrote it


def ensure_all(folder: Path, layouts: Sequence[Layout], say: Callable[[str], None]) -> dict[Layout, LineitemFile]:
    """Return the files of all layouts, building those that are missing, damaged or of an older generator.

    Each part is generated once, and removed after its last use unless it is requested itself. `say` receives every
    step. Two simultaneous builds in one folder are not supported. Raises LabError: a folder that is not writable,
    a disk that fills up, a builder that is killed.
    """
    with manifest.building("lineitem", folder):
        (folder / _PARTS).mkdir(parents=True, exist_ok=True)
        for unfinished in [*folder.glob("*.partial-*"), *folder.glob("*/*.partial-*")]:
            _remove(unfinished)
        asked = frozenset(layouts)
        known = _there(folder, layouts)
        steps = plan(asked, known)
        for number, step in enumerate(steps):
            path = folder / ("" if step.layout in asked else _PARTS) / step.layout.file_name
            path.with_suffix(".json").unlink(missing_ok=True)
            path.unlink(missing_ok=True)  # also before it is built again: a damaged file only takes space
            if step.action is not Action.REMOVE:
                say(_step_in_words(steps, number))
                known[step.layout] = _make(folder, path, step, known)
        shutil.rmtree(folder / _PARTS)
    return {layout: known[layout] for layout in layouts}


def needed_bytes(folder: Path, layouts: Sequence[Layout]) -> int:
    """Return an upper bound of the disk space for building at any time; 0 if everything exists."""
    return most_bytes(plan(layouts, _there(folder, layouts)))


def needed_memory(folder: Path, layouts: Sequence[Layout]) -> int:
    """Return the bytes of memory for building, at most 4 GB whatever the size; 0 if everything exists."""
    steps = plan(layouts, _there(folder, layouts))
    parts = [step.layout for step in steps if step.action is Action.GENERATE]
    largest = max((part.scale_factor / part.parts for part in parts), default=0.0)
    return int(_MEMORY + largest * _MEMORY_PER_SCALE_FACTOR) if steps else 0


def require_disk(folder: Path, layouts: Sequence[Layout]) -> None:
    """Raise LabError if the disk of a folder (even if not created) is too small for the missing files."""
    inventory.require_disk(folder, needed_bytes(folder, layouts), "or choose a smaller SIZE")


def require_memory(folder: Path, layouts: Sequence[Layout]) -> None:
    """Raise LabError if there is too little memory to build the missing files."""
    needed = needed_memory(folder, layouts)
    inventory.require_memory(needed, "generating lineitem", "choose a smaller SIZE or end other programs")


def facts(file: LineitemFile) -> Facts:
    """Return the known facts about a file as plain values, without its location."""
    known = asdict(file)
    layout = known.pop("layout")
    del known["path"]
    return {"name": "lineitem", "generator": GENERATOR, **layout, **known}


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _there(folder: Path, layouts: Sequence[Layout]) -> dict[Layout, LineitemFile]:
    """Return the requested files and their parts that already exist on disk."""
    found = {layout: find(folder / layout.file_name, layout) for layout in layouts}
    for base in {base for layout in layouts if found[layout] is None for base in layout.bases} - found.keys():
        places = (folder / base.file_name, folder / _PARTS / base.file_name)
        found[base] = next((file for place in places if (file := find(place, base))), None)
    return {layout: file for layout, file in found.items() if file}


def _step_in_words(steps: Sequence[Step], number: int) -> str:
    """Return a step in words: building lineitem part 3 of 24."""
    action, layout = steps[number].action, steps[number].layout
    same = [step.action is action for step in steps]
    place = f"{sum(same[: number + 1])} of {sum(same)}"
    if action is Action.GENERATE:
        return f"building lineitem part {place}"
    return f"copying lineitem parts into file {place}: {layout.file_name}"


def _make(folder: Path, path: Path, step: Step, known: dict[Layout, LineitemFile]) -> LineitemFile:
    """Build one file and its manifest; an incomplete file never keeps its name."""
    layout = step.layout
    with manifest.complete(path) as partial:
        job: Facts = {"name": str(partial.relative_to(folder)), "row_group_rows": layout.row_group_rows}
        if step.action is Action.GENERATE:
            job |= {"scale_factor": layout.scale_factor, "parts": layout.parts, "part": layout.first_part}
        else:
            sources = [known[base] for base in layout.bases]
            job["sources"] = [str(Path(source.path).relative_to(folder)) for source in sources]
        answer = _run_builder({"folder": str(folder.resolve()), str(step.action): job}, folder)
        if step.action is Action.JOIN:
            answer |= {
                "rows": sum(source.rows for source in sources),
                "matches": sum(source.matches for source in sources),
                "content": sum(int(source.content_id, 16) for source in sources) % 2**64,
            }
        with partial.open("rb") as file:
            # After a power cut, no file with missing content may have the recorded size and time.
            os.fsync(file.fileno())
    return _record(path, layout, answer["rows"], answer["matches"], answer["content"])


def _record(path: Path, layout: Layout, rows: int, matches: int, content: int) -> LineitemFile:
    """Write the manifest of a finished file and return its facts.

    Raises LabError if the file's footer has another number of rows than were generated for it.
    """
    import duckdb
    import pyarrow.parquet as pq

    footer = pq.read_metadata(path)
    if footer.num_rows != rows:
        raise LabError(f"{path} has {footer.num_rows} rows instead of {rows}; remove the file and try again")
    sizes = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    facts: Facts = {
        "rows": rows,
        "bytes": path.stat().st_size,
        "matches": matches,
        "content_id": f"{content:016x}",
        "row_groups": len(sizes),
        "smallest_row_group": min(sizes, default=0),
        "largest_row_group": max(sizes, default=0),
        "duckdb_version": duckdb.__version__,
    }
    manifest.record(path.with_suffix(".json"), _of(layout), [path], facts=facts)
    return LineitemFile(layout=layout, path=str(path), **facts)


def find(path: Path, layout: Layout) -> LineitemFile | None:
    """Return the facts about a file, or None if it must be built: missing, damaged, of an older generator."""
    known = manifest.read(path.with_suffix(".json"), _of(layout))
    return LineitemFile(layout=layout, path=str(path), **known["facts"]) if manifest.same(path, known) else None


def _of(layout: Layout) -> Facts:
    return {"name": "lineitem", "generator": GENERATOR, "layout": asdict(layout)}


def _run_builder(job: Facts, folder: Path) -> Facts:
    """Return a builder's answer. Raises LabError if it fails or is killed."""
    # A separate session: Ctrl-C reaches only this process, which then ends the builder by closing its input.
    process = subprocess.Popen(
        _BUILDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):  # it ended before it read its job, so there is no answer
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
        text = process.stdout.read()
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait()
        process.stdout.close()
    if not text:
        raise LabError(
            f"the process that builds lineitem in {folder} ended without an answer (code {process.returncode}; -9: "
            "killed, perhaps for lack of memory); make sure that 4 GB of memory are available and try again"
        )
    answer = json.loads(text)
    if "error" in answer:
        raise LabError(f"cannot build lineitem in {folder}: {answer['error']}")
    return answer
