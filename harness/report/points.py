"""The points of an experiment: what a group of cases varies, in the order of its size, with a name for people."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.model import label
from harness.report.cells import volume
from harness.report.summary import Summary

_UNITS = {"mbit_per_s": "Mbit/s", "_mb": "MB", "_ms": "ms"}  # of parameters, by how their names end


@dataclass(frozen=True)
class Point:
    """One combination of parameters, its name, and its extent (None where not known)."""

    parameters: Mapping[str, str]
    name: str
    rows: int | None
    bytes: int | None

    @property
    def label(self) -> str:
        """The parameters as one text, as a case says them."""
        return label(self.parameters)


def in_order(parameters: Mapping[str, str]) -> tuple[tuple[str, float, str], ...]:
    """Return a key that sorts by parameters: see `natural`."""
    return tuple((name, *natural(value)) for name, value in parameters.items())


def natural(value: str) -> tuple[float, str]:
    """Return a key that sorts numbers by value, and before texts."""
    return (float(value), "") if _is_number(value) else (float("inf"), value)


def points(summaries: Iterable[Summary]) -> list[Point]:
    """Return the points among the summaries, smallest first: by rows, then by parameters.

    A name has the parameters that differ among the points and, where it differs too, the volume of the data:
    `8 files, 1.68 GB`. The only point of a group has an empty name.
    """
    cases: dict[str, list[Summary]] = {}
    for summary in summaries:
        cases.setdefault(summary.label, []).append(summary)
    where = [group[0].parameters for group in cases.values()]
    extents = [(_agreed(group, "rows"), _agreed(group, "bytes")) for group in cases.values()]
    varying = [name for name in _names(where) if len({parameters.get(name) for parameters in where}) > 1]
    volumes_differ = len({size for _, size in extents}) > 1
    found = [
        Point(parameters, _name(parameters, varying, size if volumes_differ else None), rows, size)
        for parameters, (rows, size) in zip(where, extents, strict=True)
    ]
    return sorted(found, key=lambda point: (point.rows or 0, in_order(point.parameters)))


def in_common(every: Sequence[Mapping[str, str]], but: Collection[str] = ()) -> str:
    """Name the parameters that all share, `but` those given, for people; empty where there are none."""
    shared = [
        (name, value)
        for name, value in (every[0] if every else {}).items()
        if name not in but and all(p.get(name) == value for p in every)
    ]
    return ", ".join(described(name, value) for name, value in shared)


def described(name: str, value: str) -> str:
    """Say a parameter as people do: `8 files`, `1 part per file`, `512 MB memory`, `10 ms rtt`, `page cache warm`."""
    words = name.replace("_", " ")
    for ending, unit in _UNITS.items():
        if name.endswith(ending) and _is_number(value):
            return f"{float(value):,.15g} {unit} {words[: len(words) - len(ending)]}".strip()
    first, space, rest = words.partition(" ")
    if not (value.isdecimal() and (first.endswith("s") or words.endswith("s"))):
        return f"{words} {value}"
    if value == "1" and first.endswith("s"):
        return f"1 {first.removesuffix('s')}{space}{rest}"
    return f"{int(value):,} {words}"


def _name(parameters: Mapping[str, str], varying: list[str], size: int | None) -> str:
    said = [described(name, value) for name, value in parameters.items() if name in varying]
    return ", ".join(said + ([volume(size)] if size is not None else []))


def _names(every: Iterable[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for parameters in every for name in parameters))


def _agreed(group: list[Summary], column: str) -> int | None:
    """Return the value that all cases of a point with one have; None where they differ, as sizes of stores do."""
    values = {getattr(summary, column) for summary in group} - {None}
    return values.pop() if len(values) == 1 else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
