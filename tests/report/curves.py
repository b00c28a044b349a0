"""Made-up runs of transports at several numbers of rows."""

from tests.report.cases import row


def runs(transport, times, experiment="sizes", **more):
    """Ok runs of a transport with these seconds by rows; its id gives its direction and frame."""
    system, client, function = transport.split(".")
    operation, frame, *_ = function.split("_")
    about = {"system": system, "client": client, "operation": operation, "frame": frame, "experiment": experiment}
    about |= {"origin": "beyond", "dataset": "analytics_metrics"} | more
    extra = about.pop("extra", "")
    return [
        row(
            *(transport,),
            seconds=float(took),
            **about | {"parameters": f"rows={rows}{extra}", "rows": rows, "rows_per_s": rows / float(took)},
            **{"pass": number},
        )
        for rows, every in times.items()
        for number, took in enumerate(every, 1)
    ]


def line(fixed, marginal, sizes, scatter=(0.98, 1.0, 1.02)):
    """Seconds by rows of a transport with these costs of a call and of a row, one for each factor of `scatter`."""
    return {rows: [(fixed + marginal * rows) * factor for factor in scatter] for rows in sizes}
