"""The usual spread of runs, towards which the race draws what few of them show, is near that of the reference run."""

import math
from collections import defaultdict
from statistics import fmean, variance

from scipy.optimize import brentq
from scipy.special import digamma, polygamma

from harness.recommend.intervals import FREEDOM, SPREAD
from harness.results import runs_csv
from harness.settings import ROOT

SHORTEST = 0.003  # seconds: below, the clock of the machine is what scatters


def test_spread_and_freedom_are_near_those_of_the_reference_run() -> None:
    cases: dict[object, list[float]] = defaultdict(list)
    for row in runs_csv.load(ROOT / "results/reference/matrix/runs.csv"):
        if row.ok and row.took > SHORTEST:
            cases[row.case].append(math.log(row.took))
    variances = [variance(logs) for logs in cases.values() if len(logs) == 3]
    # Smyth 2004, section 6.2, with d = 2 degrees of freedom of three runs.
    logs = [math.log(one) - digamma(1) for one in variances]
    excess = variance(logs) - polygamma(1, 1)
    freedom = 2 * brentq(lambda half: polygamma(1, half) - excess, 1e-3, 1e3)
    spread = math.sqrt(math.exp(fmean(logs) + digamma(freedom / 2) - math.log(freedom / 2)))
    assert len(variances) > 300
    assert SPREAD / 3 < spread < SPREAD * 2  # taken too large it costs passes, too small it errs
    assert FREEDOM / 2 < freedom < FREEDOM * 2
