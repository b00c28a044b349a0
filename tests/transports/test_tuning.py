"""Every job of the tuning suite does the work that its name says, with every value of its parameters."""

import re
import threading
from contextlib import contextmanager

import duckdb
import polars as pl
import pytest

from harness.datasets import benchmark_input
from harness.lab.packages import not_installed
from harness.registry import Unsupported, connect_of, one, select
from tests import object_store

ENTRIES = select("tuning.*")
ROWS, FILES = 20_000, 3
CLIENTS = ("boto3", "awscrt", "obstore")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return benchmark_input.ensure(tmp_path_factory.mktemp("datasets"), ROWS, FILES, 7, lambda text: None)


@pytest.fixture(scope="module")
def database(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("it's") / "a table.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE benchmark_input AS SELECT * FROM read_parquet($files)", {"files": table.pattern}
        )
    return str(path)


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    yield from object_store.opened(tmp_path_factory.mktemp("objects"))


@pytest.fixture
def bucket(objects):
    with objects.bucket("tuning-tests", print) as name:
        yield name


@contextmanager
def connected(name, folder, store=None):
    entry = one(f"tuning.{name}")
    if reason := not_installed(entry.requires):
        pytest.skip(reason)
    (folder / "scratch").mkdir()
    keys = store and {n: getattr(store, n) for n in ("endpoint", "region", "access_key", "secret_key")}
    with connect_of(entry)(str(folder / "scratch"), keys) as connection:
        yield lambda **arguments: entry.function(connection, **arguments)


@pytest.mark.long
def test_the_threads_are_those_asked_for(table, tmp_path):
    entry = one("tuning.duckdb.group_by")
    with connect_of(entry)(str(tmp_path), None) as connection:
        for threads in (1, 3, 2):
            entry.function(connection, table.pattern, threads)
            assert connection.execute("SELECT current_setting('threads')").fetchone() == (threads,)


@pytest.mark.process
def test_queries_side_by_side_share_the_threads_and_those_in_a_row_have_them_all(table, tmp_path, monkeypatch):
    from harness.transports.tuning import duckdb as module

    seen = []
    meeting = threading.Barrier(2, timeout=60)
    monkeypatch.setattr(module, "_alone", lambda source, threads: seen.append(threads) or meeting.wait())
    module.side_by_side(None, table.pattern, 2, 8)  # both must be under way at once to meet
    module.side_by_side(None, table.pattern, 2, 1)
    monkeypatch.setattr(module, "_alone", lambda source, threads: seen.append(threads))
    module.in_a_row(None, table.pattern, 2, 8)
    assert seen == [4, 4, 1, 1, 8, 8]


@pytest.mark.parametrize("name", ["create_table", "create_table_with_wal"])
def test_a_table_is_created_on_the_disk_and_its_two_steps_are_timed(name, table, tmp_path):
    path = tmp_path / "it's made.duckdb"
    with connected(f"duckdb.{name}", tmp_path) as call:
        found = call(source=table.pattern, database=str(path))
    assert found["answer"] == ROWS
    assert found["details"].keys() == {"ctas_seconds", "checkpoint_seconds"}
    assert min(found["details"].values()) > 0
    assert [file.name for file in tmp_path.glob("*.duckdb*")] == [path.name]
    with duckdb.connect(str(path), read_only=True) as connection:
        stored = connection.sql("SELECT * FROM benchmark_input").pl()
    assert stored.sort(stored.columns).equals(pl.read_parquet(table.pattern).sort(stored.columns))


class Watched:
    """A connection that notes how many bytes lie on the disk before it checkpoints."""

    def __init__(self, connection, path):
        self.connection, self.path, self.before = connection, path, None

    def execute(self, query, *more):
        if query.startswith("CHECKPOINT"):
            self.before = sum(file.stat().st_size for file in self.path.parent.glob(f"{self.path.name}*"))
        return self.connection.execute(query, *more)


@pytest.mark.process
def test_without_a_log_less_than_a_row_group_is_on_the_disk_only_after_the_checkpoint(table, tmp_path):
    before = {}
    for name in ("create_table", "create_table_with_wal"):
        with duckdb.connect() as connection:
            watched = Watched(connection, tmp_path / f"{name}.duckdb")
            one(f"tuning.duckdb.{name}").function(watched, table.pattern, str(watched.path))
            before[name] = watched.before
    assert before["create_table"] < 50_000 < before["create_table_with_wal"]


def test_a_sequential_write_has_every_byte(tmp_path):
    path = tmp_path / "written"
    for size in (1, 8 << 20, (16 << 20) + 5):
        folder = tmp_path / str(size)
        folder.mkdir()
        with connected("posix.sequential_write", folder) as call:
            found = call(path=str(path), size=size)
        assert found["answer"] == path.stat().st_size == size
        assert found["details"]["bytes_per_s"] > 0
    content = path.read_bytes()
    assert content[: 8 << 20] == content[8 << 20 : 16 << 20]
    assert len(set(content[:100_000])) == 256


@pytest.mark.parametrize("threads", [1, 2])
def test_a_triad_is_right_everywhere_and_says_how_many_bytes_a_second_it_moved(threads, tmp_path):
    with connected("numexpr.triad", tmp_path) as call:
        found = call(elements=300_000, threads=threads)
    assert found["answer"] == [3.5]
    assert 1e8 < found["details"]["bytes_per_s"] < 1e13


def test_more_threads_than_numexpr_has_are_unsupported_with_what_to_do(tmp_path):
    with connected("numexpr.triad", tmp_path) as call, pytest.raises(Unsupported, match=r"NUMEXPR_MAX_THREADS=99999"):
        call(elements=10, threads=99_999)


def test_without_counters_the_share_of_the_bandwidth_is_unsupported_with_the_reason(table, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no perf, whatever this machine has
    with connected("perf.bandwidth_of_group_by", tmp_path) as call, pytest.raises(Unsupported, match="uncore_imc"):
        call(source=table.pattern, elements=10, threads=1)


@pytest.mark.long
@pytest.mark.parametrize("client", ["awscrt", "boto3"])
def test_what_moves_the_bytes_is_the_client_of_that_name(client, database, objects, bucket, tmp_path, monkeypatch):
    """No request of an upload with the CRT goes through botocore, and each of the classic client's does."""
    from botocore.httpsession import URLLib3Session

    sent, send = [], URLLib3Session.send
    monkeypatch.setattr(URLLib3Session, "send", lambda *arguments: sent.append(1) or send(*arguments))
    with connected(f"{client}.upload", tmp_path, objects.store) as call:
        call(source=database, folder=str(tmp_path), destination=f"s3://{bucket}/out", threads=1)
    assert bool(sent) == (client == "boto3")


@pytest.mark.long
def test_a_refused_upload_is_an_error(database, objects, tmp_path):
    for client in CLIENTS:
        own = tmp_path / client
        own.mkdir()
        with (
            connected(f"{client}.upload", own, objects.store) as call,
            pytest.raises(Exception, match=re.compile("bucket", re.I)),
        ):
            call(source=database, folder=str(own), destination="s3://no-such-bucket-here/out", threads=1)
