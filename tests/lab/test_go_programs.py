"""Programs compiled from Go: once on a machine, whoever asks for them at the same time."""

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from harness.lab import go_programs

GO = """#!/bin/sh
echo compiled >>{log}
touch "$GOBIN/minio"
chmod +x "$GOBIN/minio"
"""


def test_two_that_ask_at_once_get_one_program_that_was_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, asked, real = tmp_path / "log", [Event(), Event()], fcntl.flock
    (tmp_path / "go").write_text(GO.format(log=log))
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def flock(file: object, how: int) -> None:
        next(event for event in asked if not event.is_set()).set()
        assert all(event.wait(60) for event in asked), "the other one did not ask for the lock"
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: go_programs.program(go_programs.MINIO, tmp_path / "cache", print), range(2)))
    assert len(set(paths)) == 1
    assert log.read_text() == "compiled\n"
