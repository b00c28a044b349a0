"""What the runs of one case come to: one line of summary.csv."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from harness.model import label
from harness.report.intervals import Estimate, Interval


def _column(empty: Any, meaning: str) -> Any:
    more = {"default_factory": dict} if empty is dict else {"default": empty}
    return field(metadata={"meaning": meaning}, **more)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the runs of one case come to; figures are None without an ok run."""

    experiment: str = _column("", "experiment of the suite")
    parameters: dict[str, str] = _column(dict, "parameters of the case: name=value; name=value")
    transport: str = _column("", "id of the transport")
    system: str = _column("", "database, format of files, or protocol of the stores")
    operation: str = _column("", "write, read, scan, create, query, load, unload, transform or job")
    client: str = _column("", "client library, engine or store")
    path: str = _column("", "transport path")
    payload: str = _column("", "shape of what crosses the wire")
    frame: str = _column("", "what the data are in memory")
    style: str = _column("", "sync or async client")
    engine: str = _column("", "engine whose workers do the work; empty where one process does it alone")
    origin: str = _column("", "published, beyond, limit or control")
    published_row: str = _column("", "description of the published row")
    rows: int | None = _column(None, "rows of the data")
    bytes: int | None = _column(None, "bytes of the data on disk, empty where they are not in files of the lab")
    status: str = _column("", "ok when every run is; otherwise each status with its count")
    error: str = _column("", "reason of the runs that are not ok; different ones are joined by |")
    fidelity: str = _column("", "how values came back; where runs differ all are given, joined by |")
    lossy: dict[str, str] = _column(
        dict,
        "kinds of values the transport is declared not to bring through: kind=fate; kind=fate",
    )
    n: int = _column(0, "number of ok runs: the sample size of all figures here")
    rank: int | None = _column(
        None,
        "1 + the number of transports of the same experiment, parameters, system and operation that are shown to be "
        "faster, corrected for how many these are; bounds of writes and reads and controls have none",
    )
    tie: str = _column(
        "",
        "= others have the same rank; ? a place by the median alone, where the run says nothing of its scatter; "
        "empty: a rank of its own",
    )
    share_of_limit: float | None = _column(
        None,
        "median_seconds of the fastest bound (origin limit) of the same experiment, parameters, system and "
        "operation / median_seconds: 1 is as fast as that bound; of a load the bounds of writes of the same "
        "experiment, system and rows, of an unload those of reads; empty where no bound was run",
    )
    mean_seconds: float | None = _column(None, "arithmetic mean of seconds")
    std_seconds: float | None = _column(
        None,
        "population standard deviation of seconds, as the published stores benchmark computes it",
    )
    median_seconds: float | None = _column(None, "median of seconds")
    median_low_seconds: float | None = _column(
        None,
        "lower end of its 95 % interval (moderated t on the logarithms of seconds, widened to hold the median); empty "
        "where the run says nothing of its scatter",
    )
    median_high_seconds: float | None = _column(None, "upper end")
    log_mean: float | None = _column(None, "mean of the natural logarithms of seconds")
    log_error: float | None = _column(None, "standard error of log_mean, moderated by the other cases of the run")
    log_freedom: float | None = _column(None, "degrees of freedom of log_error")
    min_seconds: float | None = _column(None, "smallest")
    max_seconds: float | None = _column(None, "largest")
    mean_rows_per_s: float | None = _column(
        None,
        "arithmetic mean of the rates of the runs, as the published matrix benchmark computes it",
    )
    median_rows_per_s: float | None = _column(None, "median of the rates")
    min_rows_per_s: float | None = _column(None, "smallest")
    max_rows_per_s: float | None = _column(None, "largest")
    median_connect_seconds: float | None = _column(None, "median of connect_seconds")
    median_cpu_seconds: float | None = _column(None, "median of cpu_seconds")
    peak_rss_bytes: int | None = _column(None, "largest peak_rss_bytes of all runs")
    peak_anon_bytes: int | None = _column(None, "largest peak_anon_bytes of all runs")
    peak_file_bytes: int | None = _column(None, "largest peak_file_bytes of all runs")
    mb_per_s: float | None = _column(
        None,
        "bytes / 1e6 / median_seconds: from the data on disk to the end of the call, whatever is done in it",
    )
    details: dict[str, float] = _column(
        dict,
        "medians of the further facts of a run of its suite: name=value; name=value",
    )
    published_mean_seconds: float | None = _column(None, "the author's figure")
    published_mean_rows_per_s: float | None = _column(None, "the author's figure")
    ratio_to_published: float | None = _column(
        None,
        "mean_rows_per_s / published_mean_rows_per_s, where the author gives no rate published_mean_seconds / "
        "mean_seconds: above 1 is faster than the author's machine",
    )

    @cached_property
    def label(self) -> str:
        """The parameters as one text."""
        return label(self.parameters)

    @property
    def table(self) -> tuple[str, str, str]:
        """What tells its table from others: experiment, system and operation."""
        return self.experiment, self.system, self.operation

    @property
    def workers(self) -> str:
        """How many workers of an engine did the work, as a text; empty where one process did it alone."""
        return self.parameters.get("workers", "") if self.engine else ""

    @property
    def workers_peak_rss_bytes(self) -> float | None:
        """The peak of the processes that an engine started; None where there were none, or it is not known."""
        return self.details.get("workers_peak_rss_bytes")

    @property
    def peak_of_all_bytes(self) -> float | None:
        """The peak of the process that was measured, with that of the processes an engine started for it."""
        return None if self.peak_rss_bytes is None else self.peak_rss_bytes + (self.workers_peak_rss_bytes or 0)

    @property
    def interval(self) -> Interval | None:
        """The interval of the median; None of too few runs."""
        if self.median_low_seconds is None or self.median_high_seconds is None:
            return None
        return self.median_low_seconds, self.median_high_seconds

    @property
    def estimate(self) -> Estimate | None:
        """What its runs say of its time; None where nothing is known of their scatter."""
        if self.log_mean is None or self.log_error is None or self.log_freedom is None:
            return None
        return Estimate(self.log_mean, self.log_error, self.log_freedom)

    @property
    def took(self) -> float:
        """Median seconds of a case with ok runs."""
        assert self.median_seconds is not None
        return self.median_seconds


COLUMNS = {one.name: str(one.metadata["meaning"]) for one in fields(Summary)}
