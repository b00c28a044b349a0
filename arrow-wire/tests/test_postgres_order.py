"""The order in which the tuned write into Postgres sends rows: close to that of the key, at a tenth of its cost."""

import numpy as np
import pytest
from arrow_wire.postgres_write import _slices

ROWS = 200_000
RANDOM = np.random.default_rng(7)
LEAST, MOST = -(2**63), 2**63 - 1
KEYS = {
    "uuids": RANDOM.integers(LEAST, MOST, ROWS),
    "a serial number, shuffled": RANDOM.permutation(ROWS),
    "in order": np.arange(ROWS) - 5,
    "days": RANDOM.integers(0, 365, ROWS),
    "one far away": np.append(RANDOM.permutation(ROWS - 1), MOST),
    "most in few places": (RANDOM.exponential(1, ROWS) ** 9 * 1e6).astype(np.int64),
    "one key": np.zeros(ROWS, np.int64),
    "both ends": np.array([MOST, LEAST] * 10),
    "one row": np.array([3]),
}


class Encoder:
    def __init__(self, keys):
        self._keys = keys

    def keys(self, _):
        return self._keys


@pytest.mark.long
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("number", [1, 2, 8])
def test_rows_are_close_to_the_place_of_their_key(keys, number):
    order, cuts = _slices(Encoder(keys), 0, len(keys), number)
    assert sorted(order) == list(range(len(keys)))
    place = np.searchsorted(np.sort(keys), keys[order])  # the first of those of equal keys
    assert np.abs(np.maximum.accumulate(place) - place).max() <= 100  # keys: no more than a page of an index has
    assert cuts[0] == 0
    assert cuts[-1] == len(keys)
    for cut in cuts[1:-1]:
        assert not {*keys[order[:cut]]} & {*keys[order[cut:]]}


def test_without_a_key_rows_stay_as_they_are():
    assert _slices(Encoder(None), None, 10, 2) == (None, [0, 5, 10])
