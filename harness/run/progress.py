"""Progress of a suite run or an examination: on a terminal a bar with an ETA, elsewhere plain lines."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from harness.model import FINE, printable
from harness.results.row import Row
from harness.run.estimate import Key, Pace

OnRow = Callable[[Row], None]  # called with every finished row
_FIGURES = 20  # columns for the count of runs and the ETA
_BAR, _WIDE = 20, 120  # columns of the bar, and of a terminal that shows it


@contextmanager
def shown(console: Console, work: Collection[Key], pace: Pace) -> Iterator[OnRow]:
    """Yield a function that shows each row of the runs of `work`; rows of runs that did not start are not progress."""
    started = time.monotonic()

    def eta(row: Row) -> str:
        pace.done(row.key)
        return clock(pace.left(time.monotonic() - started))

    if not console.is_terminal:
        yield _plain(console, work, eta)
        return
    with progress_bar(console, MofNCompleteColumn(), "ETA {task.fields[eta]}", wide=_WIDE) as progress:
        task = progress.add_task("the first run is under way", total=len(work), eta="-:--")

        def on_row(row: Row) -> None:
            if row.key not in work:
                return
            if row.status not in FINE:
                progress.console.print(Text(line(row), style="red", overflow="ignore"), crop=False)
            progress.update(task, advance=1, description=_short(row, console.width - _FIGURES), eta=eta(row))

        yield on_row


@contextmanager
def counted(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with the transport of each pair; without a terminal, a line a transport."""
    started, done, known = time.monotonic(), 0, set[str]()

    def plain(transport: str) -> None:
        nonlocal done
        done += 1
        if transport not in known:
            known.add(transport)
            console.file.write(f"[{done}/{total}] {transport}\n")
            console.file.flush()

    if not console.is_terminal:
        yield plain
        return
    with progress_bar(console, MofNCompleteColumn(), "ETA {task.fields[eta]}", wide=_WIDE) as progress:
        task = progress.add_task("the first pair is under way", total=total, eta="-:--")

        def on_pair(transport: str) -> None:
            nonlocal done
            done += 1
            left = (time.monotonic() - started) / done * (total - done)
            progress.update(task, completed=done, description=transport, eta=clock(left))

        yield on_pair


@contextmanager
def progress_bar(console: Console, *columns: ProgressColumn | str, wide: int) -> Iterator[Progress]:
    """Yield a line of progress: these columns, a bar on a terminal that is `wide`, and a task's description."""
    bar = [TimeElapsedColumn(), BarColumn(_BAR)] if console.width >= wide else []
    rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # cut the line here; all other columns are complete
    last = TextColumn("{task.description}", markup=False, table_column=rest)
    with Progress(*columns, *bar, last, console=console, expand=True) as progress:
        yield progress


def line(row: Row) -> str:
    """Return one row as one line of text."""
    if row.ok:
        return f"{row.transport}  ok  {row.took:.4f} s  {row.rows_per_s:,.0f} rows/s"
    return printable(f"{row.transport}  {row.status}: {row.error}")


def _short(row: Row, room: int) -> str:
    """Return the main part of a row, with as much of the transport's id as fits: at least its end."""
    said = f"{row.took:.4f} s" if row.ok else str(row.status)
    parts = row.transport.split(".")
    names = [".".join(parts[place:]) for place in range(len(parts))]
    return f"{said} {next((name for name in names if len(name) + len(said) < room), names[-1])}"


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds: 2:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _plain(console: Console, work: Collection[Key], eta: Callable[[Row], str]) -> OnRow:
    finished = 0

    def on_row(row: Row) -> None:
        nonlocal finished
        if row.key not in work:
            return
        finished += 1
        console.file.write(f"[{finished}/{len(work)}, ETA {eta(row)}] pass {row.pass_number}  {line(row)}\n")
        console.file.flush()

    return on_row
