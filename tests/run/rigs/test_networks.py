"""The part of the rig of databases that puts a link or TLS between a worker and its server."""

import time
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import psycopg
import pytest

from harness.lab import links, tls_endpoints
from harness.lab.labs import Lab
from harness.lab.links import Limits, Links, Off
from harness.model import LabError, Status
from harness.results import runs_csv
from harness.run.rigs import networks
from harness.run.rigs.networks import Networks, limits_of, tls_of
from harness.run.rigs.rig import NotNow
from harness.settings import Settings
from harness.worker.contracts.databases import Addresses, DatabaseJob
from tests.commands import ran
from tests.run.rigs.orders import case
from tests.waiting import until

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
    return DatabaseJob(transport=_CALL, dataset="", logical_types={}, addresses=Addresses(lab.endpoints["postgres"]))


def test_a_job_is_given_the_address_of_the_link_and_its_row_what_that_was_measured_to_be(made, embedded_lab):
    given = job(embedded_lab)
    linked = made.put(case(_CALL, **_LINK, rtt_ms=5), given)
    assert urlsplit(linked.addresses.uri).password == urlsplit(given.addresses.uri).password
    found = made.after(case(_CALL, **_LINK, rtt_ms=5), {})
    assert 4.5 <= found["link_rtt_ms"] <= 5.9
    whole = bool(linked.namespace)
    assert found["link_is_whole"] == whole
    assert (urlsplit(linked.addresses.uri).port == urlsplit(given.addresses.uri).port) == whole
    assert ("link_cpu_seconds" in found) == whole
    assert made.put(case(_CALL), given) == given
    assert made.after(case(_CALL), {}) == {}


def test_a_client_that_goes_around_the_wire_is_an_error(made, embedded_lab):
    if made.links.wire is None:
        pytest.skip(made.links.no_wire)
    made.put(case(_CALL, **_LINK), job(embedded_lab))
    with pytest.raises(LabError, match=r"the client moved 1,000,001 bytes and the link \d"):
        made.after(case(_CALL, **_LINK), {"sent_bytes": 1, "received_bytes": 1_000_000})


def test_a_link_that_is_off_leaves_the_run_for_another_time(made, embedded_lab, monkeypatch):
    def off(self: Links, limits: Limits) -> None:
        raise Off(f"expected {limits.rtt_ms:g} ms, found 7")

    monkeypatch.setattr(Links, "measured", off)
    with pytest.raises(NotNow, match="expected 5 ms, found 7"):
        made.put(case(_CALL, **_LINK, rtt_ms=5), job(embedded_lab))


@pytest.mark.parametrize(
    "values",
    [{"rtt_ms": "0.2"}, {"rtt_ms": -1}, {"mbit_per_s": 0.5}, {"mbit_per_s": "fast"}],
    ids=str,
)
def test_limits_that_no_link_here_can_have_are_refused(values):
    with pytest.raises(LabError, match="choose a number for rtt_ms and a whole one for mbit_per_s"):
        limits_of(case(_CALL, **_LINK | {"rtt_ms": 1} | values))


def test_what_is_left_out_adds_and_limits_nothing():
    assert limits_of(case(_CALL, **_LINK)) == Limits(0, 0)
    assert limits_of(case(_CALL)) is None
    assert limits_of(case(_CALL, **_LINK, rtt_ms=0.2)) == Limits(0.2, 0)


@pytest.mark.process
def test_a_link_that_cannot_be_made_here_is_unavailable_with_what_to_do(made, monkeypatch):
    monkeypatch.setattr(made.links, "unavailable", lambda limits: f"not {limits.rtt_ms:g}: do this")
    assert made.unavailable(case(_CALL, **_LINK, rtt_ms=0.2)) == "not 0.2: do this"
    assert made.unavailable(case(_CALL)) is None


@pytest.fixture(scope="module")
def with_fronts(made, embedded_lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Networks]:
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)
    with tls_endpoints.opened(Settings(state_dir=folder), embedded_lab.endpoints) as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield Networks(made.links, found)


def test_a_job_with_tls_has_an_address_that_asks_for_it_and_its_row_says_that_it_was_used(with_fronts, embedded_lab):
    one, given = case(_CALL, rows=20, tls="on"), job(embedded_lab)
    told = with_fronts.put(one, given)
    assert told.server_pids == [with_fronts.fronts.lab.pids[tls_endpoints.NAME]]
    with pytest.raises(LabError, match="the client went around it"):
        with_fronts.after(one, {})
    with psycopg.connect(told.addresses.uri) as connection:
        assert connection.pgconn.ssl_in_use
    assert with_fronts.after(one, {}) == {"tls_connections": 1, "tls_version": 1.3, "tls_key_bits": 256}
    assert with_fronts.put(case(_CALL), given) == given
    assert with_fronts.after(case(_CALL), {}) == {}


def test_tls_goes_over_the_link_of_its_case(with_fronts, embedded_lab):
    one = case(_CALL, **_LINK, rtt_ms=5, tls="on")
    told = with_fronts.put(one, job(embedded_lab))
    wire = with_fronts.links.wire
    connect = partial(psycopg.connect, told.addresses.uri)
    with wire.at_the_other_end(connect) if wire else connect() as connection:
        assert connection.pgconn.ssl_in_use
        started = time.perf_counter()
        connection.execute("SELECT 1")
        assert time.perf_counter() - started > 0.0045
    found = with_fronts.after(one, {"sent_bytes": 1_000})
    assert found["tls_connections"] == 1
    assert found["link_rtt_ms"] > 4.5


def test_what_ends_tls_is_brought_back(with_fronts, embedded_lab):
    one = case(_CALL, rows=20, tls="off")
    with_fronts.fronts.lab.end(tls_endpoints.NAME)
    until(lambda: with_fronts.died(one))
    assert not with_fronts.died(case(_CALL))
    assert with_fronts.revive() == [tls_endpoints.NAME]
    psycopg.connect(with_fronts.put(one, job(embedded_lab)).addresses.uri).close()
    assert with_fronts.after(one, {}) == {"tls_connections": 0}


def test_tls_is_on_or_off():
    assert [tls_of(case(_CALL, rows=20, tls=word)) for word in ("on", "off")] == [True, False]
    assert tls_of(case(_CALL)) is None
    with pytest.raises(LabError, match="tls 1: choose on or off"):
        tls_of(case(_CALL, rows=20, tls=1))


def test_servers_of_others_are_not_reached_over_links(settings):
    lab = Lab("external", None, {}, None, list, list)
    linked = case(_CALL, **_LINK, rtt_ms=1)
    with networks.linked(settings, lab, [linked], print) as found:
        assert "links are made to the servers of the embedded lab alone" in str(found.unavailable(linked))
        assert "name it in their addresses" in str(found.unavailable(case(_CALL, rows=20, tls="on")))
        assert found.unavailable(case(_CALL)) is None


@pytest.mark.process
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
where = { experiment = ["networks"] }
x = "parameter:rtt_ms"
y = "seconds"
"""


ENCRYPTED = """
name = "encrypted"
title = "With TLS"
rig = "databases"

[defaults]
select = "postgres.psycopg.write_polars_copy_text, clickhouse.clickhouse_driver.read_pandas_columnar"
dataset = "analytics_metrics"
passes = 1
time_limit_seconds = 60

[[sizes.smoke.experiments]]
name = "on_and_off"
parameters = { rows = [2_000], rtt_ms = [5], tls = ["off", "on"] }

[[sizes.smoke.experiments]]
name = "every_client"
select = "postgres.*.call_select_1, clickhouse.*.call_select_1, postgres.psycopg.read_polars_tuned"
parameters = { rows = [2_000], tls = ["on"] }

[[comparisons]]
title = "with TLS it"
experiment = "on_and_off"
one = { tls = "on" }
other = { tls = "off" }

[[pictures]]
name = "seconds"
title = "Seconds"
form = "bars"
y = "seconds"
"""


@pytest.mark.long
def test_a_suite_over_links_says_in_each_row_what_they_were_and_counts_round_trips(lab, environment):
    folder = ran(lab, environment, SUITE)
    rows = runs_csv.load(folder / "runs.csv")
    assert {str(row.status) for row in rows} == {"ok"}
    for row in rows:
        asked = float(row.parameters["rtt_ms"])
        assert asked * 0.9 <= row.details["link_rtt_ms"] <= 1.1 * asked + 0.2 or not asked
        assert row.seconds > 0.9 * asked / 1e3
    assert "Round trips" in (folder / "report.md").read_text()


@pytest.mark.long
def test_a_suite_with_tls_says_in_each_row_that_it_was_used_and_what_it_costs(lab, environment):
    folder = ran(lab, environment, ENCRYPTED)
    rows = runs_csv.load(folder / "runs.csv")
    clients = {(row.system, row.client): row for row in rows if row.experiment == "every_client"}
    refused = {(row.system, row.client) for row in rows if row.status is Status.UNSUPPORTED}
    assert refused == {("clickhouse", "connectorx")}
    assert len(clients) >= 14
    for row in rows:
        if row.status is not Status.UNSUPPORTED:
            assert (row.status, row.error) == (Status.OK, "")
            assert (row.details["tls_connections"] > 0) == (row.parameters["tls"] == "on")
            assert ("link_rtt_ms" in row.details) == ("rtt_ms" in row.parameters)
    assert "with TLS it took" in (folder / "report.md").read_text()
