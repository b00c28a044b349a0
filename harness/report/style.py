"""One style for all pictures: colours, marks, type and sizes."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib

# Okabe & Ito, "Color Universal Design" (2008), seen alike with every common colour vision; without its yellow, which is
# lost on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
DASHES = ("-", (0, (5, 2)), (0, (7, 2, 1.5, 2)), (0, (3, 1.5, 1, 1.5, 1, 1.5)))
DOTTED = (0, (1, 1.8))  # the author's figures, and nothing else
HATCHES = ("", "///", "...", "xx")  # bars, when the colours run out

INK = "#1f2328"
QUIET = "#5f6670"  # 5.8:1 on white: second lines, and transports without a figure
LINES = "#dfe2e6"

WIDTH = 9.0  # inches of every picture
TEXT = 9.0  # points; titles are larger, second lines smaller
SMALL = 8.0
TITLE = 12.0
DPI = 150

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": TEXT,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "axes.labelcolor": INK,
    "axes.edgecolor": "#8b929b",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINES,
    "grid.linewidth": 0.7,
    "xtick.color": "#8b929b",
    "xtick.labelcolor": INK,
    "ytick.color": "#8b929b",
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "hatch.color": "white",
    "hatch.linewidth": 1.0,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and copied
    "svg.hashsalt": "dataframe-io-lab",  # the same picture has the same bytes
}


@contextmanager
def applied() -> Iterator[None]:
    """Use this style within the block, whatever the person's own matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for name, value in _SETTINGS.items():
            matplotlib.rcParams[name] = value
        yield


@dataclass(frozen=True)
class Look:
    """How everything of one value of a column is drawn: no two values share colour, marker and dash, up to 70."""

    colour: str
    marker: str
    dash: Any
    hatch: str


def looks(values: Iterable[str], first: Collection[str] = ()) -> dict[str, Look]:
    """Give each different value its look, in alphabetical order; those that are in `first` come first."""
    ordered = sorted(set(values), key=lambda value: (value not in first, value))
    return {value: _look(place) for place, value in enumerate(ordered)}


def _look(place: int) -> Look:
    again, colour = divmod(place, len(COLOURS))
    return Look(
        COLOURS[colour], MARKERS[place % len(MARKERS)], DASHES[again % len(DASHES)], HATCHES[again % len(HATCHES)]
    )
