"""The calibration of the machine: every part is measured, and the best figures are remembered."""

import json

import pytest

from harness.machine.calibration import calibrate, slower


def test_each_part_has_a_rate_and_the_best_of_several_is_kept(tmp_path):
    now, best = calibrate(tmp_path, 0.01)
    assert set(now) == {"cpu", "memory", "disk", "loopback"}
    assert all(rate > 0 for rate in now.values())
    assert now == best
    (tmp_path / "calibration.json").write_text(json.dumps(dict.fromkeys(now, 1000000000000.0)))
    again, best = calibrate(tmp_path, 0.01)
    assert set(best.values()) == {1e12}
    assert slower(again, best)["cpu"] == pytest.approx(1e12 / again["cpu"])


def test_a_damaged_file_is_made_anew(tmp_path):
    (tmp_path / "calibration.json").write_text("{")
    now, best = calibrate(tmp_path / "new", 0.01)
    assert now == best
    assert calibrate(tmp_path, 0.01)[1].keys() == now.keys()
