"""Axes with units: linear ones from zero with one unit, logarithmic ones with a unit at every tick."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from harness.report.pictures.quantities import Quantity, scale, text

Side = Literal["x", "y"]
_ROOM = 0.04  # of the axis, kept free beyond the outermost marks
# Below so many decades an axis has ticks at these multiples of each power of ten.
_SUBS = ((1.0, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)), (2.5, (1.0, 2.0, 5.0)), (math.inf, (1.0,)))
_APART = 0.09  # of the axis: marked values that are closer would have labels that collide


def linear(axes: Axes, side: Side, values: Iterable[float], what: Quantity) -> None:
    """Let an axis reach from zero to a little above the largest value."""
    largest = max(values, default=0.0)
    one = scale(largest, what)
    axis = _axis(axes, side)
    axes.set(**{f"{side}lim": (0, largest * (1 + _ROOM) or 1.0)})
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / one.factor:,.6g}"))
    axis.set_label_text(one.label)


def logarithmic(axes: Axes, side: Side, values: Iterable[float], what: Quantity, marked: Sequence[float] = ()) -> None:
    """Make an axis logarithmic, with its ticks at the `marked` values where their labels have room.

    A logarithmic axis has no zero. Where a value is zero the axis is linear up to the smallest positive value and
    shows the zero at its beginning, rather than to leave the value out.
    """
    known = sorted(values)
    positive = [value for value in known if value > 0]
    if not positive:
        linear(axes, side, known, what)
        return
    low, high = positive[0], positive[-1]
    room = max(high / low, 2.0) ** _ROOM
    axis, set_scale = _axis(axes, side), axes.set_xscale if side == "x" else axes.set_yscale
    if known[0] > 0:
        set_scale("log", nonpositive="clip")
        axes.set(**{f"{side}lim": (low / room, high * room)})
    else:
        set_scale("symlog", linthresh=low, linscale=0.4)
        axes.set(**{f"{side}lim": (-low / 10, high * room)})
    axis.set_major_locator(_locator(low, high, known[0] <= 0, marked))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, what)))
    axis.set_label_text(what.name)


def tick(value: float, what: Quantity) -> str:
    """Return the text of a tick: a parameter as it is, and rows without the word, which stands at the axis."""
    return text(value, what.unit).removesuffix(" rows") if what.unit else f"{value:,.15g}"


def _locator(low: float, high: float, zero: bool, marked: Sequence[float]) -> FixedLocator | LogLocator | MaxNLocator:
    if not zero and _have_room(marked):
        return FixedLocator(list(marked))
    decades = math.log10(high / low)
    if decades < 0.02:  # labels of three digits would not differ
        return FixedLocator([0.0, low] if zero else [low])
    if zero:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        step = max(1, (last - first) // 6)
        return FixedLocator([0.0, *(10.0**power for power in range(first + 1, last + 1, step))])
    if decades < 0.5:
        return MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    subs = next(subs for most, subs in _SUBS if decades < most)
    return LogLocator(subs=subs, numticks=9)


def _have_room(marked: Sequence[float]) -> bool:
    """Tell whether labels at these values stand apart from each other on a logarithmic axis."""
    if len(marked) < 2 or min(marked) <= 0:
        return False
    places = sorted(math.log(value) for value in set(marked))
    return min(b - a for a, b in pairwise(places)) > _APART * (places[-1] - places[0])


def categories(axes: Axes, names: Sequence[str]) -> None:
    """Set one tick for each category on the x axis, at 0, 1, 2 and so on."""
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.35, len(names) - 0.65)


def _axis(axes: Axes, side: Side) -> Axis:
    return axes.xaxis if side == "x" else axes.yaxis
