"""The suites of the lab agree with the catalogue, with their rigs and with the published figures."""

import csv
import inspect
import re
from collections import Counter
from functools import cache
from importlib import import_module
from itertools import product

import pytest

from harness import registry
from harness.datasets import store
from harness.model import Operation, Origin
from harness.report.crossings import FEWEST_SIZES
from harness.report.grids import DIRECTION
from harness.results.row import NAMES
from harness.run import plan
from harness.run.rigs import databases, parquet, server_parameters
from harness.settings import ROOT
from harness.suites import suite_files
from harness.suites.suite import SIZES, Sweep, Versus
from harness.systems import SYSTEMS

BORROWERS = {"crossings": "matrix"}  # suites that run some transports of another one again, at other points
FOLDER = ROOT / "suites"
SUITES = {path.stem: suite_files.load(FOLDER, path.stem) for path in sorted(FOLDER.glob("*.toml"))}
PARAMETERS = {name: import_module(f"harness.run.rigs.{suite.rig}").PARAMETERS for name, suite in SUITES.items()}

every_suite = pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
every_size = pytest.mark.parametrize(
    ("suite", "size"),
    [(suite, size) for suite in SUITES.values() for size in SIZES],
    ids=lambda value: getattr(value, "name", value),
)
every_picture = pytest.mark.parametrize(
    ("suite", "picture"),
    [(suite, picture) for suite in SUITES.values() for picture in suite.pictures],
    ids=lambda value: value.name,
)


def cases_of(suite, size="default", origins=None):
    return _cases(suite.name, size, origins)


@cache
def _cases(name, size, origins):
    return plan.cases(plan.of_size(SUITES[name], size, "*", 1, origins=origins), registry.select)


@every_suite
def test_every_suite_has_all_four_sizes_and_a_picture(suite):
    assert tuple(suite.sizes) == SIZES
    assert suite.title
    assert suite.pictures


@every_size
def test_every_experiment_of_a_size_has_transports_and_the_parameters_of_its_rig(suite, size):
    names = [part.name for part in suite.size(size).experiments]
    named = plan.of_size(suite, size, "*", 1, experiments=",".join(names))
    cases = plan.cases(named, registry.select)
    assert {case.experiment for case in cases} == set(names)
    for case in cases:
        if suite.rig in ("tuning", "cluster"):  # each job, or experiment, has its own
            assert case.parameters.keys() <= PARAMETERS[suite.name]
        elif suite.name in BORROWERS:
            assert PARAMETERS[suite.name] <= case.parameters.keys() <= PARAMETERS[suite.name] | databases.OPTIONAL
            server_parameters.require_values(case)
        else:
            assert case.parameters.keys() - {"profile", "rows_before"} == PARAMETERS[suite.name]
            assert ("profile" in case.parameters) == (case.experiment == "profiles")


@every_size
def test_every_size_of_a_database_or_store_suite_is_about_a_dataset_there_is(suite, size):
    datasets = {case.dataset for case in cases_of(suite, size)}
    assert len(datasets) == 1 or suite.name in BORROWERS
    if suite.rig in ("databases", "cluster", "stores"):
        assert {store.specification(name).name for name in datasets} == datasets


@pytest.mark.parametrize("size", SIZES)
def test_every_layout_of_a_scan_has_files_that_can_be_made_and_a_page_cache_that_can_be_set(size):
    for case in cases_of(SUITES["scan"], size):
        assert case.dataset == "lineitem"
        assert case.parameters["page_cache"] in parquet.PAGE_CACHE
        assert len(parquet.layouts_of(case)) == case.parameters["files"]


@every_suite
def test_the_smoke_size_runs_every_experiment_and_transport_of_the_default_size_in_one_pass(suite):
    assert suite.size("smoke").passes == 1
    smoke, default = (
        {(case.experiment, case.transport.id) for case in cases_of(suite, s)} for s in ("smoke", "default")
    )
    if suite.name == "matrix":  # whose transports beyond the article are too many for two minutes
        default = {(name, way) for name, way in default if registry.one(way).origin is not Origin.BEYOND}
        smoke, default = ({pair for pair in pairs if pair[0] == "matrix"} for pairs in (smoke, default))
    if suite.name == "cluster":  # whose experiments have the same transports, at sizes that take long
        ways = [
            [way for way in map(registry.one, {way for _, way in pairs}) if moves_parts(way)]
            for pairs in (smoke, default)
        ]
        of_smoke, of_default = ({way.engine for way in of_size} for of_size in ways)
        assert of_smoke == of_default  # of each some: workers take long to start
        smoke, default = ({way.id for way in of_size if not way.engine and way.client != "daft"} for of_size in ways)
    if suite.name in BORROWERS:  # of each experiment some, and of each database and direction
        assert {_direction(way) for _, way in smoke} == {_direction(way) for _, way in default}
        assert smoke <= default
        smoke, default = ({name for name, _ in pairs} for pairs in (smoke, default))
    assert smoke == default


@every_size
def test_two_experiments_that_make_one_map_of_winners_measure_no_cell_of_it_twice(suite, size):
    for wanted in (picture.where["experiment"] for picture in suite.pictures if picture.form == "winners"):
        cells = Counter(
            (case.transport.id, case.dataset, *sorted((name, str(value)) for name, value in case.parameters.items()))
            for case in cases_of(suite, size)
            if case.experiment in wanted
        )
        assert [cell for cell, times in cells.items() if times > 1] == []


def _direction(way):
    return registry.one(way).system, registry.one(way).operation


def moves_parts(entry):
    return entry.operation in (Operation.LOAD, Operation.UNLOAD)


def test_every_transport_of_the_catalogue_is_in_the_default_size_of_one_suite():
    every = {name: {case.transport.id for case in cases_of(suite, origins=plan.ALL)} for name, suite in SUITES.items()}
    for name, lender in BORROWERS.items():
        assert every.pop(name) <= every[lender]
    # Which it sets its own against.
    every["cluster"] -= {way for way in every["cluster"] if not moves_parts(registry.one(way))}
    assert set().union(*every.values()) == set(registry.catalogue())
    assert sum(map(len, every.values())) == len(registry.catalogue())


@every_suite
def test_what_the_author_described_is_what_the_transports_reproduce(suite):
    reproduced = set() if suite.name in BORROWERS else {case.transport.published for case in cases_of(suite)}
    assert {figure.description for figure in suite.published} == reproduced - {None}


@every_suite
def test_no_published_row_is_lost(suite):
    if not suite.citation:
        pytest.skip("it reproduces no published benchmark")
    figures = list(csv.DictReader((FOLDER / "published" / f"{suite.name}.csv").open(encoding="utf-8")))
    assert len(suite.published) == len(set(map(repr, suite.published))) == len(figures) > 0


@every_suite
def test_every_published_figure_is_of_an_experiment_parameters_and_rows_that_the_suite_has(suite):
    experiments = {part.name: part for part in suite.size("default").experiments}
    for figure in suite.published:
        assert all(value > 0 for value in vars(figure).values() if isinstance(value, int | float))
        assert figure.experiment is None or figure.experiment in experiments
        assert figure.parameters.keys() <= PARAMETERS[suite.name]
        for name, value in figure.parameters.items():
            assert value in map(str, experiments[figure.experiment].parameters[name])
        if figure.rows is not None:
            everything = [part for size in SIZES for part in suite.size(size).experiments]
            assert any(figure.rows in part.parameters["rows"] for part in everything)


def test_a_mean_of_the_article_lies_between_its_minimum_and_maximum():
    figures = SUITES["matrix"].published
    assert figures
    assert all(row.min_rows_per_s <= row.mean_rows_per_s <= row.max_rows_per_s for row in figures)


def test_the_stores_are_run_at_the_sizes_and_as_often_as_in_their_article():
    (experiment, _) = SUITES["stores"].size("default").experiments
    assert experiment.parameters == {"rows": [10**power for power in range(7)]}
    assert SUITES["stores"].size("default").passes == 5


@every_picture
def test_a_picture_shows_columns_there_are(suite, picture):
    known = PARAMETERS[suite.name] | (databases.OPTIONAL if suite.name in BORROWERS else frozenset())
    columns = {*NAMES, *(f"parameter:{name}" for name in known)}
    axes = {DIRECTION} if picture.form == "winners" else set()
    assert {*picture.y.split(" + "), picture.colour} <= columns | details_of(suite.name) | axes
    assert {*picture.x.split(" + "), picture.dash} <= columns | axes | {""}
    assert (picture.where or {}).keys() <= columns
    assert (picture.x == "") == (picture.form == "bars")


@every_picture
def test_a_picture_shows_some_case_of_the_default_size_for_each_value_it_asks_for(suite, picture):
    cases = cases_of(suite)
    for name, values in (picture.where or {}).items():
        cases = [case for case in cases if str(_column(case, name)) in values]
        assert {str(_column(case, name)) for case in cases} == set(values)
    assert cases
    if picture.published:
        assert any(case.transport.origin is Origin.PUBLISHED for case in cases)


@cache
def details_of(suite):
    """The declared details of the jobs of the suite of this name, in the form that a picture uses."""
    strings = {inspect.getsource(case.transport.function) for case in cases_of(SUITES[suite])}
    strings.add(inspect.getsource(import_module(f"harness.run.rigs.{SUITES[suite].rig}")))
    strings |= {inspect.getsource(of.settings) for of in SYSTEMS.values() if not of.lacks("settings")}
    return {f"detail:{name}" for text in strings for name in re.findall(r'"(\w+)": ', text)}


@every_suite
def test_curves_that_are_set_against_each_other_have_enough_sizes(suite):
    for size in suite.sizes.values() if suite.crossings else ():
        rows = [
            number
            for part in size.experiments
            if part.name in suite.crossings.experiments
            for number in part.parameters["rows"]
        ]
        assert len(rows) == len(set(rows)) >= FEWEST_SIZES


def test_every_usual_transport_of_the_matrix_is_in_the_catalogue_and_every_cell_has_one():
    defaults = [entry for name in SUITES["matrix"].answers.defaults for entry in registry.select(name)]
    cells = set(product(SYSTEMS, (Operation.WRITE, Operation.READ), ("pandas", "polars")))
    assert {(entry.system, entry.operation, entry.frame) for entry in defaults} == cells


@every_suite
def test_every_comparison_is_of_an_experiment_with_its_transports_and_parameters(suite):
    experiments = {part.name: part for part in suite.size("default").experiments}
    for one in suite.comparisons:
        ways = {case.transport.id for case in cases_of(suite) if case.experiment == one.experiment}
        values = experiments[one.experiment].parameters
        if isinstance(one, Versus):
            assert {one.transport, one.against} <= ways
        elif isinstance(one, Sweep):
            assert len(values[one.parameter]) > 1
        else:
            for side in (one.one, one.other):
                assert all(value in values[name] for name, value in side.items())


def _column(case, name):
    if name.startswith("parameter:"):
        return case.parameters.get(name.removeprefix("parameter:"), "")
    known = {"experiment": case.experiment, "transport": case.transport.id}
    return known[name] if name in known else getattr(case.transport, name)
