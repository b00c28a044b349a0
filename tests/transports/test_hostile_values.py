"""Values that ways of our own once changed without a word, through the ways and servers that did it."""

import pytest

from harness import registry
from harness.datasets.hostile.kinds import KINDS
from harness.fidelity import fidelity
from harness.fidelity.examination import Examination
from harness.lab import labs
from harness.lab.embedded import EmbeddedLab
from harness.lab.labs import Lab
from harness.model import Fate, Finding

COMES_THROUGH = (Fate.EXACT, Fate.CONVERTED)
# Way -> kind of values -> how it may fare.
ONCE_CHANGED = {
    "clickhouse.httpx_lossless.write_pandas_parquet_lossless": {"float32_nan": COMES_THROUGH},
    "clickhouse.urllib_lossless.write_pandas_parquet_lossless": {"float32_nan": COMES_THROUGH},
    "clickhouse.asynch_columns.write_pandas_executemany": {"float32_nan": COMES_THROUGH},
    "postgres.asyncpg_copy.write_pandas_executemany": {"float32_nan": COMES_THROUGH},
    "postgres.asyncpg_copy.read_polars_copy_csv_lossless": {"generated": COMES_THROUGH},
    "postgres.asyncpg_copy.read_pandas_copy_csv_lossless": {"generated": COMES_THROUGH},
    "postgres.asyncpg_binary.read_polars_copy_binary": {"generated": COMES_THROUGH},
    "postgres.duckdb_binary.read_polars_postgres_binary": {"generated": COMES_THROUGH},
    "postgres.psycopg_binary.write_polars_copy_binary": {
        "int64_beyond_int32": (Fate.REFUSED,),
        "uint32_beyond_int32": (Fate.REFUSED,),
        "uint64_beyond_int64": (Fate.REFUSED,),
        "float64_beyond_float32": (Fate.REFUSED,),
        "json": COMES_THROUGH,
        "jsonb": COMES_THROUGH,
    },
    "postgres.psycopg_binary.write_pandas_copy_binary": {
        "int64_beyond_int32": (Fate.REFUSED,),
        "uint32_beyond_int32": (Fate.REFUSED,),
        "uint64_beyond_int64": (Fate.REFUSED,),
        "float64_beyond_float32": (Fate.REFUSED,),
        "json": COMES_THROUGH,
        "jsonb": COMES_THROUGH,
    },
    **{
        f"clickhouse.{way}": {"float64_beyond_float32": (Fate.REFUSED,), "timestamp_into_int64": (Fate.REFUSED,)}
        for way in ("formats_native.write_polars_native", "formats_rowbinary.write_polars_rowbinary")
    },
    "postgres.tuned_write.write_polars_tuned": {"float64_beyond_float32": (Fate.REFUSED,)},
    "postgres.tuned_write.write_pandas_tuned": {
        "float64_beyond_float32": (Fate.REFUSED,),
        "timestamp_into_int64": (Fate.REFUSED,),
    },
}


def found_by(way: str, kinds: list[str], embedded_lab: EmbeddedLab) -> dict[str, Finding]:
    lab = Lab("embedded", embedded_lab.folder, embedded_lab.endpoints, None, list, list, dict)
    chosen = [KINDS[name] for name in kinds]
    exam = Examination(lab, labs.check(lab), "no S3 server in this test", "", [registry.one(way)], kinds=chosen)
    return {finding.kind: finding for finding in fidelity.examine(exam)}


@pytest.mark.long
@pytest.mark.parametrize("way", ONCE_CHANGED)
def test_what_was_changed_without_a_word_comes_through_or_is_refused(way: str, embedded_lab: EmbeddedLab) -> None:
    found = found_by(way, list(ONCE_CHANGED[way]), embedded_lab)
    assert list(found) == list(ONCE_CHANGED[way])
    wrong = [finding for finding in found.values() if finding.fate not in ONCE_CHANGED[way][finding.kind]]
    assert {finding.kind: (finding.fate, finding.detail) for finding in wrong} == {}


def test_what_the_gateway_cannot_take_is_unavailable_here_and_costs_one_pair_only(embedded_lab: EmbeddedLab) -> None:
    """ClickHouse's own native handler takes JSON in blocks: no way is to blame that the gateway does not."""
    found = found_by("clickhouse.asynch_columns.write_polars_columnar_lz4", ["json", "generated"], embedded_lab)
    assert {name: finding.fate for name, finding in found.items()} == {
        "json": Fate.UNAVAILABLE,
        "generated": Fate.EXACT,
    }
    assert all(finding.as_wanted for finding in found.values())
