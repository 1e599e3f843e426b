"""The configuration of a run, which its monitor and its gate read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from hopwatch.demo.entrance.outlets import GateOutlets
from hopwatch.demo.stream import STREAM, format_path

TRANSIT_S: Final = 20
SETTLE_S: Final = 15

TOML: Final = """\
# The monitor of the demo. Messages pass the pipeline in milliseconds, and the probes report every two seconds:
# so windows can be final 35 s after their end, where 180 s would be usual.
[transport]
url = {transport}

[store]
url = {store}

[streams.{stream}]
path = "{path}"
transit = "{transit_s}s"
settle = "{settle_s}s"
amend_for = "2m"
"""
ENTRANCE: Final = """
[gate.streams.{stream}]
to = {to}
rejected = {rejected}

[[gate.rules]]
subject = "{stream}"
kind = "range"
field = "distance"
min = 1
"""
ALERTS: Final = """
# As impatient as the windows: one good window ends an alert, where five would be usual.
[[alerts.rules]]
kind = "loss"
keep_firing_for = "1m"

[alerts.channels.alertmanager]
kind = "alertmanager"
urls = [{alertmanager}]
"""
OWN_SPOOL: Final = "spool:./spool"
OWN_STORE: Final = "sqlite:///./hopwatch.db"


def format_configuration(
    nodes: Sequence[str], observations_url: str, store_url: str, alertmanager_url: str, gate: GateOutlets | None
) -> str:
    """Return the configuration; URLs that are empty become those of the run's own folder, or are left out."""
    pipeline = TOML.format(
        transport=_quote(observations_url or OWN_SPOOL),
        store=_quote(store_url or OWN_STORE),
        stream=STREAM,
        path=format_path(nodes),
        transit_s=TRANSIT_S,
        settle_s=SETTLE_S,
    )
    entrance = ""
    if gate is not None:
        entrance = ENTRANCE.format(stream=STREAM, to=_quote(gate.events), rejected=_quote(gate.rejected))
    alerts = ALERTS.format(alertmanager=_quote(alertmanager_url)) if alertmanager_url else ""
    return pipeline + entrance + alerts


def _quote(text: str) -> str:
    """Return a text as TOML has it, which is as JSON has it."""
    return json.dumps(text, ensure_ascii=False)
