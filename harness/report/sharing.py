"""What a race recommends as five lines of Markdown, to send to somebody."""

from __future__ import annotations

import re

from harness.model import Operation
from harness.report import markdown
from harness.report.answer_tables import route
from harness.report.cells import called, megabytes, significant
from harness.report.recommendation import Figure, Recommendation, needs, without_time
from harness.results.environment import server_in_words
from harness.results.folder import Facts


def lines(found: Recommendation, environment: Facts) -> list[str]:
    """Return a table of what to take and what it is set against; below it machine, versions and command."""
    one, other = found.taken, found.beside
    rows = [_row(one)]
    if other or one.transport != found.fastest.transport:
        rows.append(_row(other or found.fastest))
    elif found.default and found.default != one.transport:
        rows.append((called(found.default), without_time(found), "", ""))
    head = (f"{route(found)}, {found.rows:,} rows × {len(found.columns)} columns", "median", "peak", "pip install")
    command = f"lab recommend --data FILE --{'to' if found.operation == Operation.WRITE else 'from'} {found.system}"
    said = (
        f"Every value compared; {markdown.machine(environment['machine'])}; {', '.join(_versions(found, environment))}"
    )
    table = markdown.table(head, rows, right=(1, 2)).splitlines()
    return [*table, f"> {said}; `{command} --frame {found.frame}`"]


def _row(figure: Figure) -> tuple[str, ...]:
    peak = megabytes(figure.peak_rss_bytes)
    return figure.name, f"{significant(figure.seconds)} s", f"{peak} MB" if peak else "", needs(figure)


def _versions(found: Recommendation, environment: Facts) -> list[str]:
    packages, servers = environment.get("packages", {}), environment.get("servers", {})
    names = [found.frame, *(re.split(r"\[", package)[0] for package in found.taken.installs)]
    versions = [f"{name} {packages[name]}" for name in dict.fromkeys(names) if name in packages]
    if server := servers.get(found.system):
        versions.insert(0, f"{found.system} {server_in_words(server)} ({found.lab})")
    return versions
