"""What drivers of every engine ask of its workers before they give them work."""


def versions(packages):
    """Return the versions of Python and of packages, as whoever calls this has them; `none` where one is missing."""
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
    """Raise RuntimeError where a worker has other versions than this driver: engines send code and data between them.

    `of_workers` are what `versions` returned on each of them.
    """
    ours = versions(packages)
    for found in of_workers:
        if other := [f"{name} {found.get(name)}" for name in ours if found.get(name) != ours[name]]:
            expected = ", ".join(f"{name} {ours[name]}" for name in ours if found.get(name) != ours[name])
            raise RuntimeError(f"expected every worker to run {expected} as the driver does, found {', '.join(other)}")
