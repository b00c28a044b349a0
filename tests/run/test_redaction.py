"""No word of a client or server about a user's own data gets into results: it may have a value in it."""

import pytest

from harness.model import Status
from harness.run.redaction import of_types, without_values

COLUMNS = ["name", "amount paid"]
KEPT_BACK = "(its words may have values in them, and are not kept)"


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        (Status.ERROR, "DataError: invalid input 'Smith' for name", f'DataError, about column "name" {KEPT_BACK}'),
        (Status.ERROR, "DataError: invalid input 'Smith'", f"DataError {KEPT_BACK}"),
        (Status.ERROR, "after the run: psycopg.Error: Smith", f"psycopg.Error {KEPT_BACK}"),
        (Status.ERROR, "Smith owes 12", f"an error {KEPT_BACK}"),
        (Status.ERROR, "ValueError: 12 of names", f"ValueError {KEPT_BACK}"),
        (Status.MISMATCH, "amount paid: 3 of 100 values differ", "amount paid: 3 of 100 values differ"),
        (
            Status.MISMATCH,
            "name: String does not convert to int64: conversion from `str` failed for value 'Smith'",
            "name: String does not convert to int64",
        ),
        (Status.MISMATCH, "expected 3 rows, found 2", "expected 3 rows, found 2"),
        (Status.MISMATCH, "Smith differs", f"an error {KEPT_BACK}"),
        *(
            (Status.ERROR, error, f"{error.partition(':')[0]} {KEPT_BACK}")
            for error in (
                'DataError: invalid input syntax for type integer: "Smith"',
                'DataError: byte sequence 0xc5 0x81 in encoding "UTF8" has no equivalent in encoding "LATIN1"',
                "DatabaseError: Cannot parse string 'Smith' as Int32",
            )
        ),
        (Status.TIMEOUT, "ended after the time limit of 10 s", "ended after the time limit of 10 s"),
        (
            Status.ERROR,
            "QueryCanceled: canceling statement due to statement timeout CONTEXT:  COPY own, line 1: Smith",
            "QueryCanceled: canceling statement due to statement timeout",
        ),
        (
            Status.ERROR,
            "a.ProgramLimitExceeded: row is too big: size 16224, maximum size 8160 CONTEXT: COPY own, line 4, Smith",
            "a.ProgramLimitExceeded: row is too big: size 16224, maximum size 8160",
        ),
        (
            Status.ERROR,
            'NotNullViolation: null value in column "id" of relation "own" violates not-null constraint DETAIL: Smith',
            'NotNullViolation: null value in column "id" of relation "own" violates not-null constraint',
        ),
        (
            Status.ERROR,
            "DatabaseError: Code: 190. DB::Exception: Elements 'a.x' and 'a.y' of Nested data structure 'a' (Array "
            "columns) have different array sizes (3 and 0). Smith",
            "DatabaseError: Elements 'a.x' and 'a.y' of Nested data structure 'a' (Array columns) have different array "
            "sizes",
        ),
        (
            Status.ERROR,
            "ServerException: Code: 159. DB::Exception: Timeout exceeded: elapsed 5.1 seconds, maximum: 5: Smith",
            "ServerException: Timeout exceeded: elapsed 5.1 seconds, maximum: 5",
        ),
    ],
)
def test_only_the_labs_own_words_are_kept(status: Status, error: str, told: str) -> None:
    assert without_values(status, error, COLUMNS) == told
    assert "Smith" not in without_values(status, error, COLUMNS)


UNDECLARED = {"waited": "duration", "opens": "time"}


@pytest.mark.parametrize(
    ("status", "error", "undeclared", "told"),
    [
        (Status.ERROR, "TypeError: no waited of Smith", UNDECLARED, 'duration (column "waited"): TypeError'),
        (Status.ERROR, "a.Error: Smith opens", UNDECLARED, 'time (column "opens"): a.Error'),
        (
            Status.ERROR,
            "a.Error: Smith",
            {**UNDECLARED, "slept": "duration"},
            'duration (column "waited" and 1 more) or time (column "opens"): a.Error',
        ),
        (
            Status.MISMATCH,
            "waited: String does not convert to duration: Smith",
            UNDECLARED,
            'duration (column "waited"): it came as String',
        ),
    ],
)
def test_a_client_that_fails_at_types_that_none_declares_is_unsupported_and_none_of_its_words_are_kept(
    status: Status, error: str, undeclared: dict[str, str], told: str
) -> None:
    assert of_types(status, error, undeclared) == (Status.UNSUPPORTED, told)


@pytest.mark.parametrize(
    ("status", "error", "undeclared"),
    [
        (Status.ERROR, "TypeError: Smith", {}),
        (Status.ERROR, "the worker ended with exit code 1 and no answer", UNDECLARED),
        (Status.ERROR, "OSError: No space left on device", UNDECLARED),
        (Status.KILLED, "the worker was killed by SIGSEGV", UNDECLARED),
        (Status.MISMATCH, "name: String does not convert to int64", UNDECLARED),
        (Status.MISMATCH, "waited: Float64 changes values when converted to duration", UNDECLARED),
        (Status.MISMATCH, "waited: 1 of 2 values differ", UNDECLARED),
        (
            Status.ERROR,
            "a.ProgramLimitExceeded: row is too big: size 16224, maximum size 8160",
            {"words": "array(text)"},
        ),
    ],
)
def test_what_is_not_about_such_types_stays_as_it_is(status: Status, error: str, undeclared: dict[str, str]) -> None:
    assert of_types(status, error, undeclared) == (status, error)
