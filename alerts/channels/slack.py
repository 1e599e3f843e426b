"""Slack channel, by an incoming webhook: a header and a text; only the user's own template can mention anybody.

Slack reads ``<!channel>`` and ``<@…>`` in a text as mentions, marked by ``&``, ``<`` and ``>``: every value is escaped,
and ``verbatim`` keeps Slack from looking for names and links by itself. It answers 200 ``ok``, 400 to what it
cannot read, 403, 404 and 410 when the webhook is gone, 429 with ``Retry-After``. Its bounds: 150 characters of a
header, 3,000 of a section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from hopwatch.alerts.channels import template_texts, texts
from hopwatch.alerts.channels.channel import Outcome
from hopwatch.alerts.channels.http import Poster
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.settings.channels import SlackChannel
from hopwatch.monitor.settings.template_sample import Labels

MAX_TEXT: Final = 3_000
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_PARTIAL_ENTITY: Final = re.compile(r"&[a-z]{0,3}…$")


class Slack:
    """Channel to one incoming webhook."""

    def __init__(self, name: str, settings: SlackChannel, clock: Clock | None = None) -> None:
        """Take the settings; nothing is sent yet."""
        self._name, self._template = name, settings.read_secret("template")
        self._url = settings.read_secret("url")
        self._poster = Poster(settings.timeout_us / 1e6, settings.ca_file, [self._url], clock)

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Post it."""
        body = json.dumps(self._build_message(delivery)).encode()
        return self._poster.post(self._url, body, {"Content-Type": "application/json"}, now_us)

    def close(self) -> None:
        """Nothing is kept open."""

    def _build_message(self, delivery: Delivery) -> dict[str, Any]:
        text = template_texts.render_text(
            self._name, self._template, escape_values(template_texts.build_values(delivery))
        )
        if not text:
            notification, is_acknowledged = delivery.notification, delivery.is_acknowledged
            text = texts.format_body(notification, MAX_TEXT, is_acknowledged=is_acknowledged, escaped=escape_text)
        return build_message(texts.format_title(delivery.notification), text)


def build_message(title: str, text: str) -> dict[str, Any]:
    """Build the message that is posted to Slack; ``text`` is escaped already, ``title`` is not."""
    # Cut by the character, what is left may end in half of an entity.
    cut = _PARTIAL_ENTITY.sub("…", texts.shorten(text, MAX_TEXT))
    header = {
        "type": "header",
        "text": {"type": "plain_text", "text": texts.shorten(title, texts.MAX_TITLE), "emoji": False},
    }
    section = {"type": "section", "text": {"type": "mrkdwn", "text": cut, "verbatim": True}}
    # This text is shown on phones, and by programs without blocks.
    return {"text": escape_text(title), "blocks": [header, section], "unfurl_links": False}


def escape_text(text: str) -> str:
    """Escape a text, so that Slack shows it as it is."""
    return "".join(_ENTITIES.get(character, character) for character in text)


def escape_values(values: Any) -> Any:  # noqa: ANN401 - JSON
    """Escape all texts in the values of a template: only the template itself can mention a person."""
    if isinstance(values, str):
        return escape_text(values)
    if isinstance(values, Labels):
        return Labels({escape_text(name): escape_text(text) for name, text in values.items()})
    if isinstance(values, Mapping):
        return {name: escape_values(value) for name, value in values.items()}
    return [escape_values(value) for value in values] if isinstance(values, list | tuple) else values
