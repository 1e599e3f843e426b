"""Notices about the age of the data: store unreachable, monitor behind or stopped."""

from __future__ import annotations

from datetime import tzinfo

from hopwatch.display import texts
from hopwatch.monitor.texts.read_progress import Notice, ReadProgress


def build_notices(
    now_us: int, read_us: int, reached: ReadProgress | None, trouble: str, zone: tzinfo
) -> tuple[Notice, ...]:
    """Return notices about the age of the page, the gravest first; ``reached`` is None if nothing was ever read."""
    found = []
    if trouble:
        found.append(
            Notice(f"The store cannot be read: {trouble}. {_format_last_read(now_us, read_us)}", is_grave=True)
        )
    if reached is not None:
        behind = reached.notice(now_us, lambda at_us: texts.format_second(at_us, zone))
        found += [notice for notice in (behind, reached.config_notice) if notice is not None]
    return tuple(found)


def build_stale_notice(now_us: int, read_us: int, trouble: str) -> Notice:
    """Return the notice above an answer that is older than it should be."""
    return Notice(f"This could not be refreshed: {trouble}. {_format_last_read(now_us, read_us)}", is_grave=True)


def _format_last_read(now_us: int, read_us: int) -> str:
    return f"The page shows data of {texts.format_age(now_us - read_us)} ago."


def format_freshness(now_us: int, read_us: int, reached: ReadProgress, zone: tzinfo) -> str:
    """Return the age of the data shown, as one line."""
    read = f"read {texts.format_age(now_us - read_us)} ago"
    if reached.is_once:
        return f"{read} · {reached.once(lambda at_us: texts.format_second(at_us, zone))}"
    if reached.stopped_us is not None:
        return f"{read} · monitor stopped"
    return (
        f"{read} · monitor {texts.format_age(now_us - reached.through_us)} behind the clock"
        if reached.through_us
        else read
    )
