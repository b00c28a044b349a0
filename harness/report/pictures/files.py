"""Pictures as files: a small PNG, and an SVG whose marks say what they are when they are pointed at."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from harness.report.pictures.sheet import Sheet

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
# Where matplotlib's own font is missing these are the ones as wide as it.
_FONTS = "'DejaVu Sans', Verdana, 'Bitstream Vera Sans', sans-serif"
_REFERENCE = re.compile(r"#([a-zA-Z][\w-]{8,})")  # to an id; a colour has six digits
_PALETTE = 128  # colours of a PNG: enough for smooth letters, a third of the bytes


def save_png(drawn: Sheet, path: Path) -> None:
    """Write a sheet as a PNG of few colours, without a date or a version in it."""
    canvas = FigureCanvasAgg(drawn.figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    small = image.quantize(_PALETTE, dither=Image.Dither.NONE)
    small.save(path, format="png", optimize=True, dpi=(drawn.figure.dpi, drawn.figure.dpi))


def save_svg(drawn: Sheet, path: Path, name: str, title: str) -> None:
    """Write a sheet as an SVG that can stand in a page beside others: its ids begin with the picture's name.

    Every mark holds a `<title>` with what it says, which browsers show without any script.
    """
    raw = io.BytesIO()
    drawn.figure.savefig(raw, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(raw.getvalue())
    _drop_what_would_leak(root)
    _say(root, drawn.sayings)
    _shorten(root)
    _name_ids(root, name)
    root.attrib |= {"role": "group", "aria-label": title, "stroke-linejoin": "round", "stroke-linecap": "butt"}
    path.write_text(ET.tostring(root, encoding="unicode") + "\n", encoding="utf-8")


def _drop_what_would_leak(root: ET.Element) -> None:
    """Remove the metadata, and the style that would hold for the whole page the picture stands in."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)


def _say(root: ET.Element, sayings: dict[str, str]) -> None:
    found = {element.get("id"): element for element in root.iter() if element.get("id") in sayings}
    for name, text in sayings.items():
        title = ET.Element(f"{{{_SVG}}}title")
        title.text = text
        found[name].insert(0, title)
        found[name].attrib |= {"class": "mark", "role": "img"}


def _shorten(root: ET.Element) -> None:
    """Say once what holds for all texts, and no more digits than a hundredth of a point: half the bytes."""
    root.set("font-family", _FONTS)
    for element in root.iter():
        for key, text in element.attrib.items():
            if key in ("d", "x", "y", "transform"):
                element.set(key, re.sub(r"(\.\d\d)\d+", r"\1", text))
        if "style" in element.attrib:
            element.set("style", re.sub(r"font-family: 'DejaVu Sans'[^;]*; ?", "", element.attrib["style"]))
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]


def _name_ids(root: ET.Element, name: str) -> None:
    """Begin the ids with the picture's name, in what refers to them too, and drop those that nothing refers to."""
    referred = {
        match for element in root.iter() for text in element.attrib.values() for match in _REFERENCE.findall(text)
    }
    for element in root.iter():
        for key, text in element.attrib.items():
            if key != "id":
                element.set(key, _REFERENCE.sub(rf"#{name}-\1", text))
        if "id" in element.attrib:
            own = element.attrib.pop("id")
            if own in referred or element.get("class") == "mark":
                element.set("id", f"{name}-{own}")
