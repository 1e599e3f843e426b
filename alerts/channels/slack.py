"""Slack, by an incoming webhook: a headline and a text, in which nothing but the user's own template can call anybody.

Slack reads ``<!channel>`` and ``<@…>`` in a text as a call, and ``&``, ``<`` and ``>`` are how it is told: every value
is escaped, and ``verbatim`` keeps it from looking for names and links by itself. It answers 200 ``ok``, 400 to what it
cannot read, 403, 404 and 410 when the webhook is gone, 429 with ``Retry-After``. Its bounds: 150 characters of a
header, 3,000 of a section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from hopwatch.alerts.channels import texts, written
from hopwatch.alerts.channels.channel import Outcome
from hopwatch.alerts.channels.http import Poster
from hopwatch.alerts.outbox import Delivery
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.settings.channels import SlackChannel
from hopwatch.monitor.settings.template_sample import Labels

MOST_TEXT: Final = 3_000
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_HALF_AN_ENTITY: Final = re.compile(r"&[a-z]{0,3}…$")


class Slack:
    """A channel to one incoming webhook."""

    def __init__(self, name: str, settings: SlackChannel, clock: Clock | None = None) -> None:
        """Take its settings; nothing is asked yet."""
        self._name, self._template = name, settings.read_secret("template")
        self._url = settings.read_secret("url")
        self._poster = Poster(settings.timeout_us / 1e6, settings.ca_file, [self._url], clock)

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Post it."""
        body = json.dumps(self._message(delivery)).encode()
        return self._poster.post(self._url, body, {"Content-Type": "application/json"}, now_us)

    def close(self) -> None:
        """Nothing is kept open."""

    def _message(self, delivery: Delivery) -> dict[str, Any]:
        text = written.by_template(self._name, self._template, escaped_values(written.values(delivery)))
        if not text:
            notification, is_acknowledged = delivery.notification, delivery.is_acknowledged
            text = texts.body(notification, MOST_TEXT, is_acknowledged=is_acknowledged, escaped=escaped)
        return message(texts.title(delivery.notification), text)


def message(title: str, text: str) -> dict[str, Any]:
    """Return what Slack is told; ``text`` is escaped already, ``title`` is not."""
    # Cut by the character, what is left may end in half of an entity.
    cut = _HALF_AN_ENTITY.sub("…", texts.shortened(text, MOST_TEXT))
    header = {
        "type": "header",
        "text": {"type": "plain_text", "text": texts.shortened(title, texts.MOST_TITLE), "emoji": False},
    }
    section = {"type": "section", "text": {"type": "mrkdwn", "text": cut, "verbatim": True}}
    # What a phone shows, and programs that know no blocks.
    return {"text": escaped(title), "blocks": [header, section], "unfurl_links": False}


def escaped(text: str) -> str:
    """Return a text that Slack shows as it is."""
    return "".join(_ENTITIES.get(one, one) for one in text)


def escaped_values(values: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the same values with all texts in them escaped: what calls somebody is the template's own."""
    if isinstance(values, str):
        return escaped(values)
    if isinstance(values, Labels):
        return Labels({escaped(name): escaped(text) for name, text in values.items()})
    if isinstance(values, Mapping):
        return {name: escaped_values(value) for name, value in values.items()}
    return [escaped_values(value) for value in values] if isinstance(values, list | tuple) else values
