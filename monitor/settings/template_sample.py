"""Sample notification to check templates with; a test compares it with a real one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


class Labels(dict[str, str]):
    """Labels in a template: a missing label is empty, since rules have different labels."""

    def __missing__(self, name: str) -> str:
        """Return an empty text."""
        return ""


SAMPLE_ALERT: Final[Mapping[str, Any]] = {
    "rule": "loss",
    "kind": "loss",
    "severity": "page",
    "word": "lost",
    "stream": "orders",
    "node": "b",
    "edge": "a -> b",
    "since_us": 1_767_225_600_000_000,
    "window_start_us": 1_767_225_660_000_000,
    "observed": 0.02,
    "threshold": 0.01,
    "unit": "ratio",
    "affected": 20,
    "out_of": 1_000,
    "lost_ids": ["00000000000000000000000000000001"],
    "runbook": "https://wiki.example/loss.md",
    "link": "https://hopwatch.example/?stream=orders",
    "summary": "lost: 20 of 1,000 messages (2.00%) surely lost at b of orders on a -> b",
    "labels": Labels(),
}
SAMPLE: Final[Mapping[str, Any]] = {
    "key": "loss/page/orders",
    "event": "firing",
    "rule": "loss",
    "kind": "loss",
    "severity": "page",
    "labels": Labels(rule="loss", severity="page", stream="orders"),
    "alerts": [dict(SAMPLE_ALERT)],
    "total": 1,
    "since_us": 1_767_225_600_000_000,
    "at_us": 1_767_225_840_000_000,
    "summary": "lost: 20 of 1,000 messages (2.00%) surely lost at b of orders on a -> b",
    "is_again": False,
    "is_acknowledged": False,
}
"""Variables of a template: the fields of a notification, and two of its delivery."""
