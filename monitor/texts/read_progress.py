"""Read progress of the monitor, and the notice to show when it is behind or stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hopwatch.monitor.results import format_iso
from hopwatch.monitor.texts import time_spans

BEHIND_US: Final = 60_000_000
"""A monitor whose watermark is further back than this is behind: its own pulse moves it every few seconds."""
PRESUMED_STOPPED_US: Final = 300_000_000
"""Age of the watermark from which the monitor is reported as possibly not running."""

LONG_STOPPED_US: Final = 3_600_000_000
"""A monitor stopped longer ago than this is reported as gravely as one that died: it may be stopped by mistake."""

MomentFormat = Callable[[int], str]
"""Tells a moment, µs since 1970, as those who read of it have it."""


def iso_second(at_us: int) -> str:
    """Return a moment as ISO 8601 UTC to the second, that it is in: for lines that a person reads."""
    return format_iso(at_us // 1_000_000 * 1_000_000)


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence or two on what is shown; whether it is as bad as it can be."""

    words: str
    is_grave: bool


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """Arrival time up to which the monitor has read, µs; 0 if it has read nothing.

    ``is_once`` is of a store that was filled once: nothing moves it. ``stopped_us`` is when its monitor was stopped in
    good order; None while it runs, and where it died. ``config_problem`` says why the last change of its configuration
    is not in force; empty if it is.
    """

    through_us: int
    is_once: bool = False
    stopped_us: int | None = None
    config_problem: str = ""

    @property
    def config_notice(self) -> Notice | None:
        """Notice of a change of the configuration that is not in force; None without one."""
        told = f"The last change of the monitor's configuration is not in force: {self.config_problem}"
        return Notice(told, is_grave=False) if self.config_problem else None

    def notice(self, now_us: int, moment: MomentFormat) -> Notice | None:
        """Return what is to be said where the monitor reads no more, or late; of a store that was filled once nothing.

        To have been stopped is no fault for an hour. The store does not tell whether a monitor that says nothing died
        or is slow.
        """
        if self.is_once:
            return None
        if self.stopped_us is not None:
            is_grave = now_us - self.stopped_us > LONG_STOPPED_US
            return Notice(self._stopped(now_us, self.stopped_us, moment), is_grave)
        if not self.through_us:
            return Notice("The monitor has not finished its first batch yet.", is_grave=False)
        behind_us = now_us - self.through_us
        if behind_us > PRESUMED_STOPPED_US:
            since = f"{moment(self.through_us)} ({time_spans.format_age(behind_us)} ago)"
            why = "it does not run, is stuck, or has a backlog"
            told = f"The monitor has read nothing that came after {since}: {why}. What is shown is as of then."
            return Notice(told, is_grave=True)
        if behind_us > BEHIND_US:
            told = (
                f"The monitor is {time_spans.format_age(behind_us)} behind the clock: it is slow, or has just stopped."
            )
            return Notice(f"{told} What is shown is as of {moment(self.through_us)}.", is_grave=False)
        return None

    def once(self, moment: MomentFormat) -> str:
        """Return as of when a store is that was filled once; empty of any other."""
        if not self.is_once:
            return ""
        as_of = f", as of {moment(self.through_us)}" if self.through_us else ""
        return f"a store that was filled once{as_of}"

    def _stopped(self, now_us: int, stopped_us: int, moment: MomentFormat) -> str:
        told = f"The monitor was stopped at {moment(stopped_us)} ({time_spans.format_age(now_us - stopped_us)} ago)"
        if not self.through_us:
            return f"{told}, before it had finished its first batch."
        return f"{told}. What is shown is as of {moment(self.through_us)}."
