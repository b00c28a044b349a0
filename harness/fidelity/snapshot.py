"""The files that `lab verify --update` writes: the losses it found become those that transports declare."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness import registry
from harness.fidelity.examination import pairs
from harness.model import Fate, Finding, LabError, Origin, Transport
from harness.registry.losses import losses_text

_NO_LOSS = (Fate.EXACT, Fate.CONVERTED)
_NOT_FOUND = (Fate.UNAVAILABLE, Fate.UNVERIFIABLE)


def update(findings: Sequence[Finding]) -> list[Path]:
    """Write the losses found into the systems' files, and return the files that changed. Raises LabError.

    Losses of kinds and transports that were not tried stay. Those of transports that are gone, go.
    """
    changed = []
    for system in sorted({finding.transport.system for finding in findings}):
        entries = [entry for entry in registry.catalogue().values() if entry.system == system]
        losses = {
            entry.id: losses_of(entry, [finding for finding in findings if finding.transport.id == entry.id])
            for entry in entries
            if entry.origin is not Origin.CONTROL  # which has those of the transport that it repeats
        }
        file, text = registry.losses_file(system), losses_text(losses)
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise LabError(f"cannot write to {file}: {error.strerror or error}") from None
        changed.append(file)
    return changed


def losses_of(entry: Transport, findings: Sequence[Finding]) -> dict[str, str]:
    """Return the losses that a transport must declare, without values that the server itself cannot hold."""
    losses = dict(entry.lossy)
    for finding in findings:
        if finding.fate not in _NOT_FOUND:
            losses.pop(finding.kind, None)
            the_servers = finding.as_wanted and finding.kind not in entry.lossy
            if finding.fate not in _NO_LOSS and not the_servers:
                losses[finding.kind] = finding.fate
    tried = {kind.name for kind in pairs(replace(entry, lossy=losses))}
    return {kind: fate for kind, fate in losses.items() if kind in tried}
