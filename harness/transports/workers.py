"""Checks of workers by the driver of every engine before they get work."""


def versions(packages):
    """Return this process's versions of Python and of packages by name; `none` for a missing package."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


def refuse_others(packages, of_workers):
    """Raise RuntimeError if a worker has other versions than this driver: engines exchange code and data.

    `of_workers` has the result of `versions` on each worker.
    """
    ours = versions(packages)
    for found in of_workers:
        if other := [f"{name} {found.get(name)}" for name in ours if found.get(name) != ours[name]]:
            driver = ", ".join(f"{name} {ours[name]}" for name in ours if found.get(name) != ours[name])
            raise RuntimeError(f"a worker runs {', '.join(other)}, and the driver {driver}; install the same versions")
