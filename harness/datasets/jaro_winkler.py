"""Jaro-Winkler similarity of every name of one list to every name of another, with numpy: a second opinion.

After W. E. Winkler, "String Comparator Metrics and Enhanced Decision Rules in the Fellegi-Sunter Model of Record
Linkage" (1990): Jaro's similarity. If it is above 0.7, each of at most four equal first letters adds a tenth of the
difference to 1.
"""

from collections.abc import Sequence

import numpy as np

_BLOCK = 50  # names of the first list at a time: keeps the arrays small
_PREFIX, _WEIGHT, _FROM = 4, 0.1, 0.7


def jaro_winkler(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """Return the similarities, shape (len(left), len(right)), from 0 to 1. All names are ASCII and not empty."""
    blocks = [left[start : start + _BLOCK] for start in range(0, len(left), _BLOCK)]
    return np.concatenate([_block(block, right) for block in blocks])


def _letters(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the letters, shape (names, longest) padded with 0, and the lengths."""
    lengths = np.array([len(name) for name in names])
    padded = b"".join(name.encode("ascii").ljust(lengths.max(), b"\0") for name in names)
    return np.frombuffer(padded, np.uint8).reshape(len(names), lengths.max()), lengths


def _block(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    (one, one_lengths), (other, other_lengths) = _letters(left), _letters(right)
    lengths = np.broadcast_arrays(one_lengths[:, None], other_lengths[None, :])
    in_one, in_other = _matches(one, other, np.maximum(np.maximum(*lengths) // 2 - 1, 0))
    matches = in_one.sum(axis=2)
    moved = _in_order(one[:, None, :], in_one) != _in_order(other[None, :, :], in_other)
    swaps = moved.sum(axis=2) // 2
    some = np.maximum(matches, 1)  # avoids division by zero; without a match the result is still 0
    jaro = (matches / lengths[0] + matches / lengths[1] + (matches - swaps) / some) / 3 * (matches > 0)
    width = min(_PREFIX, one.shape[1], other.shape[1])
    equal = (one[:, None, :width] == other[None, :, :width]) & (one[:, None, :width] > 0)
    prefix = np.logical_and.accumulate(equal, axis=2).sum(axis=2)
    return np.where(jaro > _FROM, jaro + prefix * _WEIGHT * (1 - jaro), jaro)


def _matches(one: np.ndarray, other: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which letters of each pair match: each takes the first free equal letter within reach."""
    shape = len(one), len(other)
    in_one, in_other = np.zeros((*shape, one.shape[1]), bool), np.zeros((*shape, other.shape[1]), bool)
    for i in range(one.shape[1]):
        letter = one[:, i, None]
        for j in range(other.shape[1]):
            found = (letter == other[None, :, j]) & (letter > 0) & (abs(i - j) <= reach)
            found &= ~in_one[:, :, i] & ~in_other[:, :, j]
            in_one[:, :, i] |= found
            in_other[:, :, j] |= found
    return in_one, in_other


def _in_order(letters: np.ndarray, matched: np.ndarray) -> np.ndarray:
    """Return the matched letters of each pair first, in order, then 0; as wide as the longest name."""
    order = np.argsort(~matched, axis=2, kind="stable")
    front = np.take_along_axis(np.where(matched, letters, 0), order, axis=2)
    return np.pad(front, ((0, 0), (0, 0), (0, 64 - front.shape[2])))
