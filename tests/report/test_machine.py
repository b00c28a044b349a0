"""The line about the machine of a run: its calibration, lost time, slow spells and their effect."""

from dataclasses import replace

from harness.report import machine
from harness.report.summary import summarise
from tests.report.cases import environment, row

STEADY = (1.0, 1.01, 1.02)
CALIBRATIONS = [
    {"now": {"cpu": 50.0, "disk": 9.0}, "best": {"cpu": 100.0, "disk": 9.0}},
    {"now": {"cpu": 80.0, "disk": 9.0}, "best": {"cpu": 100.0, "disk": 9.0}},
]


def passes(slow=(), factor=2.0, cases=10, **more):
    """Three passes over cases; the runs at these places take longer."""
    made = []
    for number, seconds in enumerate(STEADY, start=1):
        for case in range(cases):
            order = len(made) + 1
            took = seconds * (1 + case / 10) * (factor if order in slow else 1)
            made.append(row(f"a.b{case}.write", seconds=took, order=order, **{"pass": number}, **more))
    return made


def said(rows, **facts):
    return machine.said(environment(**facts), rows, summarise(rows, ()))


def test_a_quiet_run_says_so_in_one_line():
    assert said(passes(steal_seconds=0.0), calibrations=CALIBRATIONS) == [
        "The machine: slower than at its best, at most, in two seconds before and after: cpu 100%, disk 0%; the "
        "host or a CPU limit took 0.0% of the calls; no slow spell."
    ]


def test_a_run_that_was_not_calibrated_on_a_system_that_counts_no_steal_says_that():
    (line,) = said(passes())
    assert line == "The machine: not calibrated; what the host took is not known; no slow spell."


def test_runs_one_after_the_other_that_take_long_are_a_slow_spell_and_scattered_ones_are_none():
    spell = said(passes(slow=range(11, 21)))
    assert "; 1 slow spells with " in spell[0]
    assert len(spell) == 2
    assert said(passes(slow=range(1, 31, 4)))[0].endswith("no slow spell.")


def test_a_run_of_the_lab_that_was_slower_than_those_it_is_kept_with_is_no_slow_spell():
    later = [replace(one, run_id="later", seconds=2 * one.seconds, order=one.order + 30) for one in passes()]
    assert said([*passes(), *later])[0].endswith("no slow spell.")


def test_the_ranks_that_a_slow_spell_could_change_are_named():
    rows = passes()
    for number, one in enumerate(STEADY, start=1):  # quick but for the pass that a spell falls on
        took = 0.9 * one * (20 if number == 2 else 1)
        lost = 5.0 if number == 2 else 0.0
        rows.append(row("a.quick.write", seconds=took, order=number * 10, steal_seconds=lost, **{"pass": number}))
    lines = said(rows)
    assert any(line.startswith("Without these runs the ranks of ") and "a.b0.write" in line for line in lines)


def test_without_an_ok_run_nothing_is_said():
    assert said([]) == []
