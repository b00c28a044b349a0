"""pandas, the dataframe library: https://pandas.pydata.org/docs/reference/api/pandas.read_parquet.html"""

from contextlib import nullcontext
from datetime import date
from decimal import Decimal

from harness.registry import transport

# TPC-H query 6's filter: about 1.9 % of lineitem's rows at every scale. All bounds of decimal columns are decimals,
# because pyarrow refuses to compare a decimal(15, 2) with an integer.
PASSES = [
    ("l_shipdate", ">=", date(1994, 1, 1)),
    ("l_shipdate", "<", date(1995, 1, 1)),
    ("l_discount", ">=", Decimal("0.05")),
    ("l_discount", "<=", Decimal("0.07")),
    ("l_quantity", "<", Decimal("24")),
]


connect = nullcontext  # the folder, which is not used: pandas has no connection and does not spill


@transport("read_parquet, concat", "Parquet", frame="pandas", requires=["pyarrow.dataset"])
def scan(connection, files):
    """Count the rows of frames read with columns= and filters=, one file after the other.

    pyarrow reads and filters. Only matching rows become pandas frames, with dates and decimals as Python objects.
    """
    import pandas as pd

    columns = ["l_shipdate", "l_discount", "l_quantity"]
    frames = [pd.read_parquet(file, columns=columns, filters=PASSES) for file in files]
    return len(pd.concat(frames))
