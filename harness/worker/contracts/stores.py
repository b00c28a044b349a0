"""Transports of stores: data in memory into a folder on disk, and back as all rows or those that match a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.check.canonical import NotConvertible, canonicalise
from harness.model import Frame, Operation, Status, Transport, first_line
from harness.worker.contracts.calls import Calls
from harness.worker.messages import Answer, Failed, Job, Measured

if TYPE_CHECKING:
    import pyarrow as pa


_BATCH_ROWS = 10_000  # rows turned into Python objects at a time, to avoid a second copy of everything
ADDED_COLUMN = "id"  # some stores number their rows


@dataclass(frozen=True, kw_only=True)
class StoreAnswer(Answer):
    """`converted` has the returned columns with other dtypes than canonical, and these, and a changed order."""

    converted: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class StoreJob(Job[StoreAnswer]):
    """Folders of the store and of a small one, their data as Parquet, the number of rows, and the logical types."""

    folder: str
    warmup_folder: str
    dataset: str
    warmup_dataset: str
    rows: int
    logical_types: dict[str, str]


JOB = StoreJob  # without IMPORTS: a store's memory figures include the imports of its first call


def calls(entry: Transport, job: StoreJob) -> Calls:
    """Return the calls on the store and on a small one; only `create` gets data, loaded here outside the timed call."""
    warmup: tuple[object, ...] = ()
    measured: tuple[object, ...] = ()
    if entry.operation is Operation.CREATE:
        warmup, measured = ((_LOAD[entry.frame](path),) for path in (job.warmup_dataset, job.dataset))
    return Calls((job.folder,), warmup, measured, (job.warmup_folder,))


def hand_over(entry: Transport, returned: Frame, job: StoreJob, measured: Measured) -> StoreAnswer | Failed:
    """Store the rows of a read or query as a canonical frame at `job.result`, without an id column the store added."""
    if entry.operation is Operation.CREATE:
        return StoreAnswer(measured=measured, converted={})
    try:
        table, moved = _in_order(_RETURNED[entry.frame](returned, list(job.logical_types)), job)
        frame, converted = canonicalise(table, job.logical_types)
    except NotConvertible as error:
        return Failed(Status.MISMATCH, str(error))
    frame.write_ipc(job.result)
    return StoreAnswer(measured=measured, converted=converted | moved)


def _arrow(path: str) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.read_table(path, memory_map=False)


def _rows(path: str) -> Iterator[tuple[list[str], list[list[int]]]]:
    import numpy as np
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS):
        columns = [column.to_numpy() for column in batch.columns]
        yield batch.schema.names, np.column_stack(columns).tolist()


_LOAD: dict[str, Callable[[str], Frame]] = {
    "dicts": lambda path: [dict(zip(names, row, strict=True)) for names, rows in _rows(path) for row in rows],
    "tuples": lambda path: [tuple(row) for _, rows in _rows(path) for row in rows],
    "pyarrow": _arrow,
}


def _of_tuples(returned: Frame, names: list[str]) -> Frame:
    import polars as pl

    if type(returned) is not list or not all(type(row) is tuple and len(row) == len(names) for row in returned):
        raise NotConvertible(
            f"the transport did not return a list of tuples; return one with {len(names)} values in each tuple"
        )
    # Types are inferred from all rows: if asked for integers, polars 2.1 would silently truncate 5.5 to 5.
    schema = names if returned else dict.fromkeys(names, pl.Int64)
    try:
        return pl.DataFrame(returned, schema=schema, orient="row", infer_schema_length=None)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise NotConvertible(first_line(error)) from None


def _of_arrow(returned: Frame, names: list[str]) -> Frame:
    import pyarrow as pa

    if not isinstance(returned, pa.Table):
        raise NotConvertible(f"the transport returned a {type(returned).__name__}; return a pyarrow Table")
    return returned


_RETURNED: dict[str, Callable[[Frame, list[str]], Frame]] = {"tuples": _of_tuples, "pyarrow": _of_arrow}


def _in_order(table: Frame, job: StoreJob) -> tuple[Frame, dict[str, str]]:
    """Restore the original order of the columns, and report whether a store changed it."""
    names = list(job.logical_types)
    if not hasattr(table, "column_names"):
        return table, {}
    table = _without_numbers(table, job.rows)
    if table.column_names == names or sorted(table.column_names) != sorted(names):
        return table, {}
    return table.select(names), {"columns": "in another order"}


def _without_numbers(table: pa.Table, rows: int) -> pa.Table:
    """Remove the ids that a store gave its rows, after checking them: each once, all below `rows`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if ADDED_COLUMN not in table.column_names:
        return table
    numbers = table[ADDED_COLUMN]
    if len(numbers):
        bounds = pc.min_max(numbers).as_py()
        distinct = pa.types.is_integer(numbers.type) and pc.count_distinct(numbers).as_py() == len(numbers)
        if not distinct or bounds["min"] < 0 or bounds["max"] >= rows:
            raise NotConvertible(
                f"{ADDED_COLUMN}: {len(numbers)} of type {numbers.type} from {bounds['min']} to {bounds['max']}; "
                f"return different whole numbers from 0 to {rows - 1}"
            )
    return table.drop_columns([ADDED_COLUMN])
