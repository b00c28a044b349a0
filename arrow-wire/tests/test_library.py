"""The compiled library: it is the one these sources are of, and a check that fails ends nothing but its call."""

import ctypes
import os
import pickle
import threading
from pathlib import Path

import pytest
from arrow_wire import CheckFailed, Conflict, Error, WrongValue, clickhouse_library, cores, errors, library
from psycopg import errors as of_psycopg


def test_a_check_that_fails_is_an_exception_and_the_next_call_is_as_before() -> None:
    failed = []

    def fail() -> None:
        for _ in range(200):
            with pytest.raises(CheckFailed, match="index out of bounds"):
                library.library().arrow_wire_fail(b"abc", 3)
            failed.append(1)

    threads = [threading.Thread(target=fail) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failed) == 800


def test_a_library_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    library.library.cache_clear()
    monkeypatch.setattr(library, "VERSION", 999)
    with pytest.raises(ImportError, match=r"is of version .* instead of 999"):
        library.library()
    monkeypatch.undo()

    class Longer(ctypes.Structure):
        _fields_ = [("address", ctypes.c_void_p), ("size", ctypes.c_size_t), ("more", ctypes.c_size_t)]

    with pytest.raises(ImportError, match="Buffer has 16 bytes instead of 24"):
        library.require_size(library.library(), "Buffer", Longer)
    with pytest.raises(ImportError, match="Unknown has 0 bytes instead of 24"):
        library.require_size(library.library(), "Unknown", Longer)
    assert clickhouse_library.functions()


def test_encoders_are_known_by_their_names() -> None:
    assert library.number_of("clickhouse_encoder", "copy1") == 0
    with pytest.raises(LookupError, match="clickhouse_encoder nothing"):
        library.number_of("clickhouse_encoder", "nothing")


def test_errors_can_be_sent_to_another_process() -> None:
    wrong = pickle.loads(pickle.dumps(WrongValue("text", "column", 3)))
    assert (str(wrong), wrong.column, wrong.row) == ("text", "column", 3)
    unique = pickle.loads(pickle.dumps(errors.of_psycopg(of_psycopg.UniqueViolation("a key"))))
    assert isinstance(unique, Conflict)
    assert isinstance(unique, of_psycopg.UniqueViolation)
    assert isinstance(unique, Error)
    assert unique.sqlstate == "23505"


@pytest.mark.parametrize(("limit", "expected"), [("350000 100000", 4), ("50000 100000", 2), ("max 100000", 8), ("", 8)])
def test_a_container_with_a_limit_of_cores_opens_no_more_connections(
    limit: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr(cores, "_GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    assert cores.number_of_connections() == expected
