"""Entering a network namespace: network_namespaces(7), setns(2). Linux only, and with CAP_SYS_ADMIN alone."""

import ctypes
import os

_CLONE_NEWNET = 0x40000000  # linux/sched.h


def enter(path: str) -> None:
    """Move this thread, and those that it starts from now on, into the namespace of a file. Raises OSError.

    Sockets stay where they were made, whichever thread uses them.
    """
    with open(path) as namespace:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(namespace.fileno(), _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
