"""Network namespaces: network_namespaces(7), setns(2), unshare(2). Only on Linux with CAP_SYS_ADMIN."""

import ctypes
import os
from ipaddress import IPv4Network

ADDRESSES = IPv4Network("198.18.0.0/15")  # of the lab's namespaces, four each: for network benchmarks (RFC 2544)
_CLONE_NEWNET = 0x40000000  # linux/sched.h


def enter(path: str) -> None:
    """Move this thread, and threads that it starts from now on, into the namespace of a file. Raises OSError.

    Sockets stay in the namespace where they were created, whichever thread uses them.
    """
    with open(path) as namespace:
        _require(_libc().setns(namespace.fileno(), _CLONE_NEWNET), path)


def make() -> None:
    """Move this thread, and threads that it starts from now on, into a new namespace. Raises OSError."""
    _require(_libc().unshare(_CLONE_NEWNET), "a network namespace")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _require(status: int, what: str) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
