"""Datasets on disk: built once as Parquet with a manifest, checked and reused afterwards."""

import glob
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.datasets import analytics_metrics, integers, shapes
from harness.datasets.specification import Specification
from harness.machine.inventory import require_disk
from harness.model import Dataset, Facts, LabError, unknown

ROW_GROUP_ROWS = 100_000
_FACTS = {"version", "rows", "bytes", "content_hash", "file_hash"}  # required facts of a manifest


def specification(name: str) -> Specification:
    """Return the dataset of this name. Raises LabError."""
    known = specifications()
    if name not in known:
        raise unknown("dataset", name, known)
    return known[name]


def specifications() -> dict[str, Specification]:
    """Return every dataset by name."""
    found = (analytics_metrics.SPECIFICATION, integers.SPECIFICATION, *shapes.SPECIFICATIONS)
    return {spec.name: spec for spec in found}


def ensure(folder: Path, name: str, rows: int, seed: int) -> Dataset:
    """Return the dataset, building it if it is missing, damaged or of an older generator version.

    Raises LabError if the folder is not writable or the disk is too small.
    """
    spec = specification(name)
    stem = folder / f"{name}-{rows}-{seed}"
    parquet, manifest = stem.with_suffix(".parquet"), stem.with_suffix(".json")
    known = manifest_at(manifest)
    if not known.keys() >= _FACTS or known["version"] != spec.version or not _intact(parquet, known):
        known = _build(spec, rows, seed, parquet, manifest)
    return Dataset(name, rows, seed, str(parquet), known["content_hash"])


def content_hash(batches: Iterator[pa.RecordBatch]) -> str:
    """Return the BLAKE2b-256 of the values in order, independent of Parquet, its codec and the machine."""
    digest = hashlib.blake2b(digest_size=32)
    for batch in batches:
        _feed(digest, batch)
    return digest.hexdigest()


def _feed(digest: hashlib.blake2b, batch: pa.RecordBatch) -> None:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        digest.update(f"{name}:{column.type}:{len(column)}:{column.null_count};".encode())
        exact = pa.concat_arrays([column])  # a slice shares the buffers of the whole: copy to keep only its own values
        for number, buffer in enumerate(exact.buffers()):
            # The first buffer is the validity bitmap; without nulls, Arrow may or may not omit it.
            if buffer is not None and (number or exact.null_count):
                digest.update(buffer)


def manifest_at(path: Path) -> Facts:
    """Return the facts of a manifest; empty if it is missing or damaged. Raises LabError."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}; set LAB_DATASETS_DIR to a readable folder") from None
    return facts if isinstance(facts, dict) else {}


def state(path: Path) -> list[int] | None:
    """Return the size and the time of a file, by which it is recognized; None if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]


@contextmanager
def complete(path: Path) -> Iterator[Path]:
    """Yield where to write a file that gets its name only when it is complete; unfinished ones are removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for unfinished in path.parent.glob(f"{glob.escape(path.name)}.partial-*"):
        unfinished.unlink()
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _intact(parquet: Path, manifest: Facts) -> bool:
    try:
        return bool(parquet.stat().st_size == manifest["bytes"] and file_hash(parquet) == manifest["file_hash"])
    except OSError:
        return False


def file_hash(path: Path) -> str:
    """Return the BLAKE2b-256 of a file's bytes, which is faster to check than the content hash (about 1 GB/s)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def _build(spec: Specification, rows: int, seed: int, parquet: Path, manifest: Path) -> Facts:
    try:
        with complete(parquet) as partial:
            require_disk(parquet.parent, rows * spec.bytes_a_row, "or ask for fewer rows")
            facts = _write(spec, rows, seed, partial)
        manifest.write_text(json.dumps(facts, indent=2) + "\n")
    except OSError as error:
        raise LabError(f"cannot build dataset {spec.name} in {parquet.parent}: {error.strerror or error}") from None
    return facts


def _write(spec: Specification, rows: int, seed: int, path: Path) -> Facts:
    digest = hashlib.blake2b(digest_size=32)
    batches = spec.build(rows, seed)
    first = next(batches)
    with pq.ParquetWriter(path, first.schema, compression="lz4") as writer:
        for batch in chain((first,), batches):
            _feed(digest, batch)
            writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)
    return {
        "name": spec.name,
        "version": spec.version,
        "rows": rows,
        "seed": seed,
        "logical_types": spec.logical_types,
        "content_hash": digest.hexdigest(),
        "bytes": path.stat().st_size,
        "file_hash": file_hash(path),
    }
