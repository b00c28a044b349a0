"""A wide matrix of sensors: one timestamp and 199 floats a row, some of them silent for a while."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl

_SENSORS = 199


def build(rows: int, seed: int) -> pl.DataFrame:
    """Return this many readings, one a second; every tenth sensor has gaps (nulls), one in fifty has NaN instead."""
    rng = np.random.default_rng(seed)
    first = np.datetime64(dt.datetime(2025, 3, 1), "us")
    moments = first + (np.arange(rows) * 1_000_000).astype("timedelta64[us]")
    columns = {"moment": pl.Series(moments)}
    for place in range(_SENSORS):
        values = np.cumsum(rng.normal(0, 0.1, rows)) + rng.uniform(-20, 80)
        name = f"s{place:03d}"
        if place % 50 == 49:
            values[rng.random(rows) < 0.01] = np.nan
        series = pl.Series(name, values)
        if place % 10 == 0:
            silent = pl.Series(rng.random(rows) < 0.1)
            series = pl.select(pl.when(silent).then(None).otherwise(series).alias(name)).to_series()
        columns[name] = series
    return pl.DataFrame(columns)
