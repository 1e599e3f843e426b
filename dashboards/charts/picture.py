"""Pictures as SVG without anything that moves: how one begins, and its letters."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hopwatch.display.colours import Palette


def begin_picture(width: int, height: int, palette: Palette) -> ET.Element:
    """Return an empty picture of a size in pixels, whose letters have the colour of text."""
    size = {"viewBox": f"0 0 {width} {height}", "width": f"{width}", "height": f"{height}"}
    letters = {"font-family": "sans-serif", "font-size": "12", "fill": palette.text}
    return ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **letters})


def draw_text(root: ET.Element, x: float, y: float, words: str, anchor: str) -> None:
    """Draw words whose start, middle or end is at a place."""
    ET.SubElement(root, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}).text = words
