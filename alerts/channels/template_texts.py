"""Texts of user templates: the values that a template can use, and its rendering."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import structlog

from hopwatch.alerts.channels.texts import to_one_line
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.settings import templates
from hopwatch.monitor.settings.template_sample import Labels

_log = structlog.get_logger("hopwatch")


def build_values(delivery: Delivery) -> dict[str, Any]:
    """Build the values for templates: the fields of the notification, and the state of its delivery."""
    values = _plain(asdict(delivery.notification))
    values["labels"] = Labels(values["labels"])
    for alert in values["alerts"]:
        alert["labels"] = Labels(alert["labels"])
    del values["is_news"]
    return {**values, "is_again": delivery.is_again, "is_acknowledged": delivery.is_acknowledged}


def render_text(channel: str, template: str, values: dict[str, Any]) -> str:
    """Render a template; empty without one, or if it fails, which is logged."""
    if not template:
        return ""
    try:
        return templates.render_template(template, values).strip()
    except templates.TemplateFaultError as error:
        _log.warning("a template fails, the usual text goes out instead", channel=channel, why=str(error))
        return ""


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return to_one_line(str(value))
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
