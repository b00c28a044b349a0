"""Progress of a suite run: a bar with an ETA on a terminal, one plain line a run elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from harness.model import Status
from harness.results.row import Row

_STYLES = {Status.OK: "green", Status.UNAVAILABLE: "dim", Status.UNSUPPORTED: "dim"}


class OnRow(Protocol):
    """What is told of every finished row."""

    def __call__(self, row: Row) -> None: ...


@contextmanager
def shown(console: Console, total: int) -> Iterator[OnRow]:
    """Yield what shows each row of `total` as it comes."""
    if not console.is_terminal:
        yield _plain(console, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("ETA"), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("measuring", total=total)

        def on_row(row: Row) -> None:
            if row.status not in _STYLES:
                progress.console.print(line(row), style="red", markup=False, highlight=False)
            progress.update(task, advance=1, description=row.transport)

        yield on_row


def line(row: Row) -> str:
    """Return one row as one line of text."""
    if row.ok:
        return f"{row.transport}  ok  {row.took:.4f} s  {row.rows_per_s:,.0f} rows/s"
    return f"{row.transport}  {row.status}: {row.error}"


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds: 2:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _plain(console: Console, total: int) -> OnRow:
    started, finished = time.monotonic(), 0

    def on_row(row: Row) -> None:
        nonlocal finished
        finished += 1
        left = (time.monotonic() - started) / finished * (total - finished)
        console.file.write(f"[{finished}/{total}, ETA {clock(left)}] pass {row.pass_number}  {line(row)}\n")
        console.file.flush()

    return on_row
