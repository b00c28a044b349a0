"""The only reader of the environment: every setting with its default and one line of explanation."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError, create_model, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from harness.address import Address
from harness.machine import variables
from harness.model import LabError, require_utf_8
from harness.systems import SYSTEMS

ROOT = Path(__file__).resolve().parent.parent
# Otherwise the lab is an installed package and ROOT the folder of all packages, where the lab must not write.
CHECKOUT = (ROOT / "pyproject.toml").is_file()
_PLACE = ROOT if CHECKOUT else Path()  # otherwise the current folder
LONGEST_SECONDS = 7 * 24 * 3600  # maximum of any time limit: a week
_TEMPORARY = Path("/tmp")
_CACHE = Path("~/.cache/dataframe-io-lab")


_INSTALLED = {name: at for name, system in SYSTEMS.items() if (at := system.installed_at)}


class _Settings(BaseSettings):
    """Settings of the lab, read from variables named LAB_<NAME>; the databases' packages define their addresses."""

    model_config = SettingsConfigDict(env_prefix="LAB_", env_ignore_empty=True, frozen=True)

    name: Literal["embedded", "external", "compose"] = Field(
        "embedded", description="Name of the lab that runs use; the harness container sets compose"
    )
    namespace: str = Field(
        variables.NAMESPACE,
        description="The one schema or database of a server that the lab works in; with another one, a second lab "
        "shares a server",
    )
    s3_server: Literal["versitygw", "minio"] = Field(
        "versitygw",
        description="S3 server of the embedded lab and of make up S3=1, unless LAB_S3_ENDPOINT names one: versitygw, "
        "or minio, which is no longer maintained",
    )
    s3_endpoint: str | None = Field(None, description="Any S3 server: http://host:port")
    s3_region: str = Field("us-east-1", description="Region that requests to the S3 server are signed for")
    s3_access_key: str | None = Field(None, description="Access key of the S3 server")
    s3_secret_key: str | None = Field(None, description="Secret key of the S3 server")
    io_dir: Path | None = Field(None, description="Folder shared with a database server, as this machine sees it")
    io_dir_server: str | None = Field(None, description="The same folder as that server sees it, if different")
    datasets_dir: Path = Field(_PLACE / "datasets", description="Where built datasets are kept")
    results_dir: Path = Field(_PLACE / "results", description="Where each run leaves its folder")
    suites_dir: Path = Field(
        ROOT / ("suites" if CHECKOUT else "harness/suites"), description="Where the suites (*.toml) are read from"
    )
    environments_dir: Path = Field(
        ROOT if CHECKOUT else _CACHE,
        description="Folder of separate environments for clients whose pins conflict with the lab's: .venv-daft",
    )
    cache_dir: Path = Field(_CACHE, description="Folder of the programs that the lab compiles once")
    maven_repository: str | None = Field(
        None, description="Maven repository that jars for Spark come from, instead of Spark's default"
    )
    state_dir: Path = Field(
        ROOT / ".lab" if CHECKOUT else _CACHE / "state",
        description="Where the embedded lab keeps its servers' data while it runs",
    )
    lock_dir: Path | None = Field(
        None, description="Folder of the lock that allows one run at a time on this machine, instead of /tmp"
    )
    cluster_address: str | None = Field(
        None,
        description="Scheduler of a cluster that does the work: tcp:// or tls://host:port (Dask), "
        "ray://host:port, spark://host:port",
    )
    commit: str | None = Field(None, description="Commit of the code, for results made without a git checkout")
    emulated: str | None = Field(
        None, description="Emulated processor and that of the machine, for results (set by make up)"
    )
    pictures: bool = Field(True, description="Whether reports have pictures; drawing them takes some seconds a run")
    ahead: bool = Field(True, description="Whether the next worker starts while the last result is verified")
    calibration: bool = Field(
        True, description="Whether a fixed job of two seconds measures the machine before and after a run"
    )
    seed: int = Field(20260407, ge=0, description="Seed of the generated data")
    time_limit: float | None = Field(
        None,
        gt=0,
        le=LONGEST_SECONDS,
        description="Seconds after which a run is ended, instead of the suite's own limit",
    )

    @field_validator(
        *(
            "io_dir",
            "datasets_dir",
            "results_dir",
            "suites_dir",
            "environments_dir",
            "cache_dir",
            "state_dir",
            "lock_dir",
        ),
        *(at.setting for at in _INSTALLED.values()),
        check_fields=False,
    )
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        require_utf_8(path, "folder")
        try:
            return path.expanduser().absolute()  # workers have other working directories
        except RuntimeError:
            raise ValueError(
                f"found no home folder for {path}: this user has none in /etc/passwd; set HOME, or avoid ~"
            ) from None

    @property
    def lock_folder(self) -> Path:
        """Where the machine's lock is: the same for every checkout and user, whatever their TMPDIR."""
        return self.lock_dir or (_TEMPORARY if _TEMPORARY.is_dir() else Path(tempfile.gettempdir()))

    @property
    def endpoints(self) -> dict[str, str]:
        """The databases' addresses that are set, by their names in transports."""
        named = {address.name: getattr(self, address.setting) for address in _ADDRESSES}
        return {name: uri for name, uri in named.items() if uri}

    @property
    def installed(self) -> dict[str, Path]:
        """Where the user's installed servers are, by database, if set."""
        named = {name: getattr(self, at.setting) for name, at in _INSTALLED.items()}
        return {name: place for name, place in named.items() if place}

    @property
    def endpoints_of_workers(self) -> dict[str, str]:
        """The databases' addresses that differ for a cluster's workers, by the same names."""
        named = {address.name: getattr(self, setting_of_workers(address)) for address in _ADDRESSES}
        return {name: uri for name, uri in named.items() if uri}


def setting_of_workers(address: Address) -> str:
    """Return the setting of a database's address as a cluster's workers see it."""
    return f"cluster_{address.setting}"


def _fields_of(address: Address) -> dict[str, object]:
    """Return the settings' fields for an address."""
    as_seen = f"The same address as the workers of a cluster see it, if different from {address.variable}"
    return {
        address.setting: (str | None, Field(None, description=address.meaning)),
        setting_of_workers(address): (str | None, Field(None, description=as_seen)),
    }


_ADDRESSES = [address for system in SYSTEMS.values() for address in system.addresses]
if TYPE_CHECKING:
    Settings = _Settings
else:
    Settings = create_model(
        "Settings",
        __base__=_Settings,
        **{name: field for address in _ADDRESSES for name, field in _fields_of(address).items()},
        **{at.setting: (Path | None, Field(None, description=at.meaning)) for at in _INSTALLED.values()},
    )


def load() -> Settings:
    """Read the settings from the environment. Raises LabError naming the first wrong one."""
    variables.namespace()  # raises LabError
    try:
        return Settings()  # type: ignore[call-arg]  # every field has a default; pydantic fills them
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "LAB_" + "_".join(str(part) for part in first["loc"]).upper().removeprefix("LAB_")
        said = first["msg"].removeprefix("Value error, ")
        raise LabError(f"{name}: {said}{'; see .env.example' if CHECKOUT else ''}") from None
