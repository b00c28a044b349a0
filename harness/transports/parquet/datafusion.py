"""Apache DataFusion, a query engine on Arrow: https://datafusion.apache.org/python/"""

from contextlib import contextmanager
from functools import reduce

from harness.registry import transport

# TPC-H query 6's filter: about 1.9 % of lineitem's rows at every scale.
PASSES = """
l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
"""


@contextmanager
def connect(folder):
    """Yield a session that spills to the folder."""
    from datafusion import RuntimeEnvBuilder, SessionContext

    yield SessionContext(runtime=RuntimeEnvBuilder().with_disk_manager_specified(folder))


@transport("read_parquet, UNION ALL", "Parquet")
def scan(connection, files):
    """Count with one dataframe over all files: read_parquet for each, combined by union, with default settings.

    Union keeps duplicates, like UNION ALL. The planner turns the bounds into decimals of the columns' type. DataFusion
    skips row groups and pages whose statistics exclude a match. Of the others it decodes the three columns in full
    before it filters (pushdown_filters is off by default).
    """
    from datafusion import DataFrame

    scans = [
        connection.read_parquet(file).select("l_shipdate", "l_discount", "l_quantity").filter(PASSES) for file in files
    ]
    return reduce(DataFrame.union, scans).count()
