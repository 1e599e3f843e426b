"""Markers: moments that people and programs have noted, such as a deploy, for one stream or for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.results import format_iso

MAX_CHARS: Final = 200
"""Characters of a text, of a label and of a value, at most."""
MAX_LABELS: Final = 8


@dataclass(frozen=True, slots=True)
class Marker:
    """Marker of a moment, µs since 1970; an empty ``stream`` is all streams. ``number`` is 0 until it is stored."""

    at_us: int
    text: str
    by: str
    stream: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        """Check what people and programs have given.

        Raises:
            ConfigurationError: a text is empty, too long or not printable, or there are too many labels.
        """
        if len(self.labels) > MAX_LABELS:
            raise ConfigurationError(f"a marker has at most {MAX_LABELS} labels, got {len(self.labels)}")
        for text in (self.text, self.by, *self.labels, *self.labels.values()):
            if not (text.strip() and text.isprintable() and len(text) <= MAX_CHARS):
                raise ConfigurationError(
                    f"text, name and labels of a marker are one line of printable text, of at most {MAX_CHARS} "
                    f"characters, got {text!r:.80}"
                )

    def describe(self) -> str:
        """Return its text and its labels."""
        labels = ", ".join(f"{name}={value}" for name, value in self.labels.items())
        return f"{self.text} ({labels})" if labels else self.text


def marker_to_json(marker: Marker) -> dict[str, Any]:
    """Return a marker as ``--json`` shows it."""
    named = {"number": marker.number, "at": format_iso(marker.at_us), "stream": marker.stream or None}
    return named | {"text": marker.text, "labels": dict(marker.labels), "by": marker.by}
