"""Services of the embedded lab that die: they are reported, and brought back with their rows, once."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from harness.lab.embedded import EmbeddedLab, ServiceError
from tests.lab.embedded_labs import clickhouse, nothing_is_left_in, postgres
from tests.waiting import DEADLINE_SECONDS, until

pytestmark = [pytest.mark.process, pytest.mark.long]


def test_a_killed_postmaster_is_reported_and_revived_with_its_rows(folder):
    with EmbeddedLab(folder, ["postgres"]) as lab:
        postgres(lab, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS n")
        endpoints, pids = lab.endpoints, lab.pids
        os.kill(lab.pids["postgres"], signal.SIGKILL)
        until(lab.dead)
        assert lab.dead() == ["postgres"]
        assert lab.revive() == ["postgres"]
        assert lab.dead() == []
        assert lab.endpoints == endpoints
        assert lab.pids != pids
        assert postgres(lab, "SELECT count(*), sum(n) FROM t") == [(1000, 500500)]
        assert lab.revive() == []
    assert nothing_is_left_in(folder)


def test_a_backend_that_outlives_its_killed_postmaster_does_not_hinder_the_revival(folder):
    busy = "DO 'BEGIN LOOP END LOOP; END'"  # never looks whether its postmaster lives
    client_code = f"import sys, psycopg; psycopg.connect(sys.argv[1]).execute({busy!r})"
    with EmbeddedLab(folder, ["postgres"]) as lab:
        client = subprocess.Popen(
            [sys.executable, "-c", client_code, lab.endpoints["postgres"]],
            stderr=subprocess.DEVNULL,
        )
        until(lambda: postgres(lab, "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DO%' AND state = 'active'"))
        os.kill(lab.pids["postgres"], signal.SIGKILL)
        until(lab.dead)
        assert lab.revive() == ["postgres"]
        assert postgres(lab, "SELECT 1") == [(1,)]
        assert client.wait(DEADLINE_SECONDS) != 0
    assert nothing_is_left_in(folder)


def test_a_killed_gateway_is_reported_and_revived_with_its_rows(folder):
    with EmbeddedLab(folder, ["clickhouse"]) as lab:
        clickhouse(lab, "CREATE TABLE t ENGINE = MergeTree ORDER BY n AS SELECT number AS n FROM numbers(1000)")
        os.kill(lab.pids["clickhouse"], signal.SIGKILL)
        until(lab.dead)
        assert lab.revive() == ["clickhouse"]
        assert clickhouse(lab, "SELECT count(), sum(n) FROM t") == "1000\t499500\n"
    assert nothing_is_left_in(folder)


def test_a_dead_service_that_two_threads_find_is_brought_back_by_one_of_them(folder):
    both = Barrier(2)
    with EmbeddedLab(folder, ["postgres"]) as lab, ThreadPoolExecutor(2) as pool:
        postgres(lab, "CREATE TABLE t AS SELECT 1 AS n")
        lab.end("postgres")

        def bring_back(_):
            both.wait()
            return lab.revive()

        assert sorted(pool.map(bring_back, range(2))) == [[], ["postgres"]]
        assert lab.dead() == []
        assert postgres(lab, "SELECT n FROM t") == [(1,)]
    assert nothing_is_left_in(folder)


def test_a_service_whose_keeper_was_killed_is_reported_and_revived(folder):
    with EmbeddedLab(folder, ["postgres"]) as lab:
        postgres(lab, "CREATE TABLE t AS SELECT 1 AS n")
        os.kill(lab.keepers["postgres"], signal.SIGKILL)
        until(lab.dead)
        assert lab.revive() == ["postgres"]
        assert postgres(lab, "SELECT n FROM t") == [(1,)]
    assert nothing_is_left_in(folder)


def test_a_service_that_does_not_come_up_again_is_an_error_with_its_last_log_lines(folder):
    with EmbeddedLab(folder, ["postgres"]) as lab:
        os.kill(lab.pids["postgres"], signal.SIGKILL)
        until(lab.dead)
        (lab.folder / "postgres" / "data" / "global" / "pg_control").unlink()
        with pytest.raises(ServiceError, match=r"(?s)found it ended with status 2.*could not .*pg_control"):
            lab.revive()
        assert lab.pids == {}
    assert nothing_is_left_in(folder)
