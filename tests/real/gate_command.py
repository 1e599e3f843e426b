"""Command line that runs the gate, also over the topics of a single broker."""

from __future__ import annotations

from typing import Final

RUN: Final = ("hopwatch", "gate", "--allow-weak")
