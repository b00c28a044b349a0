"""Apache DataFusion, a query engine on Arrow: https://datafusion.apache.org/python/"""

from contextlib import contextmanager
from functools import reduce

from harness.registry import transport

# The filter of TPC-H query 6: about 1.9 % of the rows of lineitem at every scale.
PASSES = """
l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
"""


@contextmanager
def connect(folder):
    """Yield a session that would spill to the folder."""
    from datafusion import RuntimeEnvBuilder, SessionContext

    yield SessionContext(runtime=RuntimeEnvBuilder().with_disk_manager_specified(folder))


@transport("scan", path="read_parquet, UNION ALL", payload="Parquet", requires=["datafusion"])
def scan(connection, files):
    """Count with one dataframe over all files: read_parquet for each, put together by union, all settings as they come.

    Union keeps duplicates, as UNION ALL does. The planner turns the bounds into decimals of the columns' type. Row
    groups and pages whose statistics exclude a match are skipped; of the others the three columns are decoded in full
    before the filter (pushdown_filters is off by default).
    """
    from datafusion import DataFrame

    scans = [
        connection.read_parquet(file).select("l_shipdate", "l_discount", "l_quantity").filter(PASSES) for file in files
    ]
    return reduce(DataFrame.union, scans).count()
