"""A small second pair of axes within the first, where there is room for it."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

_WIDE, _HIGH = 0.38, 0.40  # of the axes
# Upper left, lower right, upper right: fractions of the axes of the lower left corner. Room for tick labels is added.
_CORNERS = ((0.10, 0.56), (0.60, 0.13), (0.60, 0.56))
_LABELS = (0.08, 0.08)  # of the axes, to the left of the inset and below it
_STEPS = 60  # places looked at on each stroke of a line
_TALLER = 1.9  # times higher, to make room above all lines where no corner is free


def inset(axes: Axes, lines: Sequence[Sequence[tuple[float, float]]]) -> Axes:
    """Add an inset to axes whose limits are set, in a corner that no line passes.

    Where no corner is free the axes become taller, so that there is room above all lines.
    """
    corner = next((corner for corner in _CORNERS if not _crossed(axes, lines, corner)), None)
    if corner is None:
        corner = _CORNERS[0]
        axes.set_ylim(0, axes.get_ylim()[1] * _TALLER)
    x, y, wide, high = _room(corner)
    # The grid of the large axes does not run through the labels of the small ones.
    axes.add_patch(Rectangle((x, y), wide, high, transform=axes.transAxes, facecolor="white", linewidth=0, zorder=1))
    small = axes.inset_axes((*corner, _WIDE, _HIGH), zorder=5)
    small.tick_params(labelsize=7)
    small.set_title("the same, both axes logarithmic", fontsize=7, loc="left", pad=3)
    return small


def _crossed(axes: Axes, lines: Sequence[Sequence[tuple[float, float]]], corner: tuple[float, float]) -> bool:
    """Tell whether a line of points (in data) passes the inset, its title or its labels."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    placed = [[((x - left) / (right - left), (y - bottom) / (top - bottom)) for x, y in line] for line in lines]
    x, y, wide, high = _room(corner)
    return any(
        x <= a[0] + (b[0] - a[0]) * step / _STEPS <= x + wide and y <= a[1] + (b[1] - a[1]) * step / _STEPS <= y + high
        for line in placed
        for a, b in zip(line, line[1:] or line, strict=False)
        for step in range(_STEPS + 1)
    )


def _room(corner: tuple[float, float]) -> tuple[float, float, float, float]:
    """Return left, bottom, width and height of what an inset takes with its labels, in fractions of the axes."""
    return corner[0] - _LABELS[0], corner[1] - _LABELS[1], _WIDE + _LABELS[0] + 0.02, _HIGH + _LABELS[1] + 0.05
