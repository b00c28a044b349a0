"""Taxi-like trips: timestamps, small numbers, floats with two digits, nulls where a meter sent nothing.

Shaped like the trip records of New York's Taxi and Limousine Commission (yellow taxis, data dictionary of 2025).
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl


def build(rows: int, seed: int) -> pl.DataFrame:
    """Return this many trips of one month, ordered by start."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, 31 * 86_400, rows))
    seconds = np.maximum(60, rng.gamma(2.0, 420.0, rows)).astype(np.int64)
    miles = np.round(rng.gamma(1.6, 1.9, rows), 2)
    fare = np.round(3.0 + 2.5 * miles + seconds / 90, 2)
    tip = np.round(np.where(rng.random(rows) < 0.65, fare * rng.uniform(0.1, 0.3, rows), 0.0), 2)
    first = np.datetime64(dt.datetime(2025, 1, 1), "us")
    frame = pl.DataFrame(
        {
            "vendor_id": rng.choice([1, 2, 6, 7], rows, p=[0.2, 0.78, 0.01, 0.01]).astype(np.int32),
            "pickup": first + (start * 1_000_000).astype("timedelta64[us]"),
            "dropoff": first + ((start + seconds) * 1_000_000).astype("timedelta64[us]"),
            "passengers": rng.choice([1, 2, 3, 4, 5, 6], rows, p=[0.72, 0.15, 0.05, 0.04, 0.02, 0.02]),
            "miles": miles,
            "rate": rng.choice([1, 2, 3, 5, 99], rows, p=[0.93, 0.04, 0.01, 0.01, 0.01]),
            "stored": rng.choice(["N", "Y"], rows, p=[0.995, 0.005]),
            "pickup_zone": rng.integers(1, 266, rows, dtype=np.int32),
            "dropoff_zone": rng.integers(1, 266, rows, dtype=np.int32),
            "payment": rng.choice([1, 2, 3, 4], rows, p=[0.76, 0.2, 0.01, 0.03]),
            "fare": fare,
            "tip": tip,
            "tolls": np.where(rng.random(rows) < 0.08, 6.94, 0.0),
            "total": np.round(fare + tip + 4.25, 2),
            "airport_fee": np.where(rng.random(rows) < 0.1, 1.75, 0.0),
        }
    )
    silent = pl.Series(rng.random(rows) < 0.05)
    return frame.with_columns(
        pl.when(silent).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("passengers", "rate", "stored", "airport_fee")
    )
