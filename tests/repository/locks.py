"""The lock files as the tests read them."""

import re
import tomllib

from harness.settings import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ENGINES = ("requirements-ray.lock", "requirements-spark.lock")
# All that share an environment: the site of the docs has its own.
LOCKS = ("requirements.lock", "requirements-dev.lock", *ENGINES)


def entries(name):
    """The lines of each package of a lock file, with its hashes, by the package's name."""
    blocks = re.split(r"^(?=[a-z0-9])", (ROOT / name).read_text(), flags=re.MULTILINE)[1:]
    return {re.split(r"[=\[; ]", block, maxsplit=1)[0]: block for block in blocks}
