"""Micro-batches with alerts in their transaction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from hopwatch.alerts.batch_hook import AlertHook
from hopwatch.alerts.decision.rules import AlertRules
from hopwatch.monitor.micro_batch import BatchFollower
from tests.support.alert_scenario import build_rules
from tests.support.batch_traffic import traffic
from tests.support.micro_batches import MicroBatches
from tests.support.spool import STREAM_CONFIGS

PATIENT: Final = "".join(f'[[alerts.rules]]\nkind = "{kind}"\nthreshold = "1h"\n' for kind in ("lag", "end_to_end_lag"))
BEFORE_AMENDED: Final = 11
"""After so many micro-batches two windows are lossy; later ones amend both to UNKNOWN, as a batch never came."""


def rules(text: str = "") -> AlertRules:
    """Return the default rules for the stream that the spooled traffic is of."""
    made = build_rules(text or PATIENT)
    streams = {"orders": replace(made.streams["orders"], terms=STREAM_CONFIGS["orders"].terms)}
    return AlertRules(made.rules, streams, made.dashboard)


def alerting(text: str = "") -> BatchFollower:
    """Return what follows a micro-batch: pages go to two channels, all else to none."""
    return AlertHook(rules(text), lambda one: ("pager", "chat") if one.severity == "page" else ())


def play(stream: MicroBatches, folder: Path, most: int | None = None, **crash: bool) -> MicroBatches:
    """Run the traffic of five minutes, of which every window loses some messages on their way to the second node."""
    for paths in traffic(folder)[:most]:
        stream.run(paths, **crash)
        if crash:
            stream.restart()
    return stream
