"""Which rows of lineitem are in which file, and the steps to build a set of files; no I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.model import LabError

ROWS_PER_SCALE_FACTOR = 6_001_215  # TPC-H specification, 4.2.5: lineitem at scale factor 1
BASE_ROW_GROUP_ROWS = 300_000  # of a generated part; the published benchmark's choice
_SMALLEST_SCALE_FACTOR = 0.001  # below this, dbgen returns 6 rows whatever the scale factor
_SMALLEST_ROW_GROUP = 2_048  # DuckDB's vector size: it silently enlarges smaller row groups to this
_LARGEST_ROW_GROUP = 1_048_576  # a writer holds whole row groups in memory: 0.8 GB at this size

# Upper bounds of bytes per row on disk (snappy), by the smallest row group they apply to. Measured with DuckDB 1.5.5 at
# scale factor 700, where keys are wide: 46.1, 44.6, 40.5, 39.0, and 38.4 at 300,000 rows; at scale factor 4 they are 2
# to 3 lower.
_BYTES_A_ROW = ((60_000, 41), (20_000, 43), (4_096, 47), (0, 49))
_BYTES_A_FILE = 20_000  # footer and manifest of a file with few rows
_BYTES_OF_THE_GENERATOR = 20_000_000  # DuckDB's extension, unpacked while a part is generated


@dataclass(frozen=True)
class Layout:
    """One file: `part_count` parts from number `first_part` on (from 0), of the whole's `parts` generated parts.

    DuckDB rounds `row_group_rows` up to whole vectors of 2,048 rows (300,000 gives 301,056). Raises LabError if the
    generator or the writer would not produce the requested layout.
    """

    scale_factor: float
    parts: int
    first_part: int
    part_count: int
    row_group_rows: int = BASE_ROW_GROUP_ROWS

    def __post_init__(self) -> None:
        scale, last = self.scale_factor, self.first_part + self.part_count - 1
        if scale < _SMALLEST_SCALE_FACTOR or (scale > 1 and scale != int(scale)):
            raise LabError(
                f"scale factor {scale}: choose {_SMALLEST_SCALE_FACTOR} to 1, or a whole number above; "
                "TPC-H's generator silently changes others"
            )
        if self.parts < scale:
            raise LabError(
                f"{self.parts} parts at scale factor {scale:g}: choose at least {int(scale)}; "
                "a part above scale factor 1 takes too much memory to generate"
            )
        if not 0 <= self.first_part <= last < self.parts:
            raise LabError(f"parts {self.first_part} to {last}: choose from 0 to {self.parts - 1}")
        if not _SMALLEST_ROW_GROUP <= self.row_group_rows <= _LARGEST_ROW_GROUP:
            raise LabError(
                f"row groups of {self.row_group_rows:,} rows: choose {_SMALLEST_ROW_GROUP:,} to {_LARGEST_ROW_GROUP:,}"
            )

    @property
    def file_name(self) -> str:
        """The name of the file: scale factor, parts of the whole, first and last part in the file, row-group size."""
        scale, last = str(float(self.scale_factor)).removesuffix(".0"), self.first_part + self.part_count - 1
        return f"lineitem-sf{scale}-parts{self.parts}-{self.first_part:04d}-{last:04d}-rg{self.row_group_rows}.parquet"

    @property
    def bases(self) -> tuple[Layout, ...]:
        """The generated files of one part each that this file is built from."""
        numbers = range(self.first_part, self.first_part + self.part_count)
        return tuple(Layout(self.scale_factor, self.parts, number, 1) for number in numbers)

    @property
    def most_bytes(self) -> int:
        """An upper bound of its bytes on disk."""
        share = self.part_count / self.parts
        rows = ROWS_PER_SCALE_FACTOR * self.scale_factor * share * 1.02 + 100  # an order has 1 to 7 rows: parts differ
        bytes_a_row = next(size for smallest, size in _BYTES_A_ROW if self.row_group_rows >= smallest)
        return int(rows * bytes_a_row) + _BYTES_A_FILE


class Action(StrEnum):
    """A step's action."""

    GENERATE = "generate"  # run TPC-H's generator for one part
    JOIN = "join"  # copy generated parts, in order, into one file
    REMOVE = "remove"  # delete a part that was not requested and that no later step needs


@dataclass(frozen=True)
class Step:
    """One step and the file that it builds or removes."""

    action: Action
    layout: Layout


def plan(asked: Collection[Layout], there: Collection[Layout]) -> list[Step]:
    """Return the steps that build the requested files that are missing.

    A part is generated when the first file needs it and removed after the last one. Files are ordered by their last
    part, so that few parts are on disk at a time. Files in `there` are neither built again nor removed.
    """
    wanted = frozenset(asked)
    missing = sorted(wanted - frozenset(there), key=_in_order)
    last_user = {base: layout for layout in missing for base in layout.bases}
    made = set(there)
    steps = []
    for layout in missing:
        for base in layout.bases:
            if base not in made:
                steps.append(Step(Action.GENERATE, base))
                made.add(base)
        if layout not in made:
            steps.append(Step(Action.JOIN, layout))
            made.add(layout)
        unasked = [base for base in layout.bases if base not in wanted and last_user[base] is layout]
        steps += [Step(Action.REMOVE, base) for base in unasked if base not in there]
    return steps


def _in_order(layout: Layout) -> tuple[float, int, int, int, int]:
    last = layout.first_part + layout.part_count
    return layout.scale_factor, layout.parts, last, layout.part_count, layout.row_group_rows


def most_bytes(steps: Sequence[Step]) -> int:
    """Return an upper bound of the bytes that a plan's files take together at any time."""
    used = most = 0
    for step in steps:
        used += -step.layout.most_bytes if step.action is Action.REMOVE else step.layout.most_bytes
        most = max(most, used + (_BYTES_OF_THE_GENERATOR if step.action is Action.GENERATE else 0))
    return most
