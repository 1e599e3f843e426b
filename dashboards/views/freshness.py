"""How old what is shown is, and what stands above it when the store is away or the monitor is behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dashboards.views import texts

BEHIND_US: Final = 60_000_000
"""A monitor whose watermark is further back than this is behind: its own pulse moves it every few seconds."""
STOPPED_US: Final = 300_000_000
"""A watermark that is so old is told as that of a monitor that may not run at all."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A banner; what it says, and whether it is as bad as it can be."""

    words: str
    is_grave: bool


def notices(now_us: int, read_us: int, watermark_us: int | None, trouble: str) -> tuple[Notice, ...]:
    """Return what is wrong with what is shown, the gravest first; nothing of a store that was filled once."""
    found = []
    if trouble:
        found.append(Notice(f"The store cannot be read: {trouble}. {_last(now_us, read_us)}", is_grave=True))
    behind_us = 0 if watermark_us is None else now_us - watermark_us
    if watermark_us == 0:
        found.append(Notice("The monitor has not finished its first batch yet.", is_grave=False))
    elif behind_us > STOPPED_US:
        told = f"The monitor has read nothing for {texts.age(behind_us)}: it does not run, is stuck, or has a backlog."
        found.append(Notice(f"{told} What is shown is true, and old.", is_grave=True))
    elif behind_us > BEHIND_US:
        told = f"The monitor is {texts.age(behind_us)} behind the clock: it is slow, or has just stopped."
        found.append(Notice(f"{told} What is shown is true, and late.", is_grave=False))
    return tuple(found)


def not_anew(now_us: int, read_us: int, trouble: str) -> Notice:
    """Return what stands above an answer that is older than it should be."""
    return Notice(f"This could not be read anew: {trouble}. {_last(now_us, read_us)}", is_grave=True)


def _last(now_us: int, read_us: int) -> str:
    return f"Shown is what was known {texts.age(now_us - read_us)} ago."


def line(now_us: int, read_us: int, watermark_us: int | None) -> str:
    """Return one line that says how old what is shown is."""
    read = f"read {texts.age(now_us - read_us)} ago"
    if watermark_us is None:
        return f"{read} · a store that was filled once"
    return f"{read} · monitor {texts.age(now_us - watermark_us)} behind the clock" if watermark_us else read
