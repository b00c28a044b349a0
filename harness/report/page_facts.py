"""What a page says in words: how a run went, where it ran, and with which settings."""

from collections import Counter
from collections.abc import Sequence

from harness.model import Status
from harness.report.cells import volume
from harness.report.machine import said as of_machine
from harness.report.summary import Summary
from harness.results.environment import code, server_in_words
from harness.results.folder import Facts
from harness.results.row import Row

Fact = tuple[str, str]
_FILES = 3  # as many are described one by one
_LIBRARIES = ("pandas", "polars", "pyarrow", "duckdb")  # all others stand in the environment at the end of the page


def headline(environment: Facts, rows: Sequence[Row], summaries: Sequence[Summary]) -> list[str]:
    """Return sentences that say how much was run, how it ended, and whether anything is missing."""
    plan, passes = environment["plan"], environment["plan"]["passes"]
    counts = Counter(str(row.status) for row in rows)
    endings = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    size = f" of size {plan['size']}" if "size" in plan else ""
    cases = f"{_many(len(summaries), 'case')} in {_many(passes, 'pass', 'passes')}{size}"
    sentences = [f"{cases}: {_many(len(rows), 'run')}{f' ({endings})' if rows else ''}."]
    if compared := environment.get("compared"):
        sentences.append(f"The data were compared before the run: {compared}.")
    if any(status != Status.OK for status in counts):
        sentences.append("Only ok runs have figures; why the others have none stands below.")
    made = Counter(row.case for row in rows)
    if short := sum(1 for count in made.values() if count < passes):
        sentences.append(
            f"This run is not complete: {_many(short, 'case')} of those below have fewer than {_many(passes, 'run')}."
        )
    return [*sentences, *of_machine(environment, rows, summaries)]


def facts(environment: Facts) -> list[Fact]:
    """Return where and how a run was made, as names and texts; what environment.json does not say is left out."""
    machine = environment["machine"]
    found = [
        ("Run", environment["run_id"]),
        ("Plan", _plan(environment["plan"])),
        ("Data", _all_data(environment.get("data", []))),
        ("Lab", environment["lab"]),
        *((f"Server {name}", _server(server)) for name, server in environment.get("servers", {}).items()),
        (
            "Machine",
            f"{machine['cores']} cores of {machine['cpu'] or machine['architecture']}, "
            f"{machine['memory_bytes'] / 2**30:.0f} GiB of memory",
        ),
        ("System", f"{machine['system']} {machine['kernel']}, {machine['architecture']}"),
        ("Filesystem of the data", environment.get("server_filesystem") or ""),
        ("Python", environment["python"]),
        ("Libraries", _libraries(environment.get("packages", {}))),
        ("Code", code(environment)),
        *(
            (name.replace("_", " ").capitalize(), str(text))
            for name, text in environment.get("measurement", {}).items()
        ),
        ("Load average at the start", ", ".join(map(str, environment.get("load_average_at_start", ())))),
    ]
    return [(name, text) for name, text in found if text]


def pinned(rows: Sequence[Row]) -> list[Fact]:
    """Return the settings that transports set themselves, and which do."""
    found: dict[str, set[str]] = {}
    for row in rows:
        if row.pinned:
            found.setdefault(row.pinned, set()).add(row.transport)
    return [(settings, ", ".join(sorted(names))) for settings, names in sorted(found.items())]


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def _plan(plan: Facts) -> str:
    experiments = ", ".join(part["name"] for part in plan.get("experiments", ()))
    parts = [
        f"suite {plan['suite']}",
        f"size {plan['size']}" if "size" in plan else "",
        _many(plan["passes"], "pass", "passes"),
        f"experiments {experiments}" if experiments else "",
        f"transports {plan['select']}" if plan.get("select") else "",
        f"data of seed {plan['seed']}" if "seed" in plan else "",
        f"time limit {plan['time_limit']:g} s a run" if "time_limit" in plan else "",
    ]
    return ", ".join(part for part in parts if part)


def _all_data(files: Sequence[Facts]) -> str:
    """Say what the data are, one by one or, where they are many files, in all."""
    if len(files) <= _FILES:
        return "; ".join(map(_data, files))
    names = ", ".join(dict.fromkeys(str(file.get("name", "data")) for file in files))
    size = volume(sum(file.get("bytes") or 0 for file in files))
    return f"{names}: {len(files)} files, {size} in all, each described in the environment below"


def _data(data: Facts) -> str:
    """Say what a file or dataset is: its name, extent, seed and the beginning of the hash of its content."""
    parts = [
        str(data.get("name", "data")),
        f"{data['rows']:,} rows" if isinstance(data.get("rows"), int) else "",
        volume(data["bytes"]) if isinstance(data.get("bytes"), int) else "",
        f"seed {data['seed']}" if "seed" in data else "",
        f"content {str(data['content_hash'])[:12]}" if "content_hash" in data else "",
    ]
    return ", ".join(part for part in parts if part)


def _server(server: Facts) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in server.get("settings", {}).items())
    return server_in_words(server) + (f"; settings that differ from its defaults: {settings}" if settings else "")


def _libraries(packages: dict[str, str]) -> str:
    return ", ".join(f"{name} {packages[name]}" for name in _LIBRARIES if name in packages)
