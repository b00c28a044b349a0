"""Dask's workers, on this machine or on a cluster: https://distributed.dask.org/en/stable/"""

from contextlib import contextmanager

from harness.transports.workers import refuse_others

PATIENCE_SECONDS = 60  # for workers of a cluster to be there


@contextmanager
def client_of(workers, modules):
    """Yield a client of Dask's scheduler whose workers have the versions of this process and are ready to work.

    `workers` has the address of a scheduler, or starts so many worker processes of one thread here, with scratch files
    in its folder; Dask starts one again that was killed. What this process has imported of `modules` they import, too.
    Raises RuntimeError where a worker has other versions, TimeoutError where there are fewer workers.
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
    """Yield the address of a scheduler (tcp:// or tls://, whose keys Dask's own configuration names), or a cluster."""
    if workers.address:
        yield workers.address
        return
    import logging

    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers.number,
        threads_per_worker=1,
        processes=True,  # each below a nanny, which starts it again
        dashboard_address="127.0.0.1:0",  # None would be 8787, which is somebody's already
        scheduler_kwargs={"dashboard": False},
        local_directory=workers.folder,
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster


def _versions_of_workers(client, packages):
    """Return the versions that each worker has; Dask asks them without sending code, which needs equal ones."""
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
    """Call a function for each part on the workers and return what it returned; if one raises, begin no other.

    `pure=False`: every call counts, as each changes something. What a worker did whose answer died with it is done
    again.
    """
    futures = client.map(function, *parts, pure=False)
    try:
        return client.gather(futures)
    except Exception:
        client.cancel(futures)
        raise
