"""Plain texts of a notification within a limit; lines that do not fit are counted. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from hopwatch.alerts.events import Alert, Event, Notification, Word
from hopwatch.monitor.results import format_iso

MAX_TITLE: Final = 150
MAX_LINE: Final = 600
"""Most characters of a line."""
_NOT_TEXT: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]+")
"""Control characters, line ends, marks that change the direction of a text, and lone surrogates."""


def to_one_line(text: str) -> str:
    """Return a text as one line without control characters."""
    return _NOT_TEXT.sub(" ", text).strip()


def shorten(text: str, most: int) -> str:
    """Shorten a text to at most so many characters; a cut text ends with an ellipsis."""
    return text if len(text) <= most else text[: max(most - 1, 0)] + "…"


def format_title(notification: Notification) -> str:
    """Format the title, with severity, problem and place: one line of at most ``MAX_TITLE`` characters."""
    word = str(notification.alerts[0].word) if notification.alerts else str(notification.kind)
    streams = dict.fromkeys(alert.stream for alert in notification.alerts)
    stream = notification.labels.get("stream") or ""
    where = f" in {stream}" if stream else f" in {len(streams)} streams or more" if len(streams) > 1 else ""
    places = f", {notification.total:,} places" if notification.total > 1 else ""
    over = "resolved: " if notification.event is Event.RESOLVED else ""
    said = f"[{notification.severity}] {over}{word}{where}{places} ({notification.rule})"
    return shorten(to_one_line(said), MAX_TITLE)


def format_body(
    notification: Notification,
    most: int,
    *,
    is_acknowledged: bool = False,
    escaped: Callable[[str], str] = str,
) -> str:
    """Format the body, one fact per line, in at most ``most`` characters once ``escaped``.

    The places are cut first: as many as fit are listed, and the others are counted.
    """
    head = [to_one_line(notification.summary)]
    if notification.event is Event.RESOLVED:
        head = [f"resolved at {format_iso(notification.at_us)}; it was:", *head]
    if is_acknowledged:
        head.append("it is acknowledged")
    foot = ["", *format_facts(notification)]
    head, foot = ([escaped(shorten(line, MAX_LINE)) for line in lines] for lines in (head, foot))
    left = most - sum(len(line) + 1 for line in (*head, *foot))
    places = [f"- {to_one_line(alert.summary)}" for alert in notification.alerts] if notification.total > 1 else []
    listed = _fit_lines([escaped(shorten(line, MAX_LINE)) for line in places], notification.total, left)
    return shorten("\n".join([*head, *listed, *foot]), most)


def format_facts(notification: Notification) -> list[str]:
    """Format the facts for a closer look: ids of messages, runbook, dashboard, and the key to acknowledge it by."""
    first = notification.alerts[0] if notification.alerts else None
    what = "overdue" if first and first.word is Word.OVERDUE else "lost"
    found = {
        f"{what} ids": ", ".join(first.lost_ids) if first else "",
        "runbook": first.runbook if first else "",
        "dashboard": first.link if first else "",
        "key": notification.key,
    }
    return [f"{name}: {to_one_line(value)}" for name, value in found.items() if value]


def format_places(alerts: Sequence[Alert], total: int, most: int) -> str:
    """Format one line per place, the worst first, as many as fit; the others are counted."""
    lines = [shorten(to_one_line(alert.summary), MAX_LINE) for alert in alerts]
    return "\n".join(_fit_lines(lines, total, most))


def format_affected(alert: Alert) -> str:
    """Format the number affected, and the whole where that is known."""
    return f"{alert.affected:,} of {alert.out_of:,}" if alert.out_of else f"{alert.affected:,}"


def _fit_lines(lines: Sequence[str], total: int, most: int) -> list[str]:
    """Return the first lines that fit, and a last one that counts those that are left out, of ``total`` in all."""
    kept = list(lines)
    while kept:
        more = _count_rest(total - len(kept))
        if sum(len(line) + 1 for line in (*kept, *more)) <= most:
            return [*kept, *more]
        kept.pop()
    last = _count_rest(total) if lines else []
    return last if last and len(last[0]) < most else []


def _count_rest(count: int) -> list[str]:
    return [f"and {count:,} more"] if count > 0 else []
