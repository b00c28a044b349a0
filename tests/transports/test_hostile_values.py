"""Values that our transports once changed silently, through the transports and servers that did it."""

from pathlib import Path

import pytest

from harness import registry
from harness.datasets.hostile.common_kinds import KINDS
from harness.fidelity import trials, witness
from harness.fidelity.examination import Examination, pairs
from harness.lab import labs
from harness.lab.labs import Lab
from harness.lab.object_stores import object_store
from harness.model import OR, Fate
from tests.every import every
from tests.object_store import settings_below

COMES_THROUGH = (Fate.EXACT, Fate.CONVERTED)
# Transport -> kind of values -> its possible fates.
ONCE_CHANGED = {
    "clickhouse.httpx.write_pandas_parquet_lossless": {"float32_nan": COMES_THROUGH},
    "clickhouse.urllib.write_pandas_parquet_lossless": {"float32_nan": COMES_THROUGH},
    "clickhouse.asynch.write_pandas_executemany": {"float32_nan": COMES_THROUGH},
    "postgres.asyncpg.write_pandas_executemany": {"float32_nan": COMES_THROUGH},
    "postgres.asyncpg.read_polars_copy_csv_lossless": {"generated": COMES_THROUGH},
    "postgres.asyncpg.read_pandas_copy_csv_lossless": {"generated": COMES_THROUGH},
    "postgres.asyncpg.read_polars_copy_binary": {"generated": COMES_THROUGH},
    "postgres.duckdb.read_polars_postgres_binary": {"generated": COMES_THROUGH},
    "postgres.psycopg.write_polars_copy_binary": {
        "int64_beyond_int32": (Fate.REFUSED,),
        "uint32_beyond_int32": (Fate.REFUSED,),
        "uint64_beyond_int64": (Fate.REFUSED,),
        "float64_beyond_float32": (Fate.REFUSED,),
        "json": COMES_THROUGH,
        "jsonb": COMES_THROUGH,
    },
    "postgres.psycopg.write_pandas_copy_binary": {
        "int64_beyond_int32": (Fate.REFUSED,),
        "uint32_beyond_int32": (Fate.REFUSED,),
        "uint64_beyond_int64": (Fate.REFUSED,),
        "float64_beyond_float32": (Fate.REFUSED,),
        "json": COMES_THROUGH,
        "jsonb": COMES_THROUGH,
    },
    **{
        f"clickhouse.httpx.{way}": {"float64_beyond_float32": (Fate.REFUSED,), "timestamp_into_int64": (Fate.REFUSED,)}
        for way in ("write_polars_native", "write_polars_row_binary")
    },
    "postgres.psycopg.write_polars_tuned": {"float64_beyond_float32": (Fate.REFUSED,)},
    "postgres.psycopg.write_pandas_tuned": {
        "float64_beyond_float32": (Fate.REFUSED,),
        "timestamp_into_int64": (Fate.REFUSED, *COMES_THROUGH),  # the server would do either
    },
}


@every(ONCE_CHANGED, name=str)
def test_what_was_changed_without_a_word_is_declared_to_come_through_or_to_be_refused(way: str) -> None:
    """tests/fidelity checks pair by pair that the declarations are true."""
    entry = registry.one(way)
    for name, may in ONCE_CHANGED[way].items():
        assert KINDS[name] in pairs(entry)
        wanted = witness.wanted(entry, KINDS[name])
        assert set(wanted.split(OR) if wanted else COMES_THROUGH) <= set(may), name


@pytest.mark.long
def test_transports_through_s3_are_as_declared_in_another_time_zone(lab_of_tests: Lab, tmp_path: Path) -> None:
    chosen = [entry for entry in registry.select("clickhouse.*") if "s3" in entry.needs]
    kinds = [KINDS[name] for name in ("timestamps_elsewhere", "timestamps_tz_elsewhere")]
    with object_store(settings_below(tmp_path), [entry.id for entry in chosen], "test", print) as (objects, bucket):
        if isinstance(objects, str):
            pytest.skip(objects)
        exam = Examination(lab_of_tests, labs.check(lab_of_tests), objects, bucket, chosen, kinds=kinds)
        found = list(trials.examine(exam))
    assert len(found) == 2 * len(chosen) == 12
    assert all(finding.as_wanted and finding.fate is not Fate.UNAVAILABLE for finding in found), found
