"""`integers`: the table of "Small Benchmark" in the documentation of ParquetDB (L. Lang, after C. Körber).

100 columns `col0` to `col99` of integers from 0 to 1,000,000, both included, without nulls. The published generator
(`generate_pylist_data` of parquetdb 1.0.1) draws them with `random.randint` and no seed, so its values are not known.
Ours have the same range and distribution: the bias of the modulo is below 1e-13. The published query,
`col1 > 100 and col97 < 1000`, selects about 0.1 % of the rows.
"""

import numpy as np

from harness.datasets import seeded
from harness.datasets.specification import Specification

MAXIMUM = 1_000_000
LOGICAL_TYPES = {f"col{number}": "int64" for number in range(100)}


def _made(ids: np.ndarray, words: seeded.Words) -> dict[str, np.ndarray]:
    return {name: (words() % (MAXIMUM + 1)).astype(np.int64) for name in LOGICAL_TYPES}


SPECIFICATION = Specification(
    name="integers",
    version=1,
    logical_types=LOGICAL_TYPES,
    # No column is a key, but three random columns together are. Two of a million rows are equal in them once in two
    # million datasets, and the default dataset is tested.
    row_key=("col0", "col1", "col2"),
    bytes_a_row=850,  # 8 bytes a value and a margin; measured 653 at a million rows
    build=lambda rows, seed: seeded.batches(rows, seed, _made),
)
