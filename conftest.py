"""Fixtures for tests that need real engines: one embedded lab for the whole session, whatever number of processes."""

import argparse
import fcntl
import gc
import os
import re
import signal
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from harness.lab.embedded import EmbeddedLab
from harness.lab.labs import Lab
from tests import fuzzing
from tests.commands import Command, addresses_of, environment_below, in_own_process, in_process
from tests.scripts import Scripts
from tests.scripts import opened as running_scripts
from tests.shared_lab import Owner, allow_two_phases, ask

# A background job of a script starts with these ignored, and what tests start would inherit that: tests of Ctrl-C and
# the like would then test the script that started them.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)

# Machines are busy with other tests: how long an example takes says nothing. At night there are as many as ever.
settings.register_profile("lab", deadline=None, max_examples=100 if fuzzing.TIMES > 1 else 40)
settings.load_profile("lab")

# Processes of tests share the servers of one lab; in them each has a namespace of its own.
os.environ["LAB_NAMESPACE"] = f"dataframe_io_lab_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"

gc.disable()  # until the tests are collected: nothing of them is garbage

_STARTERS = {
    "lab_process",
    "launch",
    "browser",
    "scripts",
    "streamed",
}  # fixtures by which a test starts processes that take seconds
# Fixtures that are an engine or start Python; a test that takes none and does so itself is marked `process`.
_ENGINES = _STARTERS | {"addresses", "embedded_lab", "gateway", "launch_process", "objects"}
_PART = re.compile(r"@\d+(?=\]$)")
_ONE_SERVER = "tests/systems/clickhouse/gateway/"  # a folder whose tests share a server that takes seconds to start


class _FileOrPart(LoadFileScheduling):
    """The tests of a file go to one process, which makes their fixtures once; where ids end with @N, each N."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_ONE_SERVER):
            return _ONE_SERVER
        part = _PART.search(nodeid)
        return nodeid.partition("::")[0] + (part[0] if part else "")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _FileOrPart | None:
    """Return what deals out tests under `--dist loadfile`."""
    config.option.loadscopereorder = False  # the order is the one below
    return _FileOrPart(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `make test-pure` and of `make test-long SHARE=K/N`."""
    parser.addoption("--pure", action="store_true", help="run only tests that need no engine and start no Python")
    parser.addoption("--share", type=_share, metavar="K/N", help="of the long tests, run share K of N: 0/4 to 3/4")


def _share(text: str) -> tuple[int, int]:
    if (found := re.fullmatch(r"(\d+)/(\d+)", text)) and int(found[1]) < int(found[2]):
        return int(found[1]), int(found[2])
    raise argparse.ArgumentTypeError(f"expected K/N with K below N, such as 0/4, found {text!r}")


def pytest_configure(config: pytest.Config) -> None:
    """Under --pure, fail a test that starts Python: its mark `process` is missing."""
    if config.getoption("pure"):
        sys.addaudithook(_refuse_python)


def _refuse_python(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and "PYTEST_CURRENT_TEST" in os.environ:
        program = Path(os.fsdecode(arguments[0]))
        if program.name.startswith("python"):
            pytest.fail(f"expected a test that starts no Python, found {arguments[1]}: mark it `process`")


def _needs_an_engine(item: pytest.Item) -> bool:
    return not _ENGINES.isdisjoint(getattr(item, "fixturenames", ())) or item.get_closest_marker("process") is not None


@pytest.hookimpl(trylast=True)  # after tests were deselected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Beside one another, begin with the files that take longest: at the end no process is to wait for another.

    Those with tests that run alone come last: the others need not stop for them.
    """
    if config.getoption("pure"):
        _keep(config, items, lambda item: not _needs_an_engine(item))
    if config.getoption("share"):
        _keep(config, items, lambda item: _in_share(item, *config.getoption("share")))
    if hasattr(config, "workerinput"):
        work: Counter[str] = Counter()
        late: set[str] = set()
        for item in items:
            work[_place(item)] += 10 if _STARTERS & {*getattr(item, "fixturenames", ())} else 1
            if _runs_alone(item):
                late.add(_place(item))
        items.sort(key=lambda item: (_place(item) in late, -work[_place(item)], item.path))


def _keep(config: pytest.Config, items: list[pytest.Item], wanted: Callable[[pytest.Item], bool]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = [item for item in items if wanted(item)]


def _in_share(item: pytest.Item, share: int, shares: int) -> bool:
    """Deal out the long tests by function and part, so that each is in one share; those of `always` are in each."""
    long = item.get_closest_marker("long")
    if not long or long.kwargs.get("always"):
        return True
    part = _PART.search(item.nodeid)
    return zlib.crc32((item.nodeid.partition("[")[0] + (part[0] if part else "")).encode()) % shares == share


def _place(item: pytest.Item) -> str:
    return _ONE_SERVER if item.nodeid.startswith(_ONE_SERVER) else str(item.path)


def _runs_alone(item: pytest.Item) -> bool:
    """Say whether nothing may run beside a test; those that take long and time nothing may have others like them."""
    alone = item.get_closest_marker("alone")
    return bool(alone) and bool(not item.get_closest_marker("long") or alone.kwargs.get("times"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test beside those of other processes, or wait until there are none and keep them waiting."""
    gate = getattr(item.config, "workerinput", {}).get("gate")
    if not gate:
        return (yield)
    with open(f"{gate}/turn", "wb") as turn, open(f"{gate}/room", "wb") as room:
        fcntl.flock(turn, fcntl.LOCK_EX)  # who waits for the others to leave lets nobody in
        fcntl.flock(room, fcntl.LOCK_EX if _runs_alone(item) else fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_UN)
        try:
            return (yield)
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)  # also where a fork has it open


def pytest_collection_finish() -> None:
    """Take what the tests themselves are out of every search for garbage: it stays until the end."""
    gc.enable()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _lock_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs in the process of a test take no notice of others on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_LOCK_DIR", str(tmp_path_factory.mktemp("lock")))
        patch.setenv("LAB_CALIBRATION", "0")
        yield


_OWNER = pytest.StashKey[Owner]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of tests, before it starts, where to ask for the lab."""
    stash = node.config.stash
    if _OWNER not in stash:
        stash[_OWNER] = Owner(lambda: node.config._tmp_path_factory.mktemp("lab"))
        (node.config._tmp_path_factory.getbasetemp() / "gate").mkdir()
    node.workerinput["lab"] = stash[_OWNER].where
    node.workerinput["gate"] = str(node.config._tmp_path_factory.getbasetemp() / "gate")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the lab of all processes."""
    if owner := config.stash.get(_OWNER, None):
        owner.stop()


@pytest.fixture(scope="session")
def embedded_lab(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedLab]:
    """A running embedded lab, shared by all tests of all processes: nobody may stop or suspend its servers."""
    if where := getattr(pytestconfig, "workerinput", {}).get("lab"):
        yield ask(where)
        return
    with EmbeddedLab(tmp_path_factory.mktemp("lab")) as lab:
        allow_two_phases(lab)
        yield lab


@pytest.fixture(scope="session")
def lab_of_tests(embedded_lab: EmbeddedLab) -> Lab:
    """The same as what an examination is made on; whether its servers live is not looked at, nor are they revived."""
    return Lab("embedded", embedded_lab.folder, embedded_lab.endpoints, None, list, list, dict)


@pytest.fixture(scope="session")
def dataset_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for datasets that tests build once and share."""
    return tmp_path_factory.mktemp("datasets")


@pytest.fixture(scope="session")
def scripts() -> Iterator[Scripts]:
    """What runs scripts, shared by all tests of the session."""
    with running_scripts() as running:
        yield running


@pytest.fixture
def environment(tmp_path: Path, dataset_folder: Path) -> dict[str, str]:
    """Environment variables for a `lab` command that leaves everything below the test's own folder."""
    return environment_below(tmp_path, dataset_folder)


@pytest.fixture
def on_embedded_lab(environment: dict[str, str], embedded_lab: EmbeddedLab) -> dict[str, str]:
    """The same environment, with the session's embedded lab as the servers for `--external`."""
    return environment | addresses_of(embedded_lab)


@pytest.fixture(scope="session")
def lab() -> Command:
    """What runs a `lab` command in the process of the tests: same exit code, stdout and stderr, no start of Python.

    For what a command says, refuses and leaves. `lab_process` is for signals, variables that Python reads, time and
    memory of a whole command, and long runs.
    """
    return in_process


@pytest.fixture(scope="session")
def lab_process() -> Command:
    """What runs a `lab` command as a person does, in its own process; see `lab`, which takes two seconds less."""
    return in_own_process
