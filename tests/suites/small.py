"""A small suite file in which everything is right, and what it says."""

from harness.model import Experiment

GOOD = """
name = "small"
title = "A title"
rig = "databases"
[published]
title = "An article"
author = "An author"
date = 2026-04-07
figures = "figures.csv"
conditions = "some"
[defaults]
select = "*"
dataset = "analytics_metrics"
passes = 3
time_limit_seconds = 5
[sizes.default]
experiments = [
  { name = "first", parameters = { rows = [10, 20] } },
  { name = "second", select = "pg.*", dataset = "integers", parameters = { files = [1], cache = ["warm", "cold"] } },
]
[sizes.smoke]
passes = 1
experiments = [{ name = "only", parameters = { rows = [10] } }]
[[pictures]]
name = "a-picture"
title = "A picture"
form = "lines"
where = { experiment = ["first"] }
x = "rows"
y = "seconds"
[[pictures]]
name = "another-picture"
title = "Another picture"
form = "bars"
y = "seconds"
statistic = "mean and deviation"
"""
FIGURES = (
    "database,direction,description,mean_seconds,mean_rows_per_s,min_rows_per_s,max_rows_per_s\npg,write,a,1,2,3,4\n"
)
FIRST = Experiment("first", "*", "analytics_metrics", {"rows": [10, 20]})
SECOND = Experiment("second", "pg.*", "integers", {"files": [1], "cache": ["warm", "cold"]})
