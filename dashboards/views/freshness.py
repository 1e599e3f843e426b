"""How old what is shown is, and what stands above it when the store is away or the monitor is behind."""

from __future__ import annotations

from datetime import tzinfo

from hopwatch.dashboards.views import texts
from hopwatch.monitor.texts.read_progress import Notice, ReadProgress


def notices(now_us: int, read_us: int, reached: ReadProgress | None, trouble: str, zone: tzinfo) -> tuple[Notice, ...]:
    """Return what is wrong with what is shown, the gravest first; ``reached`` is None where nothing was ever read."""
    found = []
    if trouble:
        found.append(Notice(f"The store cannot be read: {trouble}. {_last(now_us, read_us)}", is_grave=True))
    behind = reached.notice(now_us, lambda at_us: texts.second(at_us, zone)) if reached else None
    return (*found, behind) if behind else tuple(found)


def not_anew(now_us: int, read_us: int, trouble: str) -> Notice:
    """Return what stands above an answer that is older than it should be."""
    return Notice(f"This could not be read anew: {trouble}. {_last(now_us, read_us)}", is_grave=True)


def _last(now_us: int, read_us: int) -> str:
    return f"Shown is what was known {texts.age(now_us - read_us)} ago."


def line(now_us: int, read_us: int, reached: ReadProgress, zone: tzinfo) -> str:
    """Return one line that says how old what is shown is."""
    read = f"read {texts.age(now_us - read_us)} ago"
    if reached.is_once:
        return f"{read} · {reached.once(lambda at_us: texts.second(at_us, zone))}"
    if reached.stopped_us is not None:
        return f"{read} · monitor stopped"
    return f"{read} · monitor {texts.age(now_us - reached.through_us)} behind the clock" if reached.through_us else read
