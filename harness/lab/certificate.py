"""A certificate of the lab for servers on this machine, made by the program openssl: openssl-req(1).

It is self-signed and valid only for the addresses that it names. Certificate and key are files in a folder that ends
with the lab.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from harness.model import LabError

CERTIFICATE, KEY = "certificate.pem", "key.pem"
_DAYS = 30  # longer than any run
_PATIENCE_SECONDS = 10.0
# A separate configuration, because the system's may be missing or different.
_CONFIGURATION = """
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = dataframe IO lab
[extensions]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyCertSign
subjectKeyIdentifier = hash
subjectAltName = {hosts}
"""


class NoCertificate(LabError):
    """There is no certificate: the message has the reason and the fix."""


def make(folder: Path, hosts: Iterable[str]) -> None:
    """Write a certificate for some IP addresses into a folder, replacing an earlier one; the key (P-256) stays.

    Raises NoCertificate.
    """
    key, made, configuration = folder / KEY, folder / f"new-{CERTIFICATE}", folder / "openssl.cnf"
    configuration.write_text(_CONFIGURATION.format(hosts=", ".join(f"IP:{host}" for host in hosts)))
    if not key.exists():
        _openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key))
        key.chmod(0o600)
    request = ["req", "-x509", "-new", "-sha256", "-days", str(_DAYS), "-config", str(configuration)]
    _openssl(folder, *request, "-key", str(key), "-out", str(made))
    made.replace(folder / CERTIFICATE)  # atomically, because another process may be reading it


def _openssl(folder: Path, *arguments: str) -> None:
    what_to_do = "install openssl (https://openssl-library.org), which makes the lab's TLS certificate"
    program = shutil.which("openssl")
    if program is None:
        raise NoCertificate(f"no program openssl; {what_to_do}")
    environment = {"PATH": os.defpath, "HOME": str(folder), "RANDFILE": str(folder / "random")}
    try:
        done = subprocess.run(
            [program, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCertificate(f"{program} made no certificate: {error}; {what_to_do}") from None
    if done.returncode:
        said = (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
        raise NoCertificate(f"{program} {arguments[0]} failed: {said}; {what_to_do}")
