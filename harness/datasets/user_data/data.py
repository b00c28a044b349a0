"""A user's own data as a dataset: canonical, described, and written to disk only for the duration of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import polars as pl
import pyarrow as pa

from harness.check.logical_types import polars_dtype, without_fields
from harness.datasets.specification import Column, Specification
from harness.datasets.store import content_hash
from harness.datasets.user_data import columns, mark, memory, nested, reading, values
from harness.datasets.user_data.columnar import require_no_pattern
from harness.datasets.user_data.first_look import require_rows
from harness.datasets.user_data.options import Options
from harness.datasets.user_data.places import in_one_line
from harness.datasets.user_data.steps import Program
from harness.model import Dataset, Frame, LabError, unknown

NAME = "own"  # name of the dataset and of its tables
_SEED = 20260407


@dataclass(frozen=True)
class UserData:
    """A canonical frame and the facts about it.

    `found` are the kinds of hostile values in it with their columns. `extremes` are those that show a type and have
    extreme values (see `harness.datasets.user_data.values`). `hidden` are the columns' own names and logical types if
    they were renamed. `query` is the query, if these are its rows. `whole` are all rows, which a table must hold;
    `frame` may be a sample of them. `given` are the columns' dtypes before they were canonical. `program` describes how
    a program reads them. `compared` says how much of them was compared with their source. `notes` are for the user.
    """

    frame: pl.DataFrame = field(repr=False)
    logical_types: dict[str, str]
    key: tuple[str, ...]
    found: dict[str, tuple[str, ...]]
    extremes: frozenset[str]
    whole: pl.DataFrame = field(repr=False)
    given: dict[str, pl.DataType] = field(repr=False)
    hidden: dict[str, str] = field(default_factory=dict, repr=False)
    query: str = field(default="", repr=False)
    program: Program = field(default_factory=Program, repr=False)
    compared: str = ""
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.frame.height

    @cached_property
    def specification(self) -> Specification:
        """The definition of its tables; rows are matched by the key, by a column without repeats, or as wholes."""
        described = tuple(self._column(name, logical) for name, logical in self.logical_types.items())
        key = self.key or self._unique()
        width = int(self.frame.estimated_size() / max(self.rows, 1)) * 4 + 100
        return Specification(
            NAME, 1, self.logical_types, key, width, _none, True, self.key, columns=described, private=True
        )

    def dataset(self, folder: Path, rows: int, key: bytes) -> Dataset:
        """Write a sample of this many rows, or all, as Parquet into our folder and return it as a dataset.

        A mark under `key` replaces its content hash: see `harness.datasets.user_data.mark`.
        """
        path = folder / f"{NAME}-{rows}.parquet"
        frame = self.sample(rows).frame
        if not path.exists():
            frame.write_parquet(path, compression="lz4", row_group_size=100_000)
        batches = (batch for batch in frame.to_arrow().to_batches())
        return Dataset(NAME, rows, _SEED, str(path), mark.mark(content_hash(batches), key))

    def sample(self, rows: int) -> UserData:
        """Return this many rows, the same ones each time, in order; all of them if there are fewer."""
        if rows >= self.rows:
            return self
        chosen = pl.int_range(self.rows, eager=True).sample(rows, seed=_SEED).sort()
        return replace(self, frame=self.frame[chosen])

    def only(self, name: str) -> UserData:
        """Return the data with one of its columns, and without a key."""
        return replace(
            self,
            frame=pl.DataFrame([self.frame[name]]),
            logical_types={name: self.logical_types[name]},
            key=(),
            found={hostile: (name,) for hostile, names in self.found.items() if name in names},
            whole=pl.DataFrame([self.whole[name]]),
            given={name: self.given[name]},
        )

    def without_names(self) -> UserData:
        """Return the data with columns renamed column_1 and so on, and struct fields field_1."""
        numbered = {
            f"column_{place}": without_fields(logical)
            for place, logical in enumerate(self.logical_types.values(), start=1)
        }
        return replace(self._renamed(numbered), hidden=self.logical_types)

    def with_names(self) -> UserData:
        """Return the data with the columns' own names, for the owner's files, not for results."""
        return replace(self._renamed(self.hidden), hidden={}) if self.hidden else self

    def _renamed(self, logical_types: dict[str, str]) -> UserData:
        """Return the data with other names: `logical_types` has the columns' and their struct fields'."""
        names = dict(zip(self.logical_types, logical_types, strict=True))

        def made(frame: pl.DataFrame) -> pl.DataFrame:
            columns = (
                nested.renamed(one, polars_dtype(logical))
                for one, logical in zip(frame, logical_types.values(), strict=True)
            )
            return pl.DataFrame([one.alias(name) for one, name in zip(columns, logical_types, strict=True)])

        return replace(
            self,
            frame=made(self.frame),
            whole=made(self.whole),
            given={names[name]: dtype for name, dtype in self.given.items()},
            logical_types=logical_types,
            key=tuple(names[name] for name in self.key),
            found={hostile: tuple(names[name] for name in where) for hostile, where in self.found.items()},
        )

    def has_nulls(self, name: str) -> bool:
        """Return whether a column has nulls, in the sample or beyond it."""
        return self.whole[name].null_count() > 0

    def _unique(self) -> tuple[str, ...]:
        """Return the first column without nulls or repeats, by which matching rows is faster."""
        for name, logical in self.logical_types.items():
            series = self.frame[name]
            if logical in ("int32", "int64", "uuid", "text") and not series.null_count() and series.is_unique().all():
                return (name,)
        return ()

    def _column(self, name: str, logical: str) -> Column:
        odd = frozenset(hostile for hostile, names in self.found.items() if name in names)
        whole, inside = self.whole[name], nested.days(self.whole[name])
        days = inside["value"] if inside.height else whole
        rows = {what: inside["row"][row] if inside.height else row for what, row in values.rows(days).items()}
        return Column(name, logical, self.has_nulls(name), *values.days(days), odd, rows | nested.rows(whole))


def from_file(
    path: Path,
    key: Sequence[str] = (),
    rows: int | None = None,
    names: bool = True,
    options: Options | None = None,
) -> UserData:
    """Read a file, a folder or any other source of `reading.read`; see `from_frame`."""
    found = reading.read(path, options)
    user_data = from_frame(found.frame, key, rows, names)
    return replace(
        user_data, program=found.program, compared=f"{found.compared}, with a second reading", notes=found.notes
    )


def from_memory(frame: Frame, key: Sequence[str] = (), rows: int | None = None, names: bool = True) -> UserData:
    """Take a frame in memory from any library; see `from_frame`."""
    made = reading.of_memory(frame)
    how = memory.said(frame, made)
    return replace(from_frame(made, key, rows, names), compared=how and f"{how}, with the frame that was given")


@in_one_line()
def from_frame(frame: pl.DataFrame, key: Sequence[str] = (), rows: int | None = None, names: bool = True) -> UserData:
    """Return a frame as data of the lab: a sample of `rows`, with `key` as the key of its tables.

    Without `names` its columns are renamed column_1 and so on. Raises LabError for no data, a column that no table
    holds, or an invalid key.
    """
    require_rows(rows)
    require_no_pattern(frame.columns, "the frame")
    canonical, logical_types = columns.canonical(frame)
    _require_key(canonical, logical_types, key)
    found, extremes = values.found(canonical, logical_types), values.extremes(canonical, logical_types)
    data = UserData(canonical, logical_types, tuple(key), found, frozenset(extremes), canonical, dict(frame.schema))
    if not names:
        data = data.without_names()
    return data if rows is None else data.sample(rows)


def _require_key(frame: pl.DataFrame, logical_types: dict[str, str], key: Sequence[str]) -> None:
    for name in key:
        if name not in logical_types:
            raise unknown("column for --key", name, logical_types)
        if frame[name].null_count():
            raise LabError(f'--key "{name}": has nulls, which a key cannot; choose another column, or give no key')
        if logical_types[name].startswith(("array", "nested", "map", "decimal", "float", "binary")):
            raise LabError(
                f'--key "{name}": a key cannot be of the type {logical_types[name]}; choose strings, integers or dates'
            )
    if key and (repeated := frame.height - frame[list(key)].n_unique()):
        raise LabError(
            f"--key {','.join(key)}: not unique, {repeated:,} rows repeat another one's; add a column, or give no key"
        )


def _none(rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    raise LabError("a user's own data are not built")
