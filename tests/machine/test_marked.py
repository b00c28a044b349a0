"""Processes are found by a mark in their environment, also those that have left whoever started them."""

import os
import subprocess
import sys

import psutil
import pytest

from harness.machine import marked
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the environment of processes is read from /proc")
# A process that leaves its session and its parent, as daemons do, and says which it is.
LEAVING = """
import os, subprocess, sys
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
child = subprocess.Popen(sleep, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(child.pid, flush=True)
"""


@pytest.mark.process
def test_a_process_that_left_its_parent_is_found_and_ended():
    done = subprocess.run(
        [sys.executable, "-c", LEAVING],
        env={**os.environ, marked.VARIABLE: "of-a-test"},
        capture_output=True,
        text=True,
    )
    pid = int(done.stdout)
    assert marked.processes("of-a-test") == [pid]
    assert marked.processes("of-a-test-2") == []
    assert marked.end("of-a-test") == [pid]
    until(lambda: not psutil.pid_exists(pid))
    assert marked.processes("of-a-test") == []


def test_memory_that_two_processes_share_is_counted_once():
    usage = marked.Usage()
    usage.look([os.getpid()])
    alone = usage.peak_rss_bytes
    assert alone > 10_000_000
    usage.look([2**22 + 1])  # nobody
    assert (usage.peak_rss_bytes, usage.processes) == (alone, 1)
