"""The due pairs of a transport and a kind of values: new ones, changed ones, and a quarter of all.

    python -m tests.fidelity.due FILE   # write them into FILE, for LAB_PAIRS=FILE, and say how many and why

A pair has not changed while five things are equal. They are the transport's script, its declared loss, the rows of the
kind, the lock, and the code that judges. The lab's folder of caches keeps each pair that ended as declared, one file a
transport. A pair without such a result is due. Each day a quarter is due in any case, because something else may
matter.
"""

import datetime as dt
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from harness import settings
from harness.datasets.hostile.kind import Kind
from harness.fidelity import select, tables
from harness.fidelity.examination import pairs
from harness.model import Fate, Finding, Transport
from harness.settings import ROOT
from harness.show import script
from harness.systems import SYSTEMS

SHARES = 4  # of the transports: one is due each day, and one process of a run of tests examines each
# The code that judges a pair, besides the folder of its database; a lock has the clients and the servers.
_JUDGES = ("harness/check", "harness/fidelity", "harness/worker", "harness/embedded", "requirements.lock")
_OF_KINDS = {"hostile.py"}  # in the folder of a database: the digest has each kind's rows instead

UNCHANGED = "left out: unchanged since they came through"

Known = Mapping[str, Mapping[str, str]]  # transport -> kind -> the pair as it was when it passed


def in_shares(entries: Sequence[Transport]) -> dict[str, int]:
    """Return the share of each transport: each module takes a process, and the pairs are spread evenly."""
    shares: dict[str, int] = {}
    for system in SYSTEMS:
        of_system = sorted((entry for entry in entries if entry.system == system), key=_module_of)
        modules = [list(of_one) for _, of_one in groupby(of_system, key=_module_of)]
        heights = [0] * SHARES
        for module in sorted(modules, key=_pairs_of, reverse=True):
            lowest = heights.index(min(heights))
            heights[lowest] += _pairs_of(module)
            shares |= dict.fromkeys((entry.id for entry in module), lowest)
    return shares


def _module_of(entry: Transport) -> str:
    return entry.function.__module__


def _pairs_of(module: list[Transport]) -> int:
    return sum(len(pairs(entry)) for entry in module)


def likenesses(entry: Transport) -> dict[str, str]:
    """Return a digest of all known influences on each pair of a transport, by kind."""
    facts = (entry.operation, entry.frame, entry.style, entry.endpoint, sorted(entry.needs), entry.requires)
    compiled = ("arrow-wire/zig", "arrow-wire/src") if "arrow_wire" in entry.modules else ()
    own = _digest(script(entry), repr(facts), _of_files((*_JUDGES, f"harness/systems/{entry.system}", *compiled)))
    return {
        kind.name: _digest(own, _of_kind(kind, entry.system), str(entry.lossy.get(kind.name, "")))
        for kind in pairs(entry)
    }


@cache
def _of_kind(kind: Kind, system: str) -> str:
    of = tables.held(kind, system)
    assert of, f"{system} has no {kind.name}"
    return _digest(repr(asdict(kind)), repr(asdict(of.own)), repr(of.values), repr(of.types), repr(of.logical_types))


@cache
def _of_files(places: tuple[str, ...]) -> str:
    files: list[Path] = []
    for place in (ROOT / place for place in places):
        inside = sorted(place.rglob("*")) if place.is_dir() else [place]
        files += [file for file in inside if file.suffix in {".py", ".zig", ".toml", ".lock"}]
    looked_at = [file for file in files if file.name not in _OF_KINDS]
    return _digest(*(f"{file.relative_to(ROOT)}\n{file.read_text(encoding='utf-8')}" for file in looked_at))


def _digest(*parts: str) -> str:
    whole = sha256()
    for part in parts:
        whole.update(f"{len(part)}:".encode())
        whole.update(part.encode("utf-8", "surrogatepass"))
    return whole.hexdigest()[:16]


def folder() -> Path:
    """Return the folder of the earlier results."""
    return settings.load().cache_dir / "pairs"


def known(place: Path, of: str = "*") -> Known:
    """Return the earlier results of transports, without those of unreadable files."""
    found = {}
    for file in place.glob(f"{of}.json"):
        try:
            found[file.stem] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            continue
    return found


def keep(place: Path, entry: Transport, findings: Iterable[Finding]) -> None:
    """Keep the pairs of a transport that ended as declared, except those that could not be tried here."""
    now = likenesses(entry)
    tried = {finding.kind for finding in findings if finding.as_wanted and finding.fate is not Fate.UNAVAILABLE}
    before = {name: like for name, like in known(place, entry.id).get(entry.id, {}).items() if name in now}
    place.mkdir(parents=True, exist_ok=True)
    new = place / f"{entry.id}.{os.getpid()}"
    new.write_text(json.dumps(before | {name: now[name] for name in tried}, indent=0), encoding="utf-8")
    new.replace(place / f"{entry.id}.json")


def choose(entries: Sequence[Transport], known: Known, day: dt.date) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return the due kinds by transport, and the number of pairs by reason."""
    quarter, due = in_shares(entries), {}
    counts = dict.fromkeys(("new or changed", "of today's quarter", UNCHANGED), 0)
    for entry in entries:
        now, came = likenesses(entry), known.get(entry.id, {})
        new = [name for name, like in now.items() if came.get(name) != like]
        names = list(now) if quarter[entry.id] == day.toordinal() % SHARES else new
        counts["new or changed"] += len(new)
        counts["of today's quarter"] += len(names) - len(new)
        counts[UNCHANGED] += len(now) - len(names)
        if names:
            due[entry.id] = names
    return due, counts


def main(file: str) -> None:
    """Write the pairs due on this day, and say so in one line."""
    due, counts = choose(select("*"), known(folder()), dt.date.today())
    Path(file).write_text(json.dumps(due), encoding="utf-8")
    told = ", ".join(f"{number:,} {reason}" for reason, number in counts.items())
    sys.stdout.write(f"pairs of a transport and a kind of values: {told}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
