"""Measure the harness: `make benchmarks` prints each figure with the bound the project sets itself.

These figures depend on the machine and its other work, so they are not tests.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness import registry
from harness.datasets import store
from harness.lab.embedded import EmbeddedLab
from harness.model import Experiment
from harness.run import runner
from harness.run.plan import Plan
from harness.run.rigs.rig import RunRequest
from harness.run.suite_run import open_run
from harness.settings import Settings
from harness.worker.measure import Stopwatch

OVERHEAD_OF = (
    "postgres.psycopg.write_polars_copy_text",
    "postgres.psycopg.read_polars_copy_text",
    "clickhouse.httpx.write_pandas_parquet",
    "clickhouse.clickhouse_driver.read_pandas_columnar",
)


def timed(call: Callable[[], object]) -> float:
    """Return the wall seconds of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def line(what: str, figure: str, bound: str) -> None:
    """Print one figure."""
    print(f"{what:<72} {figure:>14}   {bound}", flush=True)


def do_nothing() -> None:
    """The clock around an empty body."""

    def once() -> float:
        with Stopwatch() as stopwatch:
            pass
        return stopwatch.seconds

    line(
        "a transport that does nothing (median of 100)",
        f"{statistics.median(once() for _ in range(100)) * 1e6:.1f} us",
        "< 50 us",
    )


def data_generation(folder: Path) -> None:
    """Building datasets, each in a separate process, so that its peak memory is its own."""
    for rows, bound in ((1_000_000, "< 3 s"), (10_000_000, "< 3 GB of peak memory")):
        ensure = f"store.ensure(Path({str(folder)!r}), 'analytics_metrics', {rows}, 1)"
        code = f"from pathlib import Path; from harness.datasets import store; {ensure}"
        seconds = timed(lambda: subprocess.run((sys.executable, "-c", code), check=True))  # noqa: B023 - called at once
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 if sys.platform == "darwin" else 1024)
        line(f"building {rows:,} rows, process included", f"{seconds:.2f} s", bound if rows == 1_000_000 else "")
        line("  peak memory of all builders so far", f"{peak:,.0f} MB", bound if rows != 1_000_000 else "")


def lab_start(folder: Path) -> None:
    """The embedded lab, up and down."""
    ups, downs = [], []
    for _ in range(5):
        lab = EmbeddedLab(folder / "lab")
        ups.append(timed(lab.start))
        downs.append(timed(lab.stop))
    line("embedded lab up (median, max of 5)", f"{statistics.median(ups):.2f}, {max(ups):.2f} s", "< 4 s")
    line("embedded lab down (median, max of 5)", f"{statistics.median(downs):.2f}, {max(downs):.2f} s", "")


def gateway(folder: Path) -> None:
    """Round trips of the ClickHouse gateway with clients as shipped."""
    import httpx
    from clickhouse_driver import Client

    with EmbeddedLab(folder / "lab", services=("clickhouse",)) as lab:
        native = Client.from_url(lab.endpoints["clickhouse_native"])
        url = httpx.URL(lab.endpoints["clickhouse_http"])
        with httpx.Client(auth=(url.username, url.password)) as http:
            address = url.copy_with(userinfo=b"")
            calls = {
                "SELECT 1 over HTTP": lambda: http.post(address, content="SELECT 1").raise_for_status(),
                "SELECT 1 over the native protocol": lambda: native.execute("SELECT 1"),
            }
            for what, call in calls.items():
                call()
                line(f"{what} (median of 50)", f"{statistics.median(timed(call) for _ in range(50)) * 1e3:.2f} ms", "")


def overhead_per_run(folder: Path) -> None:
    """Wall time of a whole run without the transport and its imports, at the suite's default size."""
    settings = Settings(datasets_dir=folder, results_dir=folder / "results", state_dir=folder / "lab")
    ways = ",".join(OVERHEAD_OF)
    experiment = Experiment("overhead", ways, "analytics_metrics", {"rows": [100_000]})
    plan = Plan("matrix", "default", ways, (experiment,), 3, 1, 120.0)
    rows: list[dict] = []
    walls: dict[str, list[float]] = {}
    request = RunRequest(settings=settings, plan=plan, rig="databases", lab="embedded", say=print)
    with open_run(request) as suite_run:
        for system in ("postgres", "clickhouse"):
            suite_run.rig.tables.for_read(system)  # loading the tables happens once, not in every run
        for run in suite_run.todo:
            wall = timed(lambda: runner.perform(suite_run, [run], rows.append))  # noqa: B023 - called at once
            walls.setdefault(run.case.transport.id, []).append(wall - rows[-1].seconds - rows[-1].connect_seconds)
    bare = importing(())
    for name, values in walls.items():
        imports = importing(registry.one(name).requires) - bare
        line(
            f"a run of {name} without transport and imports", f"{statistics.median(values) - imports:.2f} s", "< 0.5 s"
        )


def importing(modules: tuple[str, ...]) -> float:
    """Return the median wall seconds of starting Python and importing modules."""
    code = "; ".join(f"load({module!r})" for module in modules) or "pass"
    code = f"from harness.registry import load; {code}"
    return statistics.median(timed(lambda: subprocess.run((sys.executable, "-c", code), check=True)) for _ in range(3))


def main() -> None:
    """Run all benchmarks in a scratch folder."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        do_nothing()
        data_generation(folder)
        store.ensure(folder, "analytics_metrics", 100_000, 1)
        lab_start(folder)
        gateway(folder)
        overhead_per_run(folder)


if __name__ == "__main__":
    main()
