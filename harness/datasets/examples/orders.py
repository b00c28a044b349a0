"""Orders: decimals for money, timestamps with a zone, dates, categories, flags, and notes that people typed."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl

_STATES = ["open", "paid", "shipped", "returned"]
_NOTES = ["", "call before delivery", "gift: 'with love'", "2nd floor, left", "naïve café", 'size "M"\nnot L']


def build(rows: int, seed: int) -> pl.DataFrame:
    """Return this many orders of a year, numbered, placed in Berlin."""
    rng = np.random.default_rng(seed)
    cents = rng.gamma(1.5, 4_000.0, rows).astype(np.int64) + 99
    seconds = np.sort(rng.integers(0, 366 * 86_400, rows))
    placed = np.datetime64(dt.datetime(2024, 1, 1), "us") + (seconds * 1_000_000).astype("timedelta64[us]")
    days = rng.integers(1, 15, rows)
    return pl.DataFrame(
        {
            "order_id": np.arange(1, rows + 1, dtype=np.int64) + 10_000_000,
            "customer_id": rng.integers(1, max(rows // 4, 2), rows, dtype=np.int64),
            "placed": pl.Series(placed).dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin"),
            "due": pl.Series(placed).cast(pl.Date) + pl.Series(days * 86_400_000_000).cast(pl.Duration("us")),
            "state": pl.Series(rng.choice(_STATES, rows).tolist(), dtype=pl.Categorical),
            "net": pl.Series(cents).cast(pl.Decimal(38, 0)) / 100,
            "tax": pl.Series((cents * 19 + 50) // 100).cast(pl.Decimal(38, 0)) / 100,
            "items": rng.integers(1, 9, rows).astype(np.int16),
            "paid": rng.random(rows) < 0.8,
            "note": pl.Series([None if value == 6 else _NOTES[value] for value in rng.integers(0, 7, rows)]),
        }
    ).with_columns(pl.col("net", "tax").cast(pl.Decimal(12, 2)), pl.col("due").cast(pl.Date))
