"""One run at a time on one machine, and a killed run blocks no other."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness.model import LabError
from harness.run import lock
from harness.run.lock import NAME, only_run, require_free
from harness.settings import load
from tests.commands import one_line
from tests.disks import as_on_nfs

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
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.process
def test_a_second_run_is_refused_with_the_id_of_the_first_which_keeps_the_lock(holder, tmp_path):
    for _ in range(2):
        with one_line(r"^run first is using this machine"), only_run(tmp_path, "second"):
            pytest.fail("two runs at once")


@pytest.mark.process
def test_a_question_for_the_lock_is_refused_too_and_leaves_it_free_as_a_killed_run_does(holder, tmp_path):
    with pytest.raises(LabError, match=r"^run first is using this machine"):
        require_free(tmp_path)
    holder.kill()
    holder.wait()
    require_free(tmp_path)
    assert (tmp_path / NAME).read_text() == "first"
    with only_run(tmp_path, "second"):
        assert (tmp_path / NAME).read_text() == "second"


def test_the_lock_is_free_after_a_run_that_ended_well_or_badly(tmp_path):
    with only_run(tmp_path, "first"):
        pass
    with pytest.raises(RuntimeError), only_run(tmp_path, "second"):
        raise RuntimeError
    with only_run(tmp_path, "third"):
        assert (tmp_path / NAME).read_text() == "third"


@pytest.mark.process
def test_what_the_run_starts_does_not_inherit_the_lock(tmp_path):
    with only_run(tmp_path, "first"):
        child = subprocess.Popen((sys.executable, "-c", "import sys; sys.stdin.read()"), stdin=subprocess.PIPE)
    with child, only_run(tmp_path, "second"):
        child.stdin.close()


def test_labs_in_two_folders_do_not_wait_for_each_other(tmp_path):
    with only_run(tmp_path / "a", "first"), only_run(tmp_path / "b", "second"):
        assert (tmp_path / "b" / NAME).is_file()


def test_a_folder_that_cannot_be_written_is_one_line_that_names_the_setting(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(LabError, match="set LAB_LOCK_DIR to another folder"), only_run(folder, "first"):
            pytest.fail("locked nothing")


def test_every_checkout_has_the_same_lock_unless_set_otherwise(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_STATE_DIR", str(tmp_path / "another checkout"))
    monkeypatch.delenv("LAB_LOCK_DIR", raising=False)
    places = []
    for temporary in (tmp_path / "a", tmp_path / "b"):
        monkeypatch.setenv("TMPDIR", str(temporary))
        monkeypatch.setattr(tempfile, "tempdir", None)
        places.append(load().lock_folder)
    assert places == [Path("/tmp")] * 2


@pytest.mark.long
@pytest.mark.process
def test_the_lock_of_another_user_holds_too_and_is_left_as_it_is(holder, tmp_path):
    (tmp_path / NAME).chmod(0o444)
    with pytest.raises(LabError, match=r"^run first "), only_run(tmp_path, "second"):
        pytest.fail("two runs at once")


@pytest.mark.parametrize(
    ("make", "said"), [(Path.symlink_to, "cannot lock"), (Path.hardlink_to, "it is a file with a second name")]
)
def test_a_link_instead_of_the_lock_is_refused(tmp_path, make, said):
    (tmp_path / "mine").write_text("precious")
    make(tmp_path / NAME, tmp_path / "mine")
    with pytest.raises(LabError, match=said), only_run(tmp_path, "first"):
        pytest.fail("somebody else's file was taken for the lock")
    assert (tmp_path / "mine").read_text() == "precious"


def test_what_is_in_the_lock_of_another_user_is_shown_without_what_a_terminal_obeys(tmp_path):
    first = only_run(tmp_path, "\x1b]0;title\x07\x1b[31mred\x9b2J\u202e\nline")
    with first, pytest.raises(LabError) as caught, only_run(tmp_path, "second"):
        pytest.fail("two runs at once")
    assert str(caught.value).isprintable()
    assert r"run \x1b]0;title\x07\x1b[31mred\x9b2J\u202e\nline is using" in str(caught.value)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize("mode", [0o444, 0o666])
def test_a_pipe_in_the_place_of_the_lock_is_one_line_at_once(tmp_path, mode):
    os.mkfifo(tmp_path / NAME)
    (tmp_path / NAME).chmod(mode)
    command = (sys.executable, "-c", HOLD, str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert "it is a pipe of the user with uid" in done.stderr


def test_a_networks_folder_is_locked(tmp_path, monkeypatch):
    monkeypatch.setattr(lock.fcntl, "flock", as_on_nfs)
    for name in ("first", "second"):
        with only_run(tmp_path, name):
            assert (tmp_path / NAME).read_text() == name


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EBADF, r"which locks what you may write, and only uid \d+ may"),
        (errno.ENOLCK, "whose server locks nothing"),
    ],
)
def test_a_networks_folder_that_locks_nothing_is_one_line_with_the_cause(tmp_path, monkeypatch, number, why):
    def refusing(file, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(lock.fcntl, "flock", refusing)
    with pytest.raises(LabError, match=rf"network's file system, {why}; set LAB_LOCK_DIR"), only_run(tmp_path, "first"):
        pytest.fail("locked nothing")
