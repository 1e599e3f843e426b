"""Framings of a topic's records: what a value has around its data."""

from __future__ import annotations

from enum import StrEnum


class RecordFraming(StrEnum):
    """Framing of the records of a topic."""

    PLAIN = "plain"
    DEBEZIUM = "debezium"
