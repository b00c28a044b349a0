"""One run at a time on one machine, and a killed run holds nobody up."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness.model import LabError
from harness.run.lock import NAME, only_run
from harness.settings import load

HOLD = """
import pathlib, sys
from harness.run.lock import only_run
with only_run(pathlib.Path(sys.argv[1]), "first"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock as the run "first"."""
    command = (sys.executable, "-c", HOLD, str(tmp_path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_run_is_refused_with_the_id_of_the_first(holder, tmp_path):
    with pytest.raises(LabError, match=r"^run first is using this machine") as caught, only_run(tmp_path, "second"):
        pytest.fail("two runs at once")
    assert "\n" not in str(caught.value)


def test_being_refused_changes_nothing_for_the_holder(holder, tmp_path):
    for _ in range(2):
        with pytest.raises(LabError, match=r"^run first "), only_run(tmp_path, "second"):
            pytest.fail("two runs at once")


def test_a_run_in_the_same_process_is_refused_too(tmp_path):
    with only_run(tmp_path, "first"), pytest.raises(LabError, match=r"^run first "), only_run(tmp_path, "second"):
        pytest.fail("two runs at once")


def test_the_lock_of_a_killed_run_is_free(holder, tmp_path):
    holder.kill()
    holder.wait()
    with only_run(tmp_path, "second"):
        assert (tmp_path / NAME).read_text() == "second"


def test_the_lock_is_free_after_a_run_that_ended_well_or_badly(tmp_path):
    with only_run(tmp_path, "first"):
        pass
    with pytest.raises(RuntimeError), only_run(tmp_path, "second"):
        raise RuntimeError
    with only_run(tmp_path, "third"):
        assert (tmp_path / NAME).read_text() == "third"


def test_what_the_run_starts_does_not_inherit_the_lock(tmp_path):
    with only_run(tmp_path, "first"):
        child = subprocess.Popen((sys.executable, "-c", "import sys; sys.stdin.read()"), stdin=subprocess.PIPE)
    with child, only_run(tmp_path, "second"):
        assert child.stdin is not None
        child.stdin.close()


def test_labs_in_two_folders_do_not_wait_for_each_other(tmp_path):
    with only_run(tmp_path / "a", "first"), only_run(tmp_path / "b", "second"):
        assert (tmp_path / "b" / NAME).is_file()


def test_a_folder_that_cannot_be_written_is_one_line_that_names_the_setting(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(LabError, match="set LAB_LOCK_DIR to another folder"), only_run(folder, "first"):
            pytest.fail("locked nothing")


def test_every_checkout_has_the_same_lock_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_STATE_DIR", str(tmp_path / "another checkout"))
    monkeypatch.delenv("LAB_LOCK_DIR", raising=False)
    assert load().lock_folder == Path(tempfile.gettempdir())


def test_the_lock_of_another_user_holds_too_and_is_left_as_it_is(holder, tmp_path):
    (tmp_path / NAME).chmod(0o444)
    with pytest.raises(LabError, match=r"^run first "), only_run(tmp_path, "second"):
        pytest.fail("two runs at once")


def test_a_link_in_the_place_of_the_lock_is_refused(tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / NAME).symlink_to(tmp_path / "mine")
    with pytest.raises(LabError, match="cannot lock"), only_run(tmp_path, "first"):
        pytest.fail("somebody else's file was taken for the lock")
    assert (tmp_path / "mine").read_text() == "precious"
