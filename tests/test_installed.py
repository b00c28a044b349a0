"""Without a clone: the wheel is complete, leaves its files in the working folder, and names the extra to install."""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module, metadata
from pathlib import Path
from zipfile import ZipFile

import duckdb
import duckdb_extensions
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness import registry
from harness.lab import interpreters
from harness.lab import packages as known_extras
from harness.lab.packages import PROJECT, not_installed, package_of, remedy
from harness.settings import ROOT
from harness.suites import suite_files
from tests.commands import succeeded
from tests.repository.locks import ENGINES, entries

# Hides modules from a process as if they were not installed; `find_spec` finds none of them either.
_WITHOUT = """
import sys
from importlib.machinery import PathFinder

hidden, find = set(sys.argv.pop(1).split(",")), PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else find(name, path, target)

PathFinder.find_spec = find_spec
"""


def base() -> set[str]:
    """Return the packages that the lab installs without extras, with all that they need."""
    found: set[str] = set()
    asked = [(PROJECT, "")]
    while asked:
        name, extra = asked.pop()
        for one in map(Requirement, metadata.requires(name) or []):
            needed = canonicalize_name(one.name)
            if (one.marker is None or one.marker.evaluate({"extra": extra})) and needed not in found:
                found.add(needed)
                asked += [(needed, extra) for extra in ("", *one.extras)]
    return found


def hidden() -> list[str]:
    """Return the installed modules that only extras need, directly or indirectly."""
    kept = base() | {PROJECT}
    return sorted(
        module
        for module, packages in metadata.packages_distributions().items()
        if not kept & {canonicalize_name(package) for package in packages}
    )


def run_in(
    here: Path, site: Path, code: str, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python with the unpacked wheel and without the modules of extras, in a folder, with its own home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
    variables = kept | {
        "HOME": str(here.parent / "home"),
        "LAB_LOCK_DIR": str(here.parent),  # tests run in parallel
        "LAB_PICTURES": "0",
        "PYTHONDONTWRITEBYTECODE": "1",  # pip would have compiled it
        "PYTHONPATH": str(site),
    }
    command = (sys.executable, "-c", _WITHOUT + code, ",".join(hidden()), *arguments)
    return subprocess.run(
        command, cwd=here, env=variables | (env or {}), capture_output=True, text=True, timeout=170, check=False
    )


def files(folder: Path) -> Iterator[str]:
    """Yield the paths of all files below a folder, except compiled Python."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix()


LAB = "from harness.cli import main; main()"


pytestmark = pytest.mark.long

Lab = Callable[..., subprocess.CompletedProcess[str]]
# The suites whose rig needs more than the base of the lab: the rest run on databases.
SUITES = [
    path.stem
    for path in sorted((ROOT / "suites").glob("*.toml"))
    if import_module(f"harness.run.rigs.{suite_files.load(path.parent, path.stem).rig}").REQUIRES
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout and unpack it as pip would."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(folder / "site-packages")
    return folder / "site-packages"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The empty folder that a person is in."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


@pytest.fixture
def installed(here: Path, site: Path) -> Lab:
    """Run the command `lab` of the wheel, without extras, in the empty folder."""
    return lambda *arguments, env=None: run_in(here, site, LAB, *arguments, env=env)


def rows(here: Path) -> list[dict[str, str]]:
    (path,) = here.glob("results/*/runs.csv")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.process
def test_the_wheel_has_every_file_of_the_package_and_of_the_suites(site: Path) -> None:
    package, suites = (list(files(ROOT / name)) for name in ("harness", "suites"))
    assert set(files(site / "harness")) == {*package, *(f"suites/{name}" for name in suites)}
    assert len(suites) >= 10


@pytest.mark.process
def test_an_editable_install_has_the_suites_of_the_checkout_alone(tmp_path: Path) -> None:
    """A second copy that never changes would mislead."""
    code = "import sys; from hatchling.build import build_editable; build_editable(sys.argv[1])"
    subprocess.run((sys.executable, "-c", code, str(tmp_path)), cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    listed = subprocess.run((sys.executable, "-m", "zipfile", "-l", wheel), capture_output=True, text=True, check=True)
    assert ".pth" in listed.stdout
    assert ".toml" not in listed.stdout


@pytest.mark.process
def test_no_module_of_the_lab_needs_an_extra_to_be_imported(here: Path, site: Path) -> None:
    code = """
import importlib, pkgutil, harness
assert harness.__file__.startswith(sys.argv[1]), harness.__file__
names = [module.name for module in pkgutil.walk_packages(harness.__path__, "harness.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
"""
    done = succeeded(run_in(here, site, code, str(site)))
    assert int(done.stdout) > 300


@pytest.mark.process
def test_the_catalogue_is_the_one_of_the_checkout(installed: Lab) -> None:
    done = succeeded(installed("list"))
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == list(registry.catalogue())


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_without_its_engines_is_unavailable_case_by_case_and_says_what_to_install(
    installed: Lab, here: Path, site: Path, suite: str
) -> None:
    before = list(files(site))
    done = succeeded(installed("run", suite, "--size", "smoke"))
    assert done.stderr == ""
    assert "nothing of this suite can run here: the Python package" in done.stdout
    found = rows(here)
    assert found
    assert {row["status"] for row in found} == {"unavailable"}
    assert {row["rows"] for row in found} == {""}
    for row in found:
        assert f'installed: pip install "{PROJECT}[' in row["error"]
    (folder,) = here.glob("results/*")
    succeeded(installed("report", folder.name))
    assert not [name for name in files(here) if not name.startswith(f"results/{folder.name}/")]
    assert list(files(site)) == before


def test_one_command_brings_what_a_suite_and_its_transport_lack(installed: Lab, here: Path) -> None:
    installed("run", "tuning", "--size", "smoke", "--only", "tuning.awscrt.*,tuning.numexpr.*")
    said = {row["transport"].split(".")[1]: row["error"] for row in rows(here)}
    assert said["awscrt"].endswith(f'"awscrt", "boto3", "duckdb" are not installed: pip install "{PROJECT}[duckdb,s3]"')
    assert said["numexpr"].endswith(f'pip install "{PROJECT}[tuning]"')


def test_on_databases_what_lacks_an_extra_is_unavailable_and_the_rest_runs(
    installed: Lab, here: Path, on_embedded_lab: dict[str, str]
) -> None:
    lacking = {
        "postgres.psycopg.read_polars_tuned": "tuned",
        "postgres.duckdb.read_polars_scan_small_tasks": "duckdb",
        "postgres.connectorx.read_polars_binary": "connectorx",
        "clickhouse.asynch.read_polars_rows": "clients",
    }
    running = ("postgres.psycopg.read_polars_rows", "clickhouse.clickhouse_connect.read_polars_query_arrow")
    named = {name: value for name, value in on_embedded_lab.items() if name.endswith(("_URI", "_URL"))}
    only = ",".join((*lacking, *running))
    size = ("--rows", "2000", "--passes", "1", "--experiment", "matrix", "--only", only)
    succeeded(installed("run", "matrix", "--external", *size, env=named))
    found = {row["transport"]: row for row in rows(here)}
    assert found.keys() == {*lacking, *running}
    for name, extra in lacking.items():
        assert found[name]["status"] == "unavailable"
        assert found[name]["error"].endswith(f'not installed: pip install "{PROJECT}[{extra}]"')
    assert {found[name]["status"] for name in running} == {"ok"}
    assert {path.name for path in here.iterdir()} == {"results", "datasets"}


def test_without_the_client_of_s3_the_doctor_says_so_and_a_named_server_fails(
    installed: Lab, on_embedded_lab: dict[str, str]
) -> None:
    named = {name: value for name, value in on_embedded_lab.items() if name.endswith(("_URI", "_URL"))}
    reason = f'the Python package "boto3" is not installed: pip install "{PROJECT}[s3]"'
    done = installed("doctor", "--external", env=named)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"ok   s3: none: {reason}" in done.stdout
    assert (
        f'--   extra tuned: {known_extras.EXTRAS["tuned"].brings}; 218 MB; pip install "{PROJECT}[tuned]"\n'
        in done.stdout
    )
    keys = {"LAB_S3_ENDPOINT": "http://127.0.0.1:1", "LAB_S3_ACCESS_KEY": "key", "LAB_S3_SECRET_KEY": "secret-key"}
    done = installed("doctor", "--external", env=named | keys)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"FAIL s3: {reason}" in done.stdout


@pytest.mark.process
def test_the_pages_of_a_checkout_are_refused_with_one_line(installed: Lab) -> None:
    for arguments in (("docs",), ("docs", "--check"), ("docs", "--reference", "a-run")):
        done = installed(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith('lab: "lab docs" writes docs/ and README.md of a checkout')
        assert done.stderr.count("\n") == 1


@pytest.mark.process
def test_a_run_names_the_version_it_was_made_by_and_no_commit_of_where_it_happens_to_lie(
    installed: Lab, here: Path
) -> None:
    subprocess.run(("git", "init", "--quiet", here), check=True)
    installed("run", "elt", "--size", "smoke")
    (folder,) = here.glob("results/*")
    version = metadata.version(PROJECT)
    code = json.loads((folder / "environment.json").read_text())["code"]
    assert code == {"commit": None, "modified": None, "version": version}
    assert f"; version {version}, an installed package, run " in (folder / "report.md").read_text()


@pytest.mark.process
def test_folders_are_below_the_current_one_and_state_in_the_home(here: Path, site: Path) -> None:
    names = ("datasets_dir", "results_dir", "suites_dir", "state_dir")
    code = f"from harness import settings; s = settings.load(); print(*(getattr(s, name) for name in {names}))"
    done = run_in(here, site, code)
    state = here.parent / "home/.cache/dataframe-io-lab/state"
    assert done.stdout.split() == [
        str(path) for path in (here / "datasets", here / "results", site / "harness/suites", state)
    ]
    elsewhere = run_in(here, site, code, env={"LAB_DATASETS_DIR": "data", "LAB_STATE_DIR": "/somewhere"})
    assert elsewhere.stdout.split()[0::3] == [str(here / "data"), "/somewhere"]


def test_everything_that_a_transport_requires_is_brought_by_the_base_an_extra_or_an_environment() -> None:
    declared = metadata.metadata(PROJECT)
    requirements, extras = declared.get_all("Requires-Dist") or [], declared.get_all("Provides-Extra") or []
    of_base = base()
    for entry in registry.catalogue().values():
        if interpreters.of(entry.requires):  # which is made of a lock
            continue
        for module in {name.partition(".")[0] for name in entry.requires} - sys.stdlib_module_names:
            package = package_of(module)
            assert package in of_base or remedy([package], requirements, extras), (entry.id, module)


def test_all_is_everything_that_any_extra_brings_but_engines_with_a_separate_lock() -> None:
    found: dict[str, set[str]] = {}
    for one in map(Requirement, metadata.requires(PROJECT) or []):
        for extra in metadata.metadata(PROJECT).get_all("Provides-Extra") or []:
            if one.marker and one.marker.evaluate({"extra": extra}):
                found.setdefault(extra, set()).add(one.name)
    engines = found.pop("ray") | found.pop("spark")
    of_all = found.pop("all")
    assert of_all == set().union(*found.values())
    assert engines - of_all == {"ray", "pyspark"}


REQUIREMENTS = (
    "polars",
    "pgpq; sys_platform == 'nowhere'",
    "duckdb; extra == 'duckdb'",
    "duckdb; extra == 'scan'",
    "datafusion; extra == 'scan'",
    "boto3; extra == 's3'",
    "ray[data]; extra == 'ray'",
    *(f"{name}; extra == 'all'" for name in ("duckdb", "datafusion", "boto3")),
)

EXTRAS = ("all", "duckdb", "ray", "s3", "scan")


@pytest.mark.parametrize(
    ("packages", "place", "said"),
    [
        (["duckdb"], "elsewhere", [f'pip install "{PROJECT}[duckdb]"']),
        (["duckdb", "datafusion"], "elsewhere", [f'pip install "{PROJECT}[scan]"']),
        (["boto3", "duckdb"], "elsewhere", [f'pip install "{PROJECT}[duckdb,s3]"']),
        (["boto3", "duckdb", "datafusion"], "elsewhere", [f'pip install "{PROJECT}[s3,scan]"']),
        (["pgpq"], "elsewhere", ['it is left out unless sys_platform == "nowhere"']),
        (["polars"], "elsewhere", []),
        (["unheard-of"], "elsewhere", []),
        (["ray"], "checkout", ["make engine ENGINE=ray"]),
        (["ray"], "compose", ["make up CLUSTER=ray"]),
        (["ray"], "elsewhere", [f'pip install "{PROJECT}[ray]"']),
        (["duckdb", "ray"], "checkout", [f'pip install "{PROJECT}[duckdb,ray]"']),
        (["duckdb"], "checkout", [f'pip install "{PROJECT}[duckdb]"']),
    ],
)
def test_what_would_install_a_package_depends_on_where_the_lab_runs(
    packages: Iterable[str], place: str, said: list[str]
) -> None:
    assert remedy(packages, REQUIREMENTS, EXTRAS, place) == said


def test_what_is_installed_is_no_reason_and_what_is_not_is_named_once() -> None:
    assert not_installed(["polars", "json", "pyarrow.parquet"]) is None
    assert not_installed(["no_such.one", "polars", "no_such.two"]) == 'the Python package "no-such" is not installed'


@pytest.mark.long
@pytest.mark.parametrize("name", ["httpfs", "postgres_scanner", "tpch"])
def test_an_extension_loads_without_a_download(name: str, tmp_path) -> None:
    offline = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "custom_extension_repository": "http://127.0.0.1:1",
        "extension_directory": str(tmp_path),
    }
    with duckdb.connect(config=offline) as connection:
        with pytest.raises(duckdb.Error):
            connection.execute(f"LOAD {name}")
        duckdb_extensions.import_extension(name, con=connection)
        connection.execute(f"LOAD {name}")
        query = "SELECT loaded, extension_version <> '' FROM duckdb_extensions() WHERE extension_name = ?"
        assert connection.execute(query, [name]).fetchone() == (True, True)


# Packages without a wheel for the images' Python: one is C, the rest are pure Python; the build stage has a compiler.
_PYTHON = {"clickhouse-sqlalchemy", "pyspark"}
SOURCES = {"x86_64": _PYTHON, "aarch64": _PYTHON | {"zstd"}}


@pytest.mark.long
@pytest.mark.parametrize("processor", SOURCES)
def test_every_locked_package_has_a_wheel_for_the_images_python_or_is_a_known_source(processor):
    """The test asks the package index, as a build of the image does. glibc 2.41 is Debian 13's."""
    python = re.search(r"python:(\d+\.\d+)-slim-trixie", (ROOT / "images/harness/Dockerfile").read_text())[1]
    locked = {name: text for lock in ("requirements.lock", *ENGINES) for name, text in entries(lock).items()}
    wheels = [text for name, text in locked.items() if name not in SOURCES[processor]]
    command = [Path(sys.executable).with_name("uv"), "pip", "compile", "--quiet", "--no-deps", "--generate-hashes"]
    command += ["--python-version", python, "--python-platform", f"{processor}-manylinux_2_40"]
    succeeded(
        subprocess.run([*command, "--only-binary", ":all:", "-"], input="".join(wheels), capture_output=True, text=True)
    )
