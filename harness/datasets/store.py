"""Datasets on disk: built once as Parquet with a manifest, checked and reused afterwards."""

import hashlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.datasets import analytics_metrics, integers, manifest, shapes
from harness.datasets.specification import Specification
from harness.machine.inventory import require_disk
from harness.model import Dataset, Facts, unknown

ROW_GROUP_ROWS = 100_000


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
    parquet = folder / f"{name}-{rows}-{seed}.parquet"
    of = {"name": name, "version": spec.version, "rows": rows, "seed": seed, "logical_types": spec.logical_types}
    known = manifest.read(parquet.with_suffix(".json"), of)
    if not manifest.same(parquet, known):
        known = _build(spec, of, parquet)
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


def _build(spec: Specification, of: Facts, parquet: Path) -> Facts:
    rows, digest = of["rows"], hashlib.blake2b(digest_size=32)
    with manifest.building(f"dataset {spec.name}", parquet.parent):
        with manifest.complete(parquet) as partial:
            require_disk(parquet.parent, rows * spec.bytes_a_row, "or ask for fewer rows")
            batches = spec.build(rows, of["seed"])
            first = next(batches)
            with pq.ParquetWriter(partial, first.schema, compression="lz4") as writer:
                for batch in chain((first,), batches):
                    _feed(digest, batch)
                    writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)
        return manifest.record(parquet.with_suffix(".json"), of, [parquet], content_hash=digest.hexdigest())
