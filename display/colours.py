"""Colours, light and dark, and marks of verdicts: never colour alone, always word and icon.

Every colour that text has is held to a contrast of 4.5 to its ground (WCAG 2.1, AA).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from hopwatch.monitor.results import Status, Verdict


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of one theme; ``series`` are for lines that have no meaning of their own."""

    ground: str
    raised: str
    line: str
    text: str
    muted: str
    link: str
    lossy: str
    clean: str
    unknown: str
    silent: str
    idle: str
    pending: str
    series: tuple[str, ...]
    blank: str


LIGHT: Final = Palette(
    ground="#ffffff",
    raised="#f6f8fa",
    line="#d8dee4",
    text="#1f2328",
    muted="#59636e",
    link="#0a5fc4",
    lossy="#b42318",
    clean="#11703c",
    unknown="#8a5300",
    silent="#6a3fc0",
    idle="#59636e",
    pending="#3b6ea5",
    series=("#0a5fc4", "#b3540e", "#11703c", "#8e3fa8", "#0f7a80", "#a8294f", "#6b6310", "#4f5bd5"),
    blank="#eef1f4",
)
DARK: Final = Palette(
    ground="#0f141a",
    raised="#171d25",
    line="#303a46",
    text="#e6edf3",
    muted="#9aa7b4",
    link="#6cb2ff",
    lossy="#ff8b80",
    clean="#56d08a",
    unknown="#f0b849",
    silent="#bba4ff",
    idle="#9aa7b4",
    pending="#86bdf2",
    series=("#6cb2ff", "#f0955a", "#56d08a", "#d89bea", "#4fc7cf", "#ff8fb0", "#d2c65a", "#a3acff"),
    blank="#1d242d",
)


@dataclass(frozen=True, slots=True)
class Mark:
    """Label of a verdict: its word, its icon, and its meaning in a few words."""

    word: str
    icon: str
    meaning: str
    name: str
    """Name of its colour in a palette."""

    def colour(self, palette: Palette) -> str:
        """Return its colour in a theme."""
        return str(getattr(palette, self.name))


_MARKS: Final = {
    Verdict.LOSSY: Mark("LOSSY", "✕", "messages were surely lost", "lossy"),
    Verdict.UNKNOWN: Mark("UNKNOWN", "?", "neither loss nor its absence can be shown", "unknown"),
    Verdict.SILENT: Mark("SILENT", "∅", "no probe reports anything", "silent"),
    Verdict.CLEAN: Mark("CLEAN", "✓", "nothing was lost", "clean"),
    Verdict.IDLE: Mark("IDLE", "○", "no message came", "idle"),
}
_PENDING: Final = Mark("not final", "…", "it is not judged yet", "pending")
_PROVISIONAL: Final = Mark("PROVISIONAL", "…", "what is missing is in flight, it is not judged yet", "pending")
_OPEN: Final = Mark("OPEN", "…", "it still receives messages", "pending")
NO_DATA: Final = Mark("NO DATA", "·", "nothing of it was read yet", "idle")

VERDICT_ORDER: Final = tuple(_MARKS)
"""The verdicts, those that need a person first."""


def select_mark(verdict: Verdict | None, status: Status | None = None) -> Mark:
    """Return how a window is drawn; one without a verdict by its status."""
    if verdict is not None:
        return _MARKS[verdict]
    return {Status.OPEN: _OPEN, Status.PROVISIONAL: _PROVISIONAL}.get(status or Status.FINAL, _PENDING)


def build_css_variables(palette: Palette) -> str:
    """Return the colours as variables of CSS: ``--hw-`` and a name, or ``s`` and the place of one of the series."""
    named = "".join(f"--hw-{one.name}:{getattr(palette, one.name)};" for one in fields(palette) if one.name != "series")
    return named + "".join(f"--hw-s{place}:{colour};" for place, colour in enumerate(palette.series))


def compute_contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, ``#rrggbb``, from 1 to 21 (WCAG 2.1, relative luminance)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]  # noqa: PLR2004 - the standard's own numbers
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
