"""Frames of five common shapes from seeded builders, to try `lab recommend` on, and to test it.

They contain no real data: the shapes are published, the values are random.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable

import numpy as np
import polars as pl

from harness.model import LabError, unknown


def _trips(rows: int, seed: int) -> pl.DataFrame:
    """Return taxi-like trips of one month, ordered by start, with nulls where a meter sent nothing.

    Shaped like the trip records of New York's Taxi and Limousine Commission (yellow taxis, data dictionary of 2025).
    """
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


_PATHS = [
    "/",
    "/about",
    "/cart",
    "/search?q=caf%C3%A9&page=2",
    "/p/1001",
    "/p/1002?ref=mail",
    "/static/app.js",
    "/login",
]
_METHODS = ["GET", "POST", "HEAD", "PUT"]
_BROWSERS = [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    'curl/8.16.0 "health check"',
    "Googlebot/2.1 (+http://www.google.com/bot.html)",
]


def _web_log(rows: int, seed: int) -> pl.DataFrame:
    """Return requests of one day, in order, some twice; strings have quotes, commas and percent signs.

    Shaped like the combined log format of the Apache HTTP server (mod_log_config).
    """
    rng = np.random.default_rng(seed)
    day = np.datetime64(dt.datetime(2025, 6, 1), "us")
    moments = np.sort(rng.integers(0, 86_400_000, rows)) * 1_000
    parts = rng.integers(1, 255, (rows, 4)).astype(str)
    referred = rng.random(rows)
    return pl.DataFrame(
        {
            "moment": pl.Series(day + moments.astype("timedelta64[us]")).dt.replace_time_zone("UTC"),
            "client": np.char.add(
                np.char.add(np.char.add(parts[:, 0], "."), np.char.add(parts[:, 1], ".")),
                np.char.add(np.char.add(parts[:, 2], "."), parts[:, 3]),
            ).tolist(),
            "method": rng.choice(_METHODS, rows, p=[0.9, 0.07, 0.02, 0.01]).tolist(),
            "path": rng.choice(_PATHS, rows).tolist(),
            "status": rng.choice([200, 301, 304, 404, 500], rows, p=[0.85, 0.03, 0.06, 0.05, 0.01]).astype(np.int16),
            "bytes": rng.gamma(0.8, 20_000.0, rows).astype(np.int64),
            "referrer": [None if value < 0.5 else "https://example.org/?a=1,b=2" for value in referred],
            "browser": rng.choice(_BROWSERS, rows, p=[0.55, 0.35, 0.05, 0.05]).tolist(),
            "seconds": rng.gamma(0.7, 0.12, rows).astype(np.float32),
        }
    )


_SENSORS = 199


def _sensors(rows: int, seed: int) -> pl.DataFrame:
    """Return a wide matrix: readings of 199 sensors, one a second.

    Every tenth sensor has gaps (nulls), one in fifty has NaN instead.
    """
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


_STATES = ["open", "paid", "shipped", "returned"]
_ORDER_NOTES = ["", "call before delivery", "gift: 'with love'", "2nd floor, left", "naïve café", 'size "M"\nnot L']


def _orders(rows: int, seed: int) -> pl.DataFrame:
    """Return numbered orders of a year, placed in Berlin: decimals, timestamps with a zone, categories, typed notes."""
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
            "note": pl.Series([None if value == 6 else _ORDER_NOTES[value] for value in rng.integers(0, 7, rows)]),
        }
    ).with_columns(pl.col("net", "tax").cast(pl.Decimal(12, 2)), pl.col("due").cast(pl.Date))


_DOCUMENT_LABELS = ["new", "beta", "a,b", "größe", 'with "quotes"']


def _documents(rows: int, seed: int) -> pl.DataFrame:
    """Return sparse documents of JSON: four of five have no body, and the fifth has varying keys."""
    rng = np.random.default_rng(seed)
    kept, sizes = rng.random(rows), rng.integers(0, 4, rows)
    numbers = rng.integers(0, 2**62, (rows, 2))
    chosen = rng.integers(0, len(_DOCUMENT_LABELS), (rows, 3))
    return pl.DataFrame(
        {
            "id": [str(uuid.UUID(int=int(high) << 64 | int(low))) for high, low in numbers],
            "body": [_body(place, float(share)) if share < 0.2 else None for place, share in enumerate(kept)],
            "labels": [
                ", ".join(_DOCUMENT_LABELS[value] for value in row[:size])
                for row, size in zip(chosen, sizes, strict=True)
            ],
            "score": [None if share > 0.3 else share * 10 for share in kept],
            "revision": pl.Series([None if share > 0.6 else int(share * 100) for share in kept], dtype=pl.Int64),
        }
    )


def _body(place: int, share: float) -> str:
    document: dict[str, object] = {"n": place, "path": f"C:\\dir\\{place % 7}", "text": 'it\'s "so"'}
    if share < 0.1:
        document["tags"] = ["x", None, {"deep": [1, 2.5]}]
    if share < 0.05:
        document["more"] = {"line": "a\nb", "unicode": "\U0001f98a"}
    return json.dumps(document, ensure_ascii=False)


# Name -> the columns that are unique together (none if rows repeat), and the builder of rows from a seed.
EXAMPLES: dict[str, tuple[tuple[str, ...], Callable[[int, int], pl.DataFrame]]] = {
    "trips": ((), _trips),
    "web_log": ((), _web_log),
    "sensors": (("moment",), _sensors),
    "orders": (("order_id",), _orders),
    "documents": ((), _documents),
}


def example(name: str, rows: int, seed: int) -> pl.DataFrame:
    """Return this many rows of an example, the same for the same seed. Raises LabError."""
    if name not in EXAMPLES:
        raise unknown("example", name, EXAMPLES)
    if rows < 1:
        raise LabError(f"rows {rows}: give a whole number of at least 1")
    return EXAMPLES[name][1](rows, seed)
