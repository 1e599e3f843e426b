"""The configuration of a run, which its monitor and its gate read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Final

from hopwatch.demo.deliveries import RETRIES_S, TIMEOUT_S, DeliveryPlan
from hopwatch.demo.entrance.outlets import GateOutlets
from hopwatch.demo.stream import STREAM, format_path

TRANSIT_S: Final = 20
SETTLE_S: Final = 15
OUTAGE_MARGIN_S: Final = 30
"""Time within which messages of the service pass once their receiver is there again."""

TOML: Final = """\
# The monitor of the demo. Messages pass the pipeline in {pass_in}, and the probes report every two seconds:
# so windows can be final {final_s} s after their end, where 180 s would be usual.
[transport]
url = {transport}

[store]
url = {store}

[streams.{stream}]
path = "{path}"
transit = "{transit_s}s"
settle = "{settle_s}s"
amend_for = "{amend_for}"
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
DELIVERY: Final = """
[deliver.{name}]
stream = "{stream}"
node = "{name}"
group = {group}
from = {source}
url = "{url}"
rejected = {rejected}
retry = [{retries}]
timeout = "{timeout_s}s"
from_start = true
"""
OWN_SPOOL: Final = "spool:./spool"
OWN_STORE: Final = "sqlite:///./hopwatch.db"


def find_transit_s(deliveries: Sequence[DeliveryPlan], down_s: float) -> int:
    """Return how long a message may take: behind a service it waits while a receiver is down for ``down_s``."""
    return math.ceil(down_s) + OUTAGE_MARGIN_S if deliveries else TRANSIT_S


def format_configuration(  # noqa: PLR0913 - the places of a run
    nodes: Sequence[str],
    observations_url: str,
    store_url: str,
    alertmanager_url: str,
    gate: GateOutlets | None,
    *,
    deliveries: Sequence[DeliveryPlan] = (),
    down_s: float = 0.0,
) -> str:
    """Return the configuration; URLs that are empty become those of the run's own folder, or are left out."""
    transit_s = find_transit_s(deliveries, down_s)
    pipeline = TOML.format(
        transport=_quote(observations_url or OWN_SPOOL),
        store=_quote(store_url or OWN_STORE),
        stream=STREAM,
        path=format_path(nodes),
        pass_in="seconds once receivers are up" if deliveries else "milliseconds",
        final_s=transit_s + SETTLE_S,
        transit_s=transit_s,
        settle_s=SETTLE_S,
        amend_for="10m" if deliveries else "2m",
    )
    entrance = ""
    if gate is not None:
        entrance = ENTRANCE.format(stream=STREAM, to=_quote(gate.events), rejected=_quote(gate.rejected))
    alerts = ALERTS.format(alertmanager=_quote(alertmanager_url)) if alertmanager_url else ""
    return pipeline + entrance + "".join(map(_format_delivery, deliveries)) + alerts


def _format_delivery(plan: DeliveryPlan) -> str:
    return DELIVERY.format(
        name=plan.name,
        stream=STREAM,
        group=_quote(plan.group),
        source=_quote(plan.topic_url),
        url=plan.url,
        rejected=_quote(plan.rejected_url),
        retries=", ".join(f'"{wait_s}s"' for wait_s in RETRIES_S),
        timeout_s=TIMEOUT_S,
    )


def _quote(text: str) -> str:
    """Return a text as TOML has it, which is as JSON has it."""
    return json.dumps(text, ensure_ascii=False)
