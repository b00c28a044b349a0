"""A run as Markdown: report.md, and the parts of it that are in other pages; the conditions of a run in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.model import printable
from harness.report.figures import numbered, volume
from harness.report.table import Chart, Section, Table
from harness.results.environment import code, held_back, server_in_words
from harness.results.folder import Facts, ids
from harness.suites.suite import Suite


def document(title: str, found: Sequence[Section], opening: Sequence[str] = ()) -> str:
    """Return a document of these sections, below some paragraphs. Long parts are in the page alone, which it says."""
    shown = [one for one in found if not one.folded and (one.tables or one.sentences or one.charts)]
    links = [f"[{one.title}](#{re.sub('[^a-z0-9]+', '-', one.title.lower())})" for one in shown]
    parts = [f"# {plain(title)}", *opening, *([f"Sections: {' · '.join(links)}."] if len(links) > 2 else [])]
    for one in shown:
        said = [f"- {plain(line)}" for line in one.sentences[:_SAID]]
        more = len(one.sentences) - len(said)
        said += [f"- {more} more sentences are in the page (report.html)."] if more else []
        parts += [f"## {plain(one.title)}", "\n".join(said), *_tables(one)]
        parts += [f"### {plain(drawn.title)}\n\n{_picture(drawn)}" for drawn in one.charts]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _picture(drawn: Chart) -> str:
    return f"![{plain(drawn.title)}]({drawn.path})\n\n{plain(drawn.caption)}"


_FIRST = 10  # rows shown of a table that does not fit as a whole
_ROOM, _SAID = 34_000, 40  # characters of the tables of one section, and its sentences
_FILES = 3  # of data: as many are described one by one
_SHORT = ("Run", "Suite", "Lab", "Server", "Machine", "Filesystem", "Python", "Libraries", "Code")
_LIBRARIES = ("pandas", "polars", "pyarrow", "duckdb")
Fact = tuple[str, str]
_HOW_TO_READ = """\
- One run is one call in its own process. Figures are from the runs that are ok; a status says if these are fewer than
  the number that a table names. Rows are in the order of the median, the middle one of these runs.
- In brackets is the 95 % interval of the time: the moderated t on the logarithms of seconds, which also uses how much
  the other transports of the run scatter (docs/explanation/statistics.md says how often it contains the truth).
- A rank is 1 plus the number of transports that are shown to be faster, corrected for the size of the table. One that
  scatters widely may share the rank (=) of one above it. A question mark means too few runs to tell.
- An A/A control is one transport under a second id: the two differ by chance alone.
- Seconds are wall time of the call alone; connecting and a warm-up call are outside.
- Peak memory is the worker's resident memory above what it had when the clock started; it does not include
  a server. Anonymous pages belong to the process. File-backed pages are mapped files, which the system can take back.
- A run that is not ok has no figure: `mismatch` (a value came back wrong), `error`, `timeout`, `killed`,
  `unavailable` (this lab lacks something) or `unsupported` (the transport cannot do it)."""


def report(suite: Suite, environment: Facts, found: Sequence[Section]) -> str:
    """Return report.md of one run from its sections."""
    first, *others = found
    opening = [
        *map(_picture, first.charts),
        *_tables(first),
        " ".join(map(plain, first.sentences)),
        f"{plain('; '.join(in_short(environment)))}.",
    ]
    published = f"Published figures: {plain(suite.citation)}; {plain(suite.conditions)}." if suite.citation else ""
    text = document(suite.title, others, opening)
    last = ("## How to read this", _HOW_TO_READ, published, _WITH_IT)
    return "\n".join([text, *(f"{part}\n" for part in last if part)])


_WITH_IT = (
    "Files: [every run](runs.csv), [every case](summary.csv), and [machine, versions and settings](environment.json)."
)


def _tables(one: Section) -> Iterator[str]:
    """Yield the tables of a section while they fit, and say how many are in the page alone."""
    room = _ROOM
    for place, given in enumerate(one.tables):
        text = text_table(given)
        if place and len(text) > room:
            text = text_table(given, _FIRST)
        if place and len(text) > room:
            yield f"{len(one.tables) - place} more tables are in the page (report.html); all figures: summary.csv."
            return
        room -= len(text)
        yield text


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Return a Markdown table, the columns `right` aligned to the right; a bar within a cell is escaped."""
    cells = ([cell.replace("|", "\\|") for _, cell in zip(head, row, strict=True)] for row in (head, *rows))
    lines = [f"| {' | '.join(row)} |" for row in cells]
    rule = "".join("---:|" if place in right else "---|" for place in range(len(head)))
    return "\n".join([lines[0], f"|{rule}", *lines[1:]]) + "\n"


def facts(environment: Facts) -> list[Fact]:
    """Return where and how a run was made, as names and strings, without the facts that environment.json lacks."""
    plan, servers = environment["plan"], environment.get("servers", {})
    experiments = ", ".join(part["name"] for part in plan.get("experiments", ()))
    measured = environment.get("measurement", {}).items()
    found = [
        ("Run", ids(environment)),
        ("Suite", f"{plan['suite']}, {extent(plan)}"),
        ("Experiments", experiments),
        ("Transports", plan.get("select", "")),
        ("Seed of the data", str(plan.get("seed", ""))),
        ("Time limit of a run", f"{plan['time_limit']:g} s" if "time_limit" in plan else ""),
        ("Data", _all_data(environment.get("data", []))),
        ("Lab", environment["lab"]),
        *((f"Server {name}", server_in_words(server)) for name, server in servers.items()),
        *((f"Settings of {name} other than its defaults", _settings(server)) for name, server in servers.items()),
        ("Machine", machine(environment["machine"])),
        ("Filesystem of the data", environment.get("server_filesystem") or ""),
        ("Python", environment["python"]),
        ("Libraries", _libraries(environment)),
        ("Code", code(environment)),
        *((name.replace("_", " ").capitalize(), str(text)) for name, text in measured),
        ("Load average at the start", ", ".join(map(str, environment.get("load_average_at_start", ())))),
    ]
    return [(name, text) for name, text in found if text]


def in_short(environment: Facts) -> list[str]:
    """Return the most important of the `facts`, each as `name: text`."""
    return [f"{name}: {text}" for name, text in facts(environment) if name.startswith(_SHORT)]


def extent(plan: Facts) -> str:
    """Say how much a plan runs: its size and passes; a race plans no passes."""
    if plan.get("size") == "race":
        return "a race, which runs the fastest transports most often"
    size = f"size {plan['size']}, " if "size" in plan else ""
    return f"{size}{numbered(plan['passes'], 'pass', 'passes')}"


def machine(facts: Facts) -> str:
    """Describe a machine."""
    return (
        f"{facts['cores']} cores of {facts['cpu'] or facts['architecture']}, "
        f"{facts['memory_bytes'] / 2**30:.0f} GiB, {facts['system']} {facts['kernel']}"
    )


def _libraries(environment: Facts) -> str:
    """Return the versions of the libraries of frames, and of the used packages that are older than the newest."""
    packages = environment.get("packages", {})
    used = {name for names in environment["uses"].values() for name in names} if "uses" in environment else packages
    known = [f"{name} {packages[name]}" for name in _LIBRARIES if name in packages]
    older = [
        f"{name} {one['locked']} for {one['by']} ({one['newest']} is out)"
        for name, one in held_back().items()
        if name in used and packages.get(name) == one["locked"]
    ]
    return ", ".join([*known, f"older than the newest: {', '.join(older)}"] if older else known)


def _all_data(files: Sequence[Facts]) -> str:
    """Describe the data, one by one or, for many files, as a whole."""
    if len(files) <= _FILES:
        return "; ".join(map(_data, files))
    names = ", ".join(dict.fromkeys(str(file.get("name", "data")) for file in files))
    size = volume(sum(file.get("bytes") or 0 for file in files))
    return f"{names}: {len(files)} files, {size} in all, each described in the environment below"


def _data(data: Facts) -> str:
    """Describe a file or dataset: its name, extent, seed and the beginning of the hash of its content."""
    parts = [
        str(data.get("name", "data")),
        f"{data['rows']:,} rows" if isinstance(data.get("rows"), int) else "",
        volume(data["bytes"]) if isinstance(data.get("bytes"), int) else "",
        f"seed {data['seed']}" if "seed" in data else "",
        f"content {str(data['content_hash'])[:12]}" if "content_hash" in data else "",
    ]
    return ", ".join(part for part in parts if part)


def _settings(server: Facts) -> str:
    return ", ".join(f"{name}={value}" for name, value in server.get("settings", {}).items())


def text_table(given: Table, best: int | None = None) -> str:
    """Return a table of strings with its title and notes, of all its rows or the `best` ones."""
    shown = given.rows[:best]
    left_out = (
        f" (the first {len(shown)} of {len(given.rows)}; all: summary.csv)" if len(shown) < len(given.rows) else ""
    )
    rows = [
        tuple(
            f"**{plain(cell)}**" if cell and (number, place) in given.best else plain(cell)
            for place, cell in enumerate(row)
        )
        for number, row in enumerate(shown)
    ]
    head = [plain(text.replace("\n", " ")) for text in given.head]
    text = table(head, rows, right=set(range(len(head))) - given.wide)
    notes = "".join(f"- {plain(note)}\n" for note in given.notes)
    return f"**{plain(given.title)}**{left_out}\n\n{text}" + (f"\n{notes}" if notes else "")


def plain(text: str) -> str:
    """Escape markup of Markdown and HTML: a reader sees each character of a string, but names in backticks as code."""
    return "".join(
        part if place % 2 else _escaped(part)
        for place, part in enumerate(NAMES.split(printable(text.replace("\n", " "))))
    )


NAMES = re.compile(r"(`(?! )[\w.,()*=/ -]+(?<! )`)")  # in a sentence, as its author wrote them


def _escaped(text: str) -> str:
    text = re.sub(r"([\\`*\[\]])", r"\\\1", text)
    text = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)  # within a word it is no emphasis
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text)  # else it is an ampersand already
    return text.replace("<", "&lt;")
