"""The known losses of transports (their `lossy`): the file `losses.json` in a system's folder of transports.

`lab verify --update` writes these files, and the tests expect exactly these losses. Transports with equal losses are
listed together, each id in a line. So are the kinds, by their fate: `changed`, `refused`, `hangs` or `crashes`.
"""

import json
from collections.abc import Mapping
from functools import cache
from itertools import groupby
from pathlib import Path

from harness.model import Fate

Losses = Mapping[str, Mapping[str, str]]  # transport -> kind of values -> its fate


@cache
def read_losses(file: Path) -> Losses:
    """Return the losses of a system's transports; nothing of a transport that loses nothing.

    Raises ValueError for a transport that is listed twice, or a kind with two fates.
    """
    groups = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    pairs = [
        (transport, kind, fate)
        for group in groups
        for transport in group["transports"]
        for fate in Fate
        for kind in group.get(fate, ())
    ]
    found: dict[str, dict[str, str]] = {transport: {} for transport, _, _ in pairs}
    for transport, kind, fate in pairs:
        if kind in found[transport]:
            raise ValueError(f"{file}: {transport} loses {kind} twice")
        found[transport][kind] = fate
    return {transport: dict(sorted(fates.items())) for transport, fates in found.items()}


def losses_text(losses: Losses) -> str:
    """Return the content of a file of losses: transports, kinds and groups in order, one name a line."""

    def lost(transport: str) -> list[tuple[str, str]]:
        return sorted(losses[transport].items())

    groups = []
    for fates, transports in groupby(sorted(filter(losses.get, losses), key=lost), key=lost):
        by_fate = {fate: [kind for kind, of_kind in fates if of_kind == fate] for fate in Fate}
        groups.append({"transports": sorted(transports)} | {fate: kinds for fate, kinds in by_fate.items() if kinds})
    return json.dumps(sorted(groups, key=lambda group: group["transports"]), indent=1) + "\n"
