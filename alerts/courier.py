"""The courier: what is due in the outbox goes through all channels, each with a carrier of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from sqlalchemy import Engine

from hopwatch.alerts import outbox, teller
from hopwatch.alerts.carrier import Carrier, Counts, Receipt
from hopwatch.alerts.outbox import Waiting
from hopwatch.alerts.pen import Pen
from hopwatch.alerts.ways import Ways
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.store.dialect import StoreLock

UNKNOWN: Final = "no channel of this name is configured"


@dataclass(frozen=True, slots=True)
class Figures(Counts):
    """What one channel did since the monitor started, and what waits for it.

    ``oldest_waiting_us`` is when the oldest of it was decided, µs since 1970 by the watermark; none if nothing waits.
    """

    waiting: int = 0
    oldest_waiting_us: int | None = None


class Courier:
    """Carries what is due; threads come from :func:`alerts.rounds.running`, tests call :meth:`step` by hand."""

    def __init__(self, engine: Engine, ways: Ways, clock: Clock, hold: StoreLock | None = None) -> None:
        """Carry from the store of ``engine``, whose connections are the courier's own, while ``hold`` is ours."""
        self._engine, self._ways, self._clock, self.pen = engine, ways, clock, Pen(engine, clock, hold)
        self.carriers: Mapping[str, Carrier] = {
            name: Carrier(name, channel, self._fallback(name), engine, clock, self.pen)
            for name, channel in ways.channels.items()
        }
        self._waiting: Mapping[str, Waiting] = {}
        self._has_begun = False
        self._unknown: set[str] = set()

    def step(self) -> list[Receipt]:
        """Carry what is due now through one channel after the other; return what came of each delivery.

        Raises:
            StoreError: the store fails, or is another monitor's; nothing is lost.
        """
        return [receipt for name in self.look() for receipt in self.carriers[name].round()]

    def look(self) -> list[str]:
        """Return the channels that something may be due for; what is for others is given up.

        Raises:
            StoreError: the store fails, or is another monitor's.
        """
        if not self._has_begun:
            self.pen.write(partial(outbox.catch_up, self._engine, self._ways.routes, self.carriers))
            self._has_begun = True
        found, self._waiting = outbox.look(self._engine, self._clock.now_us())
        self._give_up(sorted(found - self.carriers.keys()))
        return sorted(found & self.carriers.keys())

    def figures(self) -> Mapping[str, Figures]:
        """Return what each channel did and what waits for it, as of the last look; may be called by any thread."""
        waiting = self._waiting
        return {name: _figures(carrier.counts, waiting.get(name)) for name, carrier in self.carriers.items()}

    def _give_up(self, names: Iterable[str]) -> None:
        """Give up what is for channels that the configuration has no more."""
        for name in names:
            if name not in self._unknown:
                known = ", ".join(self.carriers) or "none"
                teller.error("what waits for a channel is given up: " + UNKNOWN, channel=name, known=known)
            self._unknown.add(name)
            for delivery in outbox.due(self._engine, self._clock.now_us(), channel=name):
                self.pen.write(partial(outbox.give_up, self._engine, delivery, UNKNOWN))

    def _fallback(self, name: str) -> str | None:
        fallback = self._ways.fallbacks.get(name)
        return fallback if fallback in self._ways.channels else None


def _figures(counts: Counts, waiting: Waiting | None) -> Figures:
    done = asdict(counts)
    return Figures(**done, waiting=waiting.rows, oldest_waiting_us=waiting.oldest_us) if waiting else Figures(**done)
