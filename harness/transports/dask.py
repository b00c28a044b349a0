"""Dask's workers, on this machine or on a cluster: https://distributed.dask.org/en/stable/"""

from contextlib import contextmanager

from harness.transports.workers import refuse_others

PATIENCE_SECONDS = 60  # limit for a cluster's workers to arrive


@contextmanager
def client_of(workers, modules):
    """Yield a client of Dask's scheduler whose workers have this process's versions and are ready.

    `workers` has a scheduler's address, or the number of one-thread worker processes to start here with scratch files
    in its folder. Dask restarts a local worker that was killed. Workers import those of `modules` that this process has
    imported. Raises RuntimeError if a worker has other versions, and TimeoutError if too few workers arrive.
    """
    import sys

    from distributed import Client

    with _scheduler_of(workers) as scheduler, Client(scheduler) as client:
        client.wait_for_workers(workers.number, timeout=PATIENCE_SECONDS)
        packages = sorted({"cloudpickle", "dask", "distributed", *(name.partition(".")[0] for name in modules)})
        refuse_others(packages, _versions_of_workers(client, packages))
        client.run(_import_modules, [name for name in modules if name in sys.modules])
        yield client


@contextmanager
def _scheduler_of(workers):
    """Yield the address of a scheduler (tcp://, or tls:// with keys from Dask's configuration), or a cluster."""
    if workers.address:
        yield workers.address
        return
    import logging

    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers.number,
        threads_per_worker=1,
        processes=True,  # each under a nanny that restarts it
        dashboard_address="127.0.0.1:0",  # None means 8787, which is often taken
        scheduler_kwargs={"dashboard": False},
        local_directory=workers.folder,
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster


def _versions_of_workers(client, packages):
    """Return each worker's versions. Dask asks without sending code, which would need equal versions."""
    found = client.get_versions(packages=packages)["workers"].values()
    return [
        {name: of["packages"][name] or "none" for name in packages}
        | {"python": ".".join(of["packages"]["python"].split(".")[:3])}
        for of in found
    ]


def _import_modules(names):
    import importlib

    for name in names:
        importlib.import_module(name)


def done(client, function, *parts):
    """Call a function for each part on the workers and return the results; after a failure start no more parts.

    `pure=False` keeps Dask from merging equal calls, because each call changes something. If a worker dies before it
    returns a result, Dask repeats its call.
    """
    futures = client.map(function, *parts, pure=False)
    try:
        return client.gather(futures)
    except Exception:
        client.cancel(futures)
        raise
