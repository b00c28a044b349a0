"""Compare a transport's needs with the lab: the reason why it does not run here."""

from harness.lab import cluster
from harness.lab.cluster import Cluster
from harness.lab.labs import Lab
from harness.lab.packages import not_installed
from harness.model import ENGINES, HERE, Server, Transport
from harness.systems import SYSTEMS

KEYS = ("LAB_S3_ENDPOINT", "LAB_S3_ACCESS_KEY", "LAB_S3_SECRET_KEY")


def reason_unavailable(
    entry: Transport,
    lab: Lab,
    servers: dict[str, Server],
    no_s3: str | None = None,
    named: Cluster | None = None,
    environment: str = HERE,
) -> str | None:
    """Return why this lab cannot run the transport, in one line, or None if it can.

    `no_s3` is the reason if the lab has no S3 server. `named` is the cluster that the user named. `environment` is the
    Python environment that a case asks for.
    """
    if reason := cluster.of_another_engine(entry, named) or not_installed(entry.requires, lab.name, environment):
        return reason
    if entry.engine == "spark" and (reason := cluster.no_java()):
        return reason
    if entry.system not in SYSTEMS:  # a lower bound of the machine
        return None
    if entry.endpoint not in lab.endpoints:
        return f"this lab has no {entry.endpoint} address"
    elsewhere = ("shared_io", "s3", *ENGINES)
    missing = [need for need in entry.needs if need not in elsewhere and need not in servers[entry.system].offers]
    if missing:
        lacks = f"the {entry.system} {servers[entry.system].version} server does not offer {', '.join(missing)}"
        fixes = SYSTEMS[entry.system].fixes
        return "; ".join([lacks, *(fixes[need][lab.name] for need in missing if need in fixes)])
    if "shared_io" in entry.needs and lab.io is None:
        return "no folder is shared with the server; set LAB_IO_DIR"
    if "s3" not in entry.needs:
        return None
    if not no_s3 and entry.system in lab.without_keys:
        return f"the {entry.system} server knows no S3 server; set {', '.join(KEYS)} to one"
    return no_s3
