"""The part of the rig of databases that puts a link between a worker and its server."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.lab import links
from harness.lab.labs import Lab
from harness.lab.links import Limits, Links, Off
from harness.model import LabError
from harness.results import runs_csv
from harness.run.rigs import networks
from harness.run.rigs.networks import Networks, limits_of
from harness.run.rigs.rig import NotNow
from harness.settings import Settings
from harness.worker.contracts.databases import Addresses, DatabaseJob
from tests.run.rigs.orders import case

_CALL = "postgres.psycopg.call_select_1"
_LINK = {"rows": 20, "mbit_per_s": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Networks]:
    folder = tmp_path_factory.mktemp("networks")
    folder.chmod(0o755)
    with links.opened(Settings(state_dir=folder), print) as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield Networks(found)


def job(lab) -> DatabaseJob:
    return DatabaseJob(transport=_CALL, dataset="", kinds={}, addresses=Addresses(lab.endpoints["postgres"]))


def test_a_job_is_given_the_address_of_the_link_and_its_row_what_that_was_measured_to_be(made, embedded_lab):
    given = job(embedded_lab)
    linked = made.put(case(_CALL, **_LINK, rtt_ms=5), given)
    assert urlsplit(linked.addresses.uri).port != urlsplit(given.addresses.uri).port
    assert urlsplit(linked.addresses.uri).password == urlsplit(given.addresses.uri).password
    found = made.after(case(_CALL, **_LINK, rtt_ms=5), {})
    assert 4.5 <= found["link_rtt_ms"] <= 5.9
    whole = bool(linked.namespace)
    assert found["link_is_whole"] == whole
    assert made.put(case(_CALL), given) == given
    assert made.after(case(_CALL), {}) == {}


def test_a_client_that_goes_around_the_wire_is_an_error(made, embedded_lab):
    if made.links.wire is None:
        pytest.skip(made.links.no_wire)
    made.put(case(_CALL, **_LINK), job(embedded_lab))
    with pytest.raises(LabError, match=r"expected 1,000,001 bytes of its connections on the link, found \d"):
        made.after(case(_CALL, **_LINK), {"sent_bytes": 1, "received_bytes": 1_000_000})


def test_a_link_that_is_off_leaves_the_run_for_another_time(made, embedded_lab, monkeypatch):
    def off(self: Links, limits: Limits) -> None:
        raise Off(f"expected {limits.rtt_ms} ms, found 7")

    monkeypatch.setattr(Links, "measured", off)
    with pytest.raises(NotNow, match="expected 5 ms, found 7"):
        made.put(case(_CALL, **_LINK, rtt_ms=5), job(embedded_lab))


@pytest.mark.parametrize(
    "values",
    [{"rtt_ms": 0.2}, {"rtt_ms": -1}, {"mbit_per_s": "fast"}],
    ids=str,
)
def test_limits_that_no_link_here_can_have_are_refused(values):
    with pytest.raises(LabError, match="expected rtt_ms and mbit_per_s in whole numbers"):
        limits_of(case(_CALL, **_LINK | {"rtt_ms": 1} | values))


def test_what_is_left_out_adds_and_limits_nothing():
    assert limits_of(case(_CALL, **_LINK)) == Limits(0, 0)
    assert limits_of(case(_CALL)) is None


def test_servers_of_others_are_not_reached_over_links(settings):
    lab = Lab("external", None, {}, None, list, list)
    linked = case(_CALL, **_LINK, rtt_ms=1)
    with networks.linked(settings, lab, [linked], print) as found:
        assert "links are made to the servers of the embedded lab alone" in str(found.unavailable(linked))
        assert found.unavailable(case(_CALL)) is None


def test_what_talks_to_others_than_its_database_is_unavailable_over_a_link(made):
    other = case("clickhouse.httpx.write_polars_s3_parquet", **_LINK)
    assert "no link is put into" in str(made.unavailable(other))


SUITE = """
name = "linked"
title = "Over a link"
rig = "databases"

[defaults]
select = "postgres.psycopg.write_polars_copy_text, clickhouse.clickhouse_connect.read_polars_query_arrow"
dataset = "analytics_metrics"
passes = 1
time_limit_seconds = 60

[[sizes.smoke.experiments]]
name = "networks"
parameters = { rows = [2_000], rtt_ms = [0, 30, 60], mbit_per_s = [0] }

[[pictures]]
name = "rtt"
title = "Time over the round trip"
form = "lines"
x = "parameter:rtt_ms"
y = "seconds"
"""


@pytest.mark.long
def test_a_suite_over_links_says_in_each_row_what_they_were_and_counts_round_trips(lab, environment, tmp_path):
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "linked.toml").write_text(SUITE)
    done = lab("run", "linked", "--size", "smoke", env=environment | {"LAB_SUITES_DIR": str(tmp_path / "suites")})
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).iterdir()
    rows = runs_csv.load(folder / "runs.csv")
    assert {str(row.status) for row in rows} == {"ok"}
    for row in rows:
        asked = float(row.parameters["rtt_ms"])
        assert asked <= row.details["link_rtt_ms"] <= 1.1 * asked + 0.3 or not asked
        assert row.seconds > asked / 1e3
    assert "Round trips" in (folder / "report.md").read_text()
