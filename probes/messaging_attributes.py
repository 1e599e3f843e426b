"""Attributes of messaging spans, by the conventions of today and by those before version 1.17."""

from __future__ import annotations

from typing import Final

DESTINATION_NAMES: Final = ("messaging.destination.name", "messaging.destination")
TEMPORARY: Final = (
    "messaging.destination.temporary",
    "messaging.destination.anonymous",
    "messaging.temp_destination",
)
"""Attributes of destinations that are no streams: each is there for a while, or for one consumer."""
