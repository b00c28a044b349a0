"""Transports of stores: data in memory into a folder on disk, and back as all rows or those that pass a filter."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.check.canonical import NotConvertible, canonicalise
from harness.model import Operation, Status, Transport
from harness.worker.contracts.calls import Calls, Imports
from harness.worker.messages import Answer, Failed, Job, Measured

_BATCH_ROWS = 10_000  # turned into Python objects at a time: no second copy of everything as numpy or lists
ADDED_COLUMN = "id"  # some stores number their rows


@dataclass(frozen=True, kw_only=True)
class StoreAnswer(Answer):
    """`converted` are the columns of what came back that were of other dtypes, with these, and a change of order."""

    converted: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class StoreJob(Job[StoreAnswer]):
    """Folders of the store and of a small one, what they are made of as Parquet, its rows, and its logical types."""

    contract = "stores"

    folder: str
    warmup_folder: str
    dataset: str
    warmup_dataset: str
    rows: int
    logical_types: dict[str, str]

    def answered_by(self) -> type[StoreAnswer]:
        return StoreAnswer


JOB = StoreJob
IMPORTS: Imports = {}  # memory of a store is measured with what its first call imports


def calls(entry: Transport, job: StoreJob) -> Calls:
    """Return the calls on the store and on a small one; only `create` is given data, made here outside the clock."""
    warmup: tuple[Any, ...] = ()
    measured: tuple[Any, ...] = ()
    if entry.operation is Operation.CREATE:
        warmup, measured = ((_LOAD[entry.frame](path),) for path in (job.warmup_dataset, job.dataset))
    return Calls((job.folder,), warmup, measured, (job.warmup_folder,))


def hand_over(entry: Transport, returned: Any, job: StoreJob, measured: Measured) -> StoreAnswer | Failed:
    """Leave the rows of a read or query as a canonical frame at `job.result`, without a number the store added."""
    if entry.operation is Operation.CREATE:
        return StoreAnswer(measured=measured, converted={})
    try:
        table, moved = _in_order(_RETURNED[entry.frame](returned, list(job.logical_types)), job)
        frame, converted = canonicalise(table, job.logical_types)
    except NotConvertible as error:
        return Failed(Status.MISMATCH, str(error))
    frame.write_ipc(job.result)
    return StoreAnswer(measured=measured, converted=converted | moved)


def _arrow(path: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(path, memory_map=False)


def _rows(path: str) -> Iterator[tuple[list[str], list[list[int]]]]:
    import numpy as np
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS):
        columns = [column.to_numpy() for column in batch.columns]
        yield batch.schema.names, np.column_stack(columns).tolist()


def _dicts(path: str) -> list[dict[str, int]]:
    return [dict(zip(names, row, strict=True)) for names, rows in _rows(path) for row in rows]


def _tuples(path: str) -> list[tuple[int, ...]]:
    return [tuple(row) for _, rows in _rows(path) for row in rows]


_LOAD: dict[str, Callable[[str], Any]] = {"dicts": _dicts, "tuples": _tuples, "pyarrow": _arrow}


def _of_tuples(returned: Any, names: list[str]) -> Any:
    import polars as pl

    if type(returned) is not list or not all(type(row) is tuple and len(row) == len(names) for row in returned):
        raise NotConvertible(f"expected a list of tuples of {len(names)} values, found something else")
    # Types are found from all rows: told to make integers, polars 2.1 would cut 5.5 to 5 without a word.
    schema = names if returned else dict.fromkeys(names, pl.Int64)
    try:
        return pl.DataFrame(returned, schema=schema, orient="row", infer_schema_length=None)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise NotConvertible(str(error).partition("\n")[0]) from None


def _of_arrow(returned: Any, names: list[str]) -> Any:
    import pyarrow as pa

    if not isinstance(returned, pa.Table):
        raise NotConvertible(f"expected a pyarrow Table, found {type(returned).__name__}")
    return returned


_RETURNED: dict[str, Callable[[Any, list[str]], Any]] = {"tuples": _of_tuples, "pyarrow": _of_arrow}


def _in_order(table: Any, job: StoreJob) -> tuple[Any, dict[str, str]]:
    """Bring the columns into the order they were stored in, and say so where a store changed it."""
    names = list(job.logical_types)
    if not hasattr(table, "column_names"):
        return table, {}
    table = _without_numbers(table, job.rows)
    if table.column_names == names or sorted(table.column_names) != sorted(names):
        return table, {}
    return table.select(names), {"columns": "in another order"}


def _without_numbers(table: Any, rows: int) -> Any:
    """Take away the numbers that a store gave its rows, after a look at them: each once, all below `rows`."""
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
                f"{ADDED_COLUMN}: expected different whole numbers from 0 to {rows - 1}, "
                f"found {len(numbers)} of type {numbers.type} from {bounds['min']} to {bounds['max']}"
            )
    return table.drop_columns([ADDED_COLUMN])
