"""Rows as runs_csv.load returns them, and runs on disk, for tests of reports."""

import io
import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from harness.model import Status, strings
from harness.results import runs_csv
from harness.results.folder import StoredRun
from harness.results.row import Row, numbers
from harness.suites.suite import Suite

RUN, ENVIRONMENT = "20260101T000000Z-host", "0123456789ab"


def row(transport, status=Status.OK, seconds=None, **more):
    """One row; 1,000 rows of data, so that the rate is 1000 / seconds; see `as_fields`."""
    known = {
        "run_id": RUN,
        "environment": ENVIRONMENT,
        "experiment": "matrix",
        "parameters": "rows=1000",
        "transport": transport,
        "system": "postgres",
        "operation": "write",
        "rows": 1_000,
        "pass_number": 1,
        "order": 1,
        "status": status,
    }
    if status is Status.OK:
        known |= {
            "seconds": seconds,
            "rows_per_s": 1_000 / seconds,
            "connect_seconds": 0.01,
            "cpu_seconds": seconds / 2,
            "fidelity": "exact",
        }
    else:
        known["error"] = f"it was {status}"
    return Row(**as_fields(known | more))


def as_fields(known):
    """The fields of a row; mappings may be labels, and the pass may be `pass`."""
    parsed = {"parameters": strings, "lossy": strings, "details": numbers}
    fields = {"pass_number" if name == "pass" else name: value for name, value in known.items() if value is not None}
    return {name: parsed[name](of) if name in parsed and isinstance(of, str) else of for name, of in fields.items()}


def changed(row, **more):
    """The row with other values; see `as_fields`."""
    return replace(row, **as_fields(more), **{name: None for name, value in more.items() if value is None})


def stored(facts, rows):
    return StoredRun(Path(), facts, rows)


def scan(client, files, status=Status.OK, seconds=None, **more):
    """One row of a scan over `files` files of 100 MB and 1,000 rows each."""
    about = {
        "experiment": "many_files",
        "parameters": f"scale=2; files={files}",
        "system": "parquet",
        "operation": "scan",
        "client": client,
        "rows": 1_000 * files,
        "bytes": 100_000_000 * files,
    }
    return row(f"parquet.{client}.scan", status, seconds, **(about | more))


def suite(*published, pictures=()):
    return Suite(
        name="example",
        title="An example",
        rig="databases",
        citation='A. Uthor, "The way", 2026-01-01',
        conditions="on the author's machine",
        sizes={},
        published=tuple(published),
        pictures=tuple(pictures),
    )


def environment(**more):
    """The facts of environment.json that a report needs."""
    machine = {"cpu": "A CPU", "cores": 2, "memory_bytes": 8 * 2**30, "system": "Linux", "kernel": "6.1"}
    return {
        "run_id": RUN,
        "fingerprint": ENVIRONMENT,
        "plan": {"suite": "example", "size": "default", "passes": 3},
        "lab": "local",
        "machine": machine | {"architecture": "x86_64"},
        "python": "3.11.7",
    } | more


def run_folder(folder, rows, facts=None):
    """Write the run into the folder as the runner leaves it, and return the folder.

    A row that repeats the run of another one is of the next pass.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.json").write_text(json.dumps(environment() if facts is None else facts))
    (folder / "runs.csv").unlink(missing_ok=True)
    (folder / "runs.csv").touch()
    written = set()
    for one in rows:
        while one.key in written:
            one = replace(one, pass_number=one.pass_number + 1)
        written.add(one.key)
        runs_csv.append(folder / "runs.csv", one)
    return folder


def runs(transport, times, experiment="sizes", **more):
    """Ok runs of a transport with these seconds by rows; its id gives its direction and frame."""
    system, client, function = transport.split(".")
    operation, frame, *_ = function.split("_")
    about = {"system": system, "client": client, "operation": operation, "frame": frame, "experiment": experiment}
    about |= {"origin": "beyond", "dataset": "analytics_metrics"} | more
    extra = about.pop("extra", "")
    return [
        row(
            *(transport,),
            seconds=float(took),
            **about | {"parameters": f"rows={rows}{extra}", "rows": rows, "rows_per_s": rows / float(took)},
            **{"pass": number},
        )
        for rows, every in times.items()
        for number, took in enumerate(every, 1)
    ]


def line(fixed, marginal, sizes, scatter=(0.98, 1.0, 1.02)):
    """Seconds by rows of a transport with these costs of a call and of a row, one for each factor of `scatter`."""
    return {rows: [(fixed + marginal * rows) * factor for factor in scatter] for rows in sizes}


def terminal(width):
    """A terminal of this width that keeps its output."""
    return Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None, legacy_windows=False)


def printed(tables, width):
    console = terminal(width)
    for table in tables:
        console.print(table)
    return console.file.getvalue()
