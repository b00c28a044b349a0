"""What a transport needs against what the lab offers: the reason why it is not run here. Pure but for find_spec."""

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

from packaging.requirements import Requirement

from harness.lab.labs import Lab
from harness.model import Server, Transport
from harness.systems import SYSTEMS


def reason_unavailable(entry: Transport, lab: Lab, servers: dict[str, Server], no_s3: str | None = None) -> str | None:
    """Return why this lab cannot run the transport, in one line, or None when it can.

    `no_s3` is why there is no S3 server, where there is none.
    """
    if reason := missing_package(entry):
        return reason
    if entry.system not in SYSTEMS:  # a bound of the machine
        return None
    if entry.endpoint not in lab.endpoints:
        return f"this lab has no {entry.endpoint} address"
    elsewhere = ("shared_io", "s3")
    missing = [need for need in entry.needs if need not in elsewhere and need not in servers[entry.system].offers]
    if missing:
        version = servers[entry.system].version
        return f"the {entry.system} {version} server does not offer {', '.join(missing)}"
    if "shared_io" in entry.needs and lab.io is None:
        return "no folder is shared with the server; set LAB_IO_DIR"
    return no_s3 if "s3" in entry.needs else None


def missing_package(entry: Transport) -> str | None:
    """Return which Python package a transport needs that is not installed, as a reason, or None."""
    for module in entry.requires:
        package = module.partition(".")[0]
        if find_spec(package) is None:
            where = left_out(package, _requirements())
            return f'the Python package "{module}" is not installed' + (
                f": it is left out unless {where}" if where else ""
            )
    return None


def left_out(package: str, requirements: Iterable[str], platform: Mapping[str, str] | None = None) -> str | None:
    """Return the condition under which the lab asks for a package, where this platform does not meet it.

    `platform` takes the place of this machine's own markers (sys_platform, platform_machine ...).
    """
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if requirement.name == package and marker and not marker.evaluate({"extra": ""} | dict(platform or {})):
            return str(marker)
    return None


def _requirements() -> list[str]:
    try:
        return requires("dataframe-io-lab") or []
    except PackageNotFoundError:  # run from a checkout that is not installed
        return []
