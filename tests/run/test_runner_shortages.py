"""Runs on a made-up rig that find no disk, no memory or no folder: done again, or stopped with what to do about it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import registry
from harness.model import Case, LabError, Run, Status
from harness.run import fault_attribution, runner
from tests.made_up import MadeUp
from tests.run.conftest import UP as TWO
from tests.run.conftest import Rig
from tests.run.rigs.orders import running

pytestmark = pytest.mark.process


def test_a_results_disk_without_room_for_what_a_run_hands_over_stops_the_suite_before_it(perform, tmp_path):
    with pytest.raises(LabError, match=r'GB of free disk in .*/run, found .*then "lab run --resume run" goes on'):
        perform(room=10**18)
    assert not (tmp_path / "run" / "runs.csv").exists()


def test_a_run_that_met_a_full_disk_is_to_be_done_again(perform):
    row, words = perform("without_space")
    assert row.status is Status.AGAIN
    assert "no space left during this run; OSError: [Errno 28] No space left on device: '/somewhere'" in row.error
    assert words[-2:] == ["revive", "settle"]


def test_a_disk_with_room_for_no_segment_of_a_log_is_full_whatever_the_server_says(perform, monkeypatch):
    """Postgres says of it only that its checkpoint failed, and frees some megabytes when its table is dropped."""
    monkeypatch.setattr(fault_attribution, "free_bytes", lambda place: 20_000_000)
    with pytest.raises(LabError, match=r"no space left on the disk of .*/run \(a disk .*checkpoint request failed"):
        perform(settle=RuntimeError("checkpoint request failed"))


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group whose processes may have 200 MB of memory together."""
    root = Path("/sys/fs/cgroup/memory" if Path("/sys/fs/cgroup/memory").is_dir() else "/sys/fs/cgroup")
    group, limit = root / f"lab-test-{os.getpid()}", "memory.limit_in_bytes" if root.name == "memory" else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text("200000000")
    except OSError as error:
        pytest.skip(f"this user may not make a control group with a limit of memory: {error}")
    yield group
    group.rmdir()


@pytest.mark.alone  # else whatever fails beside it would be taken for the machine's doing, too
def test_a_run_whose_worker_the_kernel_ended_for_memory_is_to_be_done_again(perform, small_group):
    row, _ = perform("greedy", folder=small_group)
    assert (row.status, row.error) == (
        Status.AGAIN,
        "the kernel ended a process for want of memory during this run; the worker was killed by SIGKILL",
    )


@pytest.mark.alone  # else whatever fails beside it would be taken for the machine's doing, too
def test_a_run_that_the_kernel_ends_for_memory_twice_needs_too_much(perform, small_group):
    key = ("made.up.greedy", "growing", "files=1; page_cache=warm", 2)
    row, _ = perform("greedy", excused={key}, folder=small_group)
    assert row.status is Status.KILLED
    assert row.error.startswith("the kernel ended a process for want of memory during this run, for the second time")


def test_a_results_folder_that_is_renamed_under_a_run_is_what_the_message_says(perform, tmp_path):
    folder = tmp_path / "run"

    class Renaming(list):
        def __len__(self) -> int:  # asked for when the values are compared
            folder.rename(tmp_path / "elsewhere")
            return 0

    with pytest.raises(LabError, match=r"run was removed or renamed while this run wrote to it; put it back, then "):
        perform(check=Renaming())
    assert not folder.exists()


CHANGES = {
    "removed": lambda path: path.unlink(),
    "replaced": lambda path: (path.rename(path.with_name("backup")), path.write_text("")),
    "changed": lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1])),
}


@pytest.mark.long
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("when", [1, 2])
def test_rows_that_somebody_removes_or_replaces_in_mid_run_stop_it_with_one_line(tmp_path, monkeypatch, how, when):
    """An editor writes a new file and gives it the old one's name: rows that were added meanwhile would be lost."""
    made = MadeUp(tmp_path, up=TWO)
    made.join(monkeypatch)
    folder, told = tmp_path / "run", []
    folder.mkdir()
    case = Case(registry.one("made.up.scan"), "growing", "lineitem", {"files": 1})
    session = running(Rig({"revive": [[]] * 9}), folder, 30.0)

    def on_row(row):
        told.append(row)
        if len(told) == when:
            CHANGES[how](folder / "runs.csv")

    with pytest.raises(
        LabError, match=rf'runs\.csv was {how} while this run wrote to it; put .*, then "lab run --resume'
    ):
        runner.perform(session, [Run(case, 1, 1), Run(case, 2, 2)], on_row)
    assert len(told) == when
