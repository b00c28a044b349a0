"""A made-up run with all that a page must handle: long and endless names, markup, failures, every picture."""

from harness.model import Status
from harness.suites.suite import Picture, PublishedFigure
from tests.report.cases import row, scan

PICTURES = (
    Picture("times", "Time by size", "lines", y="seconds", x="bytes", where={"system": ["parquet"]}, inset=True),
    Picture("rates", "Rates", "bars", y="rows_per_s", where={"system": ["postgres"]}, published=True),
    Picture("memory", "Memory against time", "scatter", y="peak_rss_bytes", x="seconds", log=True),
    Picture("ends", "Endings", "grid", y="seconds", x="parameter:files", where={"system": ["parquet"]}),
)
LONG = "asyncpg COPY FROM STDIN (FORMAT binary) from Polars rows of a frame with a rather long description {}"
ENDLESS = "x" * 150 + "<script>console.error('run')</script>"
ROWS = [
    *(
        scan(f"engine{number}", files, seconds=files * number * part, peak_rss_bytes=files * number * 10**7)
        for number in (1, 2, 3, 10)
        for files in (1, 2, 4, 8, 16, 100)
        for part in (0.9, 1.0, 1.1)
    ),
    *(
        row(
            f"postgres.way{number}.write",
            seconds=number * part,
            published_row=LONG.format(number),
            peak_rss_bytes=number,
        )
        for number in (2, 1, 10)
        for part in (0.9, 1.0, 1.1)
    ),
    scan("engine1", 200, Status.KILLED, error=ENDLESS),
    row("postgres.gone.write", Status.UNAVAILABLE, error="this lab has no pg_parquet & says so"),
]
FIGURES = [PublishedFigure(LONG.format(1), mean_rows_per_s=900.0)]
