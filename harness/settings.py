"""The only reader of the environment: every setting with its default and one line of explanation."""

import os
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from harness.model import LabError

ROOT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """Settings of the lab, read from variables named LAB_<NAME>."""

    model_config = SettingsConfigDict(env_prefix="LAB_", env_ignore_empty=True, frozen=True)

    postgres_uri: str | None = Field(
        None, description="Postgres for --external: postgresql://user:password@host:port/db"
    )
    clickhouse_http_url: str | None = Field(
        None, description="ClickHouse HTTP for --external: http://user:password@host:port"
    )
    clickhouse_native_uri: str | None = Field(
        None, description="ClickHouse native protocol for --external: clickhouse://user:password@host:port"
    )
    io_dir: Path | None = Field(None, description="Folder shared with the Postgres server, as this machine sees it")
    io_dir_server: str | None = Field(None, description="The same folder as the Postgres server sees it, if different")
    datasets_dir: Path = Field(ROOT / "datasets", description="Where built datasets are kept")
    results_dir: Path = Field(ROOT / "results", description="Where each run leaves its folder")
    suites_dir: Path = Field(ROOT / "suites", description="Where the suites (*.toml) are read from")
    state_dir: Path = Field(ROOT / ".lab", description="Where the embedded lab keeps its servers' data while it runs")
    seed: int = Field(20260407, ge=0, description="Seed of the generated data and of the shuffle of runs")
    time_limit: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Seconds after which a run is ended, instead of the suite's own limit",
    )


def load() -> Settings:
    """Read the settings from the environment. Raises LabError naming the first variable that is wrong.

    Proxies are switched off for this process and its workers: the lab talks to its databases directly, and a proxy
    named in the environment would otherwise carry, and be measured with, the HTTP ways.
    """
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"
    try:
        return Settings()  # type: ignore[call-arg]  # every field has a default; pydantic fills them
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "LAB_" + "_".join(str(part) for part in first["loc"]).upper().removeprefix("LAB_")
        raise LabError(f"{name}: {first['msg']}; see .env.example") from None
