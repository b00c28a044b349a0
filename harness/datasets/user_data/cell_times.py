"""CSV cells that are dates, timestamps or times of day, all in one format."""

from __future__ import annotations

import re

import polars as pl

from harness.datasets.user_data.options import Options
from harness.datasets.user_data.steps import Call, Steps, applied

_HOUR = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
DAY = rf"^{_DAY}$"
DAY_SLASHES = r"^[0-9]{4}/[0-9]{2}/[0-9]{2}$"
TIMESTAMP = rf"^{_DAY}[T ]{_HOUR}(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?$"
ZONED = rf"^{_DAY}[T ]{_HOUR}(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?:Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)$"
DAY_MONTH = rf"^[0-9]{{1,2}}([/.-])[0-9]{{1,2}}[/.-][0-9]{{4}}(?: {_HOUR}(?::[0-5][0-9](?:\.[0-9]{{1,6}})?)?)?$"
TIME = rf"^{_HOUR}:[0-5][0-9](?:\.[0-9]{{1,6}})?$"
_FINER = r"\.[0-9]{7}"  # than microseconds
_OF_TIME = re.compile("%[HIMSTRfpPzZ]|%[.#]")


def date(cells: pl.Series, options: Options) -> Steps:
    for looks, written in ((DAY, "%Y-%m-%d"), (DAY_SLASHES, "%Y/%m/%d")):
        if cells.str.contains(looks).all():
            return parsed(cells, (Call("str.to_date", (written,)),))
    return ()


def timestamp(cells: pl.Series, options: Options) -> Steps:
    return _moments(cells, "") if cells.str.contains(TIMESTAMP).all() else ()


def zoned(cells: pl.Series, options: Options) -> Steps:
    return _moments(cells, "%#z") if cells.str.contains(ZONED).all() else ()


def _moments(cells: pl.Series, zone: str) -> Steps:
    """Return the steps for ISO 8601 timestamps, all with seconds or all without."""
    with_seconds = cells.str.contains(rf"[T ]{_HOUR}:")
    if with_seconds.any() and not with_seconds.all():
        return ()
    before: Steps = ()
    if cells.str.contains("T", literal=True).any():
        before = (Call("str.replace", ("T", " "), {"literal": True}),)
    written = f"%Y-%m-%d %H:%M:%S%.f{zone}" if with_seconds.any() else f"%Y-%m-%d %H:%M{zone}"
    to = {unit: Call("str.to_datetime", (written,), {"time_unit": unit}) for unit in ("us", "ns")}
    steps = parsed(cells, (*before, to["us"]))
    if not steps or not cells.str.contains(r"\.[0-9]{6}[0-9]*[1-9]").any():
        return steps
    fine, coarse = applied(cells, (*before, to["ns"])), applied(cells, steps)
    held = (fine.to_physical() // 1_000).eq_missing(coarse.to_physical()).all()
    return (*before, to["ns"]) if held else ()  # from 1677 to 2262


def parsed(cells: pl.Series, steps: Steps) -> Steps:
    """Return steps that parse every cell without a year 0, which no database has; otherwise none."""
    try:
        made = applied(cells, steps)
    except pl.exceptions.PolarsError:
        return ()
    if made.null_count() or (made.dtype in (pl.Date, pl.Datetime) and int(made.dt.year().min()) < 1):
        return ()
    return steps


def time(cells: pl.Series, options: Options) -> Steps:
    if not cells.str.contains(TIME).all():
        return ()
    return parsed(cells, (Call("str.to_time", ("%H:%M:%S%.f",)),))


def day_month(cells: pl.Series, options: Options) -> Steps:
    """Return the steps for days and months in the one order that every cell permits; none if both orders do."""
    found = orders(cells)
    if len(found) == 2 and not applied(cells, found[0]).equals(applied(cells, found[1])):
        return ()
    return found[0] if found else ()


def orders(cells: pl.Series) -> list[Steps]:
    mark = cells[0].lstrip("0123456789")[:1]
    mark = {"/": "/", ".": r"\.", "-": "-"}.get(mark, "/")
    looks = DAY_MONTH.replace("([/.-])", mark).replace("[/.-]", mark)
    if not cells.str.contains(looks).all():
        return []
    mark = mark.lstrip("\\")
    parts = [f"%d{mark}%m{mark}%Y", f"%m{mark}%d{mark}%Y"]
    for time in ("", " %H:%M", " %H:%M:%S%.f"):
        method = "str.to_datetime" if time else "str.to_date"
        keywords = {"time_unit": "us"} if time else {}
        if found := [steps for part in parts if (steps := parsed(cells, (Call(method, (part + time,), keywords),)))]:
            return found
    return []


def formatted(cells: pl.Series, written: str) -> Steps:
    """Return the steps for dates or timestamps in the user's format."""
    return parsed(cells, asked(cells, written, is_date=not _OF_TIME.search(written)))


def asked(cells: pl.Series, written: str, is_date: bool) -> Steps:
    """Return the step to the type that the user requested; none for cells that microseconds would cut off."""
    if cells.str.contains(_FINER).any():
        return ()
    return (Call("str.to_date", (written,)) if is_date else Call("str.to_datetime", (written,), {"time_unit": "us"}),)
