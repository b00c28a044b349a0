"""A web log: timestamps, addresses, paths with queries, browser names; strings with quotes, commas, percent signs.

Shaped like the combined log format of the Apache HTTP server (mod_log_config).
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl

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


def build(rows: int, seed: int) -> pl.DataFrame:
    """Return this many requests of one day, in order; some appear twice."""
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
