"""Pictures as files: a small PNG, and an SVG whose marks say what they are when they are pointed at."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

from PIL import Image

from harness.report.pictures.sheet import Sheet

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
# Where matplotlib's own font is missing these are the ones as wide as it.
_FONTS = "'DejaVu Sans', Verdana, 'Bitstream Vera Sans', sans-serif"
_PALETTE = 128  # colours of a PNG: enough for smooth letters, a third of the bytes


def save_png(drawn: Sheet, path: Path) -> None:
    """Write a sheet as a PNG of few colours, without a date or a version in it."""
    raw = io.BytesIO()
    drawn.figure.savefig(raw, format="png", metadata={"Software": None})
    raw.seek(0)
    with Image.open(raw) as image:
        small = image.convert("RGB").quantize(_PALETTE, dither=Image.Dither.NONE)
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
    _prefix_ids(root, name)
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


def _prefix_ids(root: ET.Element, name: str) -> None:
    for element in root.iter():
        for key, text in element.attrib.items():
            if key == "id":
                element.set(key, f"{name}-{text}")
            elif key == f"{{{_XLINK}}}href":
                element.set(key, text.replace("#", f"#{name}-", 1))
            elif "url(#" in text:
                element.set(key, text.replace("url(#", f"url(#{name}-"))
        if "DejaVu" in element.get("style", ""):
            element.set("style", re.sub(r"'DejaVu Sans'(, [\w' -]+)*", _FONTS, element.attrib["style"]))
