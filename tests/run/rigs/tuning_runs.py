"""Runs of the tuning rig in tests: cases in, rows out, nothing left behind."""

from harness.model import Run, Status
from harness.results import runs_csv
from harness.run import runner
from harness.run.rigs import tuning
from tests.run.rigs import orders

TABLE = {"rows": 20_000, "files": 3}


def case(transport, **values):
    """Return a case of a transport with these parameters."""
    return orders.case(transport, "benchmark_input", **values)


def perform(settings, folder, *cases, traces=False):
    """Run cases in a rig of their own with this folder for results; return the rows."""
    folder.mkdir()
    with tuning.opened(orders.order(settings, *cases)) as rig:
        session = orders.running(rig, folder, 60.0, traces)
        runner.perform(session, [Run(case, 1, place) for place, case in enumerate(cases, 1)], lambda row: None)
        assert not [secret for secret in rig.secrets if secret in f"{rig.headline} {rig.facts()}"]
        secrets = list(rig.secrets)
    assert not list(settings.state_dir.glob("*/*"))
    assert not [secret for secret in secrets if secret in (folder / "runs.csv").read_text()]
    return runs_csv.load(folder / "runs.csv")


def fine(rows):
    """Say whether all runs are ok."""
    return [(row.status, row.error) for row in rows] == [(Status.OK, "")] * len(rows)
